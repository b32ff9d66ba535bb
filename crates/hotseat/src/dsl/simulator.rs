//! What a simulated user is told, and what it came to.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Scope, Termination, Turn as Recorded};

use super::handles::Conversation;
use super::matcher::Names;
use super::panics;
use super::place::At;
use super::views::Turn;
use crate::cases::{Brief as Told, Character, Notes, Template};
use crate::checks::{Check, CheckKind, Native, Pattern, Reference};

type Stop = dyn Fn(&Turn, &Conversation) -> bool + Send + Sync;

/// What a simulated user is told: by a group, [`Group::simulator`](super::Group::simulator), and by an example,
/// [`User::simulate`](super::User::simulate). What an inner group or the example says goes before; rules and notes add up.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.simulator()
///     .role("Corporate event planner at Acme GmbH")
///     .personality_note("Values efficiency")
///     .context_note("Typical budget: 30,000-50,000 EUR")
///     .should("confirm understanding before searches")
///     .should_not("engage in small talk")
///     .max_turns(15)
///     .stop_when(|_, conversation| conversation.has_tool_call("book_venue"));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Brief {
    character: Character,
    /// Patterns of what is never said, as they are written.
    never_says: Vec<String>,
    goal: Option<String>,
    played_by: Option<String>,
    template: Option<(String, At)>,
    max_turns: Option<usize>,
    max_repeats: Option<usize>,
    stop_when: Option<(Arc<Stop>, At)>,
    during: Vec<(String, Brief, At)>,
}

impl Brief {
    /// Who the user is.
    pub fn role(&mut self, text: impl Into<String>) -> &mut Brief {
        self.character.role = Some(text.into());
        self
    }

    /// How the user is, in one text: it takes the place of what is said above.
    pub fn personality(&mut self, text: impl Into<String>) -> &mut Brief {
        self.character.personality = Some(Notes::Text(text.into()));
        self
    }

    /// One more thing about how the user is: it is added to notes that are said above.
    pub fn personality_note(&mut self, note: impl Into<String>) -> &mut Brief {
        noted(&mut self.character.personality, note.into());
        self
    }

    /// What the user knows, in one text: it takes the place of what is said above.
    pub fn context(&mut self, text: impl Into<String>) -> &mut Brief {
        self.character.context = Some(Notes::Text(text.into()));
        self
    }

    /// One more thing that the user knows: it is added to notes that are said above.
    pub fn context_note(&mut self, note: impl Into<String>) -> &mut Brief {
        noted(&mut self.character.context, note.into());
        self
    }

    /// Several more things that the user knows; see [`context_note`](Brief::context_note).
    pub fn context_notes(&mut self, notes: impl Names) -> &mut Brief {
        notes.names().into_iter().for_each(|note| noted(&mut self.character.context, note));
        self
    }

    /// What the user does.
    pub fn should(&mut self, text: impl Into<String>) -> &mut Brief {
        self.character.should.push(text.into());
        self
    }

    /// What the user does not do.
    pub fn should_not(&mut self, text: impl Into<String>) -> &mut Brief {
        self.character.should_not.push(text.into());
        self
    }

    /// A pattern of what the user does not say, for it is not so. A simulated user that says it all the same has made the
    /// attempt invalid.
    pub fn never_says(&mut self, pattern: impl Into<String>) -> &mut Brief {
        self.never_says.push(pattern.into());
        self
    }

    /// What the user wants. Only the example itself can say that.
    pub fn goal(&mut self, text: impl Into<String>) -> &mut Brief {
        self.goal = Some(text.into().trim().to_string());
        self
    }

    /// Who plays the user: `agents:ID`, or `connectors:NAME` for a model with the built-in prompt. Only a group can say that;
    /// where none does it is `simulator` of the project file.
    pub fn played_by(&mut self, who: impl Into<String>) -> &mut Brief {
        self.played_by = Some(who.into());
        self
    }

    /// A file with a prompt of your own. Only the example itself can say that.
    #[track_caller]
    pub fn template(&mut self, path: impl Into<String>) -> &mut Brief {
        self.template = Some((path.into(), At::here()));
        self
    }

    /// How many inputs the user gives at most; 15 where nobody says.
    pub fn max_turns(&mut self, turns: usize) -> &mut Brief {
        self.max_turns = Some(turns);
        self
    }

    /// How often the user may say the same again before the attempt is invalid; 0 is as often as it likes.
    pub fn max_repeats(&mut self, times: usize) -> &mut Brief {
        self.max_repeats = Some(times);
        self
    }

    /// When there is nothing more to say: looked at after each turn, before the user speaks again.
    #[track_caller]
    pub fn stop_when(
        &mut self,
        stop: impl Fn(&Turn, &Conversation) -> bool + Send + Sync + 'static,
    ) -> &mut Brief {
        self.stop_when = Some((Arc::new(stop), At::here()));
        self
    }

