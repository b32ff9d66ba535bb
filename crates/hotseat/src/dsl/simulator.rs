//! Settings of simulated users, and the results of simulations.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{ConversationTurn as Recorded, TerminationReason, TurnScope};

use super::caller_location::CallerLocation;
use super::conversation::Conversation;
use super::matcher::IntoStrings;
use super::panics;
use super::views::Turn;
use hotseat_checks::{Check, CheckKind, Pattern, PatternError, RoleReference, RustCheck};
use hotseat_engine::cases::{PersonaNotes, PromptTemplate, SimulatedPersona, SimulatorBrief as Told};

type StopCondition = dyn Fn(&Turn, &Conversation) -> bool + Send + Sync;

/// Settings of a simulated user, set by a group with [`Group::simulator`](super::Group::simulator) or by an
/// example with [`User::simulate`](super::User::simulate). Inner settings override outer ones; rules and
/// notes are merged.
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
pub struct SimulatorSettings {
    character: SimulatedPersona,
    /// Sources of patterns that the user must never say.
    never_says: Vec<String>,
    goal: Option<String>,
    played_by: Option<String>,
    template: Option<(String, CallerLocation)>,
    max_turns: Option<usize>,
    max_repeats: Option<usize>,
    stop_when: Option<(Arc<StopCondition>, CallerLocation)>,
    topic_briefs: Vec<(String, SimulatorSettings, CallerLocation)>,
}

impl SimulatorSettings {
    /// Sets the role of the user.
    pub fn role(&mut self, text: impl Into<String>) -> &mut SimulatorSettings {
        self.character.role = Some(text.into());
        self
    }

    /// Sets the personality as one text, replacing that of outer groups.
    pub fn personality(&mut self, text: impl Into<String>) -> &mut SimulatorSettings {
        self.character.personality = Some(PersonaNotes::Text(text.into()));
        self
    }

    /// Adds a note about the personality to those of outer groups.
    pub fn personality_note(&mut self, note: impl Into<String>) -> &mut SimulatorSettings {
        add_note(&mut self.character.personality, note.into());
        self
    }

    /// Sets the background knowledge as one text, replacing that of outer groups.
    pub fn context(&mut self, text: impl Into<String>) -> &mut SimulatorSettings {
        self.character.context = Some(PersonaNotes::Text(text.into()));
        self
    }

    /// Adds a note to the background knowledge of outer groups.
    pub fn context_note(&mut self, note: impl Into<String>) -> &mut SimulatorSettings {
        add_note(&mut self.character.context, note.into());
        self
    }

    /// Adds several notes; see [`context_note`](SimulatorSettings::context_note).
    pub fn context_notes(&mut self, notes: impl IntoStrings) -> &mut SimulatorSettings {
        notes.into_strings().into_iter().for_each(|note| add_note(&mut self.character.context, note));
        self
    }

    /// Adds an instruction to follow.
    pub fn should(&mut self, text: impl Into<String>) -> &mut SimulatorSettings {
        self.character.should.push(text.into());
        self
    }

    /// Adds behaviour to avoid.
    pub fn should_not(&mut self, text: impl Into<String>) -> &mut SimulatorSettings {
        self.character.should_not.push(text.into());
        self
    }

    /// Adds a pattern that the simulated user must never say. If it does, the attempt is invalid.
    pub fn never_says(&mut self, pattern: impl Into<String>) -> &mut SimulatorSettings {
        self.never_says.push(pattern.into());
        self
    }

    /// Sets the goal. Only allowed in an example.
    pub fn goal(&mut self, text: impl Into<String>) -> &mut SimulatorSettings {
        self.goal = Some(text.into().trim().to_string());
        self
    }

    /// Sets the simulator: `agents:ID`, or `connectors:NAME` for a model with the built-in prompt. Only
    /// allowed in a group. Default: `simulator` of the project file.
    pub fn played_by(&mut self, who: impl Into<String>) -> &mut SimulatorSettings {
        self.played_by = Some(who.into());
        self
    }

    /// Sets a file with a custom prompt template. Only allowed in an example.
    #[track_caller]
    pub fn template(&mut self, path: impl Into<String>) -> &mut SimulatorSettings {
        self.template = Some((path.into(), CallerLocation::here()));
        self
    }

    /// Sets the maximum number of user turns. Default: 15.
    pub fn max_turns(&mut self, turns: usize) -> &mut SimulatorSettings {
        self.max_turns = Some(turns);
        self
    }

    /// Sets how many times the user may repeat a message before the attempt is invalid; 0 disables the limit.
    pub fn max_repeats(&mut self, times: usize) -> &mut SimulatorSettings {
        self.max_repeats = Some(times);
        self
    }

    /// Sets a stop condition, evaluated after each turn before the user speaks again.
    #[track_caller]
    pub fn stop_when(
        &mut self,
        stop: impl Fn(&Turn, &Conversation) -> bool + Send + Sync + 'static,
    ) -> &mut SimulatorSettings {
        self.stop_when = Some((Arc::new(stop), CallerLocation::here()));
        self
    }

    /// Adds instructions that apply while the conversation is in a topic.
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
        different: impl FnOnce(&mut SimulatorSettings),
    ) -> &mut SimulatorSettings {
        let at = CallerLocation::here();
        let mut own = SimulatorSettings::default();
        different(&mut own);
        self.topic_briefs.push((name.into(), own, at));
        self
    }

    /// Returns the error if a group uses settings that are only allowed in an example.
    pub(super) fn group_problem(&self) -> Option<String> {
        let of_example =
            |what: &str| Some(format!("{what} is only allowed in an example: set it in `user.simulate`"));
        match (&self.goal, &self.template, &self.played_by) {
            (Some(_), ..) => of_example("a goal"),
            (_, Some(_), _) => of_example("a template"),
            (.., Some(who)) => RoleReference::parse(who).err().map(|words| format!("`played_by`: {words}")),
            (None, None, None) => None,
        }
    }

    /// Returns the simulator that the group names, if any.
    pub(super) fn simulator_reference(&self) -> Option<RoleReference> {
        self.played_by.as_ref().and_then(|who| RoleReference::parse(who).ok())
    }

    /// Merges the settings of the groups, outermost first, with those of the example. Fails if the settings
    /// are invalid.
    pub(super) fn to_case_brief(
        &self,
        groups: &[SimulatorSettings],
        at: CallerLocation,
    ) -> Result<Told, SimulationError> {
        let mut above = Told::default();
        for group in groups {
            above = group.own_case_brief(at)?.merged_onto(&above);
        }
        let told = self.own_case_brief(at)?.merged_onto(&above);
        if self.played_by.is_some() {
            return Err(SimulationError::PlayedByInExample);
        }
        match told.goal.as_deref() {
            None | Some("") => Err(SimulationError::NoGoal),
            Some(_) => Ok(told),
        }
    }

    fn own_case_brief(&self, at: CallerLocation) -> Result<Told, SimulationError> {
        if self.max_turns == Some(0) {
            return Err(SimulationError::NoTurns);
        }
        let stop_when = self.stop_when.iter().map(|(stop, at)| {
            let stop = stop.clone();
            let native = RustCheck::new("the stop condition returns true", move |scope: TurnScope<'_>| {
                let conversation = Conversation::up_to(scope);
                let turn = conversation.last_turn();
                let holds = panics::catch(|| turn.is_some_and(|turn| stop(&turn, &conversation)))?;
                Ok((holds, format!("the function returned {holds}")))
            });
            Check::new(CheckKind::RustFunction(native), at.place())
        });
        let during = self.topic_briefs.iter().map(|(name, own, at)| match own.has_only_character() {
            true => Ok((name.clone(), own.character()?, at.place())),
            false => Err(SimulationError::MoreThanCharacter(name.clone())),
        });
        Ok(Told {
            persona: self.character()?,
            goal: self.goal.clone(),
            max_turns: self.max_turns,
            stop_when: stop_when.collect(),
            max_repeats: self.max_repeats,
            during_topic: during.collect::<Result<_, SimulationError>>()?,
            template: self.template.as_ref().map(|(path, _)| PromptTemplate {
                path: path.clone(),
                place: at.place(),
                text: None,
            }),
            ..Told::default()
        })
    }

    /// True if nothing but the character of the user is set.
    fn has_only_character(&self) -> bool {
        let SimulatorSettings {
            character: _,
            never_says: _,
            goal,
            played_by,
            template,
            max_turns,
            max_repeats,
            stop_when,
            topic_briefs,
        } = self;
        (goal, played_by, max_turns, max_repeats) == (&None, &None, &None, &None)
            && template.is_none()
            && stop_when.is_none()
            && topic_briefs.is_empty()
    }

    fn character(&self) -> Result<SimulatedPersona, SimulationError> {
        let compiled = |written: &String| {
            Pattern::compile(written)
                .map_err(|source| SimulationError::NeverSays { written: written.clone(), source })
        };
        let never_says = self.never_says.iter().map(compiled).collect::<Result<_, _>>()?;
        Ok(SimulatedPersona { never_says, ..self.character.clone() })
    }
}

/// Error in the settings of a simulated user.
#[derive(Debug, thiserror::Error)]
pub(super) enum SimulationError {
    #[error("`played_by` is only allowed in a group: set it with `simulator()`")]
    PlayedByInExample,
    #[error("`max_turns` of `user.simulate` must be at least 1")]
    NoTurns,
    #[error("`user.simulate` requires a `goal`")]
    NoGoal,
    #[error(
        "`during_topic` of {0:?}: only the character of the user can differ in a topic, not its goal, turns or conditions"
    )]
    MoreThanCharacter(String),
    #[error("`never_says`: the pattern {written:?} does not compile: {source}")]
    NeverSays { written: String, source: PatternError },
}

fn add_note(notes: &mut Option<PersonaNotes>, note: String) {
    match notes {
        Some(PersonaNotes::Notes(notes)) => notes.push(note),
        Some(PersonaNotes::Text(_)) | None => *notes = Some(PersonaNotes::Notes(vec![note])),
    }
}

/// Result of a simulation.
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
pub struct SimulationResult {
    pub(super) reason: TerminationReason,
    pub(super) goal_progress: Option<String>,
    pub(super) detail: Option<String>,
    pub(super) turns: usize,
    pub(super) duration: Duration,
}

impl SimulationResult {
    /// Returns why it stopped: `goal_reached`, `stop_condition`, `max_turns` or `gave_up`.
    pub fn reason(&self) -> &'static str {
        self.reason.name()
    }

    /// Returns the progress that the user reported: `none`, `partial` or `achieved`; none if it reported
    /// nothing.
    pub fn goal_progress(&self) -> Option<&str> {
        self.goal_progress.as_deref()
    }

    /// Returns further details that the user gave for stopping.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Returns the number of turns.
    pub fn turns(&self) -> usize {
        self.turns
    }

    /// Returns the total duration of the turns.
    pub fn duration(&self) -> Duration {
        self.duration
    }
}

pub(super) fn total_duration(turns: &[Recorded]) -> Duration {
    turns.iter().map(Recorded::duration).sum()
}