    /// What is different while the conversation is in a topic.
    ///
    /// ```no_run
    /// # use hotseat::dsl::prelude::*;
    /// # fn a(g: &mut Group) {
    /// # g.topic("gathering_details").characteristic("Collecting requirements");
    /// g.simulator().during_topic("gathering_details", |s| {
    ///     s.should("double-check every detail");
    /// });
    /// # }
    /// ```
    #[track_caller]
    pub fn during_topic(
        &mut self,
        name: impl Into<String>,
        different: impl FnOnce(&mut Brief),
    ) -> &mut Brief {
        let at = At::here();
        let mut own = Brief::default();
        different(&mut own);
        self.during.push((name.into(), own, at));
        self
    }

    /// What a group says that it cannot say.
    pub(super) fn mistake_of_group(&self) -> Option<String> {
        let of_example =
            |what: &str| Some(format!("{what} belongs to one example: say it in `user.simulate`"));
        match (&self.goal, &self.template, &self.played_by) {
            (Some(_), ..) => of_example("a goal"),
            (_, Some(_), _) => of_example("a template"),
            (.., Some(who)) => Reference::parse(who).err().map(|words| format!("`played_by`: {words}")),
            (None, None, None) => None,
        }
    }

    /// Who plays the user, where it says so.
    pub(super) fn player(&self) -> Option<Reference> {
        self.played_by.as_ref().and_then(|who| Reference::parse(who).ok())
    }

    /// What is told in all, on top of what groups say, from the outermost one inwards.
    ///
    /// # Errors
    /// What makes no sense of it.
    pub(super) fn told(&self, groups: &[Brief], at: At) -> Result<Told, String> {
        let mut above = Told::default();
        for group in groups {
            above = group.own(at)?.over(&above);
        }
        let told = self.own(at)?.over(&above);
        if self.played_by.is_some() {
            return Err("`played_by` belongs to a group: say it with `simulator()`".to_string());
        }
        match told.goal {
            None => Err("`user.simulate` needs a `goal`".to_string()),
            Some(_) => Ok(told),
        }
    }

    fn own(&self, at: At) -> Result<Told, String> {
        let stop_when = self.stop_when.iter().map(|(stop, at)| {
            let stop = stop.clone();
            let native =
                Native::new("a function of the test says that it is enough", move |scope: Scope<'_>| {
                    let conversation = Conversation::up_to(scope);
                    let turn = conversation.last_turn();
                    let holds = panics::caught(|| turn.is_some_and(|turn| stop(&turn, &conversation)))?;
                    Ok((holds, format!("the function returned {holds}")))
                });
            Check::new(CheckKind::Native(native), at.place())
        });
        let during =
            self.during.iter().map(|(name, own, at)| Ok((name.clone(), own.character()?, at.place())));
        Ok(Told {
            character: self.character()?,
            goal: self.goal.clone(),
            max_turns: self.max_turns,
            stop_when: stop_when.collect(),
            max_repeats: self.max_repeats,
            during_topic: during.collect::<Result<_, String>>()?,
            template: self.template.as_ref().map(|(path, _)| Template {
                path: path.clone(),
                place: at.place(),
                text: None,
            }),
            ..Told::default()
        })
    }

    fn character(&self) -> Result<Character, String> {
        let compiled = |written: &String| {
            Pattern::compile(written)
                .map_err(|words| format!("`never_says`: the pattern {written:?} does not compile: {words}"))
        };
        let never_says = self.never_says.iter().map(compiled).collect::<Result<_, _>>()?;
        Ok(Character { never_says, ..self.character.clone() })
    }
}

fn noted(notes: &mut Option<Notes>, note: String) {
    match notes {
        Some(Notes::Notes(notes)) => notes.push(note),
        Some(Notes::Text(_)) | None => *notes = Some(Notes::Notes(vec![note])),
    }
}

/// What a simulated stretch of a conversation came to.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("finds a venue", async |t| {
///     let simulated = t.user.simulate(|s| {
///         s.goal("Find a venue for 50 people");
///     }).await;
///     expect!(simulated.reason(), eq("goal_reached"));
/// });
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Simulated {
    pub(super) reason: Termination,
    pub(super) goal_progress: Option<String>,
    pub(super) detail: Option<String>,
    pub(super) turns: usize,
    pub(super) took: Duration,
}

impl Simulated {
    /// Why it stopped: `goal_reached`, `stop_condition`, `max_turns`, `gave_up`.
    pub fn reason(&self) -> &'static str {
        self.reason.name()
    }

    /// How far the user has come, in its own words: `none`, `partial`, `achieved`; none where it did not say.
    pub fn goal_progress(&self) -> Option<&str> {
        self.goal_progress.as_deref()
    }

    /// What else the user said of why it stopped.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// How many turns there were.
    pub fn turns(&self) -> usize {
        self.turns
    }

    /// How long they took together.
    pub fn duration(&self) -> Duration {
        self.took
    }
}

pub(super) fn took(turns: &[Recorded]) -> Duration {
    turns.iter().map(Recorded::duration).sum()
}
