//! A simulated user goes on with a conversation.

use std::sync::Arc;

use hotseat_trace::{Failure, FailureKind, SimulationEnded, SimulationStarted, Termination};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::conduct::Conduct;
use super::deciding::Looked;
use super::turn::Given;
use super::{Ended, Reached, Session, checkpoints};
use crate::cases::{Brief, MOST_INPUTS, Style};
use crate::checks::Reference;
use crate::roles::{self, Dialogue, Exchange, SimulatorQuestion, Unanswered, UserAnswer, UserDecision};

/// How often a simulated user that has a goal is asked again where its answer is of no use.
const RETRIES: usize = 2;

/// What a simulated user does next.
pub(super) enum Simulated {
    /// It says something.
    Says(Box<Given>),
    /// It has nothing more to say.
    Done(Stopped),
}

/// A stretch of a conversation in which a simulated user speaks.
#[derive(Debug, Clone, Default)]
pub struct Simulation {
    /// How many inputs it may give, if that is said.
    pub max_turns: Option<usize>,
    /// What it is told, if it is not what the case says.
    pub brief: Option<Arc<Brief>>,
}

/// Why a simulated user has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Why.
    pub reason: Termination,
    /// How far it has come, in its own words: `none`, `partial`, `achieved`.
    pub goal_progress: Option<Arc<str>>,
    /// What else it says of that.
    pub detail: Option<String>,
}

impl Stopped {
    fn by(reason: Termination) -> Stopped {
        Stopped { reason, goal_progress: None, detail: None }
    }
}

impl Session<'_> {
    /// Has a simulated user speak, from where the conversation is.
    ///
    /// # Errors
    /// When the case has ended, or ends on the way.
    pub async fn simulate(&mut self, simulation: Simulation) -> Result<Stopped, Ended> {
        self.goes_on()?;
        let brief = match simulation.brief {
            Some(brief) => Some(self.understood(brief)?),
            None => self.case.brief().cloned(),
        };
        let said = simulation.max_turns.or_else(|| brief.as_ref()?.max_turns).or(self.case.max_turns);
        let most = said.unwrap_or(MOST_INPUTS);
        let most = match self.case.max_turns.filter(|_| self.case.body.is_some()) {
            Some(whole) => most.min(whole.saturating_sub(self.turns().len())),
            None => most,
        };
        if let Err(words) = self.find_simulator(brief.as_deref()) {
            return Err(self.fail(roles::failure(FailureKind::SimulatorError, &words)));
        }
        let first = self.turns().len();
        self.recorder.emit(SimulationStarted {
            turn: first + 1,
            goal: brief.as_ref().and_then(|brief| brief.goal.clone()),
            max_turns: most,
        });
        let stopped = self.speak(first, most, brief.as_deref()).await;
        let ended = match &stopped {
            Ok(stopped) => stopped.clone(),
            Err(failure) => {
                Stopped { detail: Some(failure.message.clone()), ..Stopped::by(Termination::Error) }
            }
        };
        self.recorder.emit(SimulationEnded {
            reason: ended.reason,
            turns: self.turns().len() - first,
            goal_progress: ended.goal_progress,
            detail: ended.detail,
        });
        let stopped = stopped.map_err(|failure| self.fail(failure))?;
        if self.case.body.is_some() {
            // What a program does next may depend on what its topics came to.
            let first = self.checks.len();
            self.decide_all_topics().await;
            self.unless_failed(first)?;
        }
        Ok(stopped)
    }

    /// What a program tells a simulated user, with what it takes from around it.
    ///
    /// # Errors
    /// When the test is wrong, by which the case has ended.
    fn understood(&mut self, mut brief: Arc<Brief>) -> Result<Arc<Brief>, Ended> {
        self.vocabulary = Arc::new(self.vocabulary.with_goal(brief.goal.clone()));
        let mut mistakes = self.fill_in(Arc::make_mut(&mut brief).stop_when.iter_mut());
        mistakes.extend(self.unknown_topics(brief.stop_when.iter()));
        mistakes.extend(brief.unknown_topics(self.topics()));
        self.without(mistakes)?;
        Ok(brief)
    }

    /// Who simulates, if that is said: by what the user is told, or by the case.
    fn who_simulates<'b>(&'b self, brief: Option<&'b Brief>) -> Option<&'b Reference> {
        let of_case = || self.case.simulator.as_ref()?.reference.as_ref();
        brief.and_then(|brief| brief.reference.as_ref()).or_else(of_case)
    }

    /// Makes sure that somebody simulates: whom a program names shows only when it runs.
    ///
    /// # Errors
    /// Why nobody does, in words.
    fn find_simulator(&mut self, brief: Option<&Brief>) -> Result<(), String> {
        if self.counterpart.kept().is_some() {
            return Ok(());
        }
        let Some(finds) = self.deciding.partners.finds.clone() else { return Ok(()) };
        let reference = self.who_simulates(brief).cloned();
        let simulators = &mut self.deciding.partners.simulators;
        if simulators.iter().all(|(known, _)| *known != reference) {
            let simulator = finds.simulator(reference.as_ref(), &self.case.place)?;
            simulators.push((reference, simulator));
        }
        Ok(())
    }

    /// Input after input until there is a reason to stop.
    ///
    /// # Errors
    /// When the conversation cannot go on.
    async fn speak(&mut self, first: usize, most: usize, brief: Option<&Brief>) -> Result<Stopped, Failure> {
        loop {
            if self.turns().len() - first >= most {
                return Ok(Stopped::by(Termination::MaxTurns));
            }
            if self.is_enough(brief).await? {
                return Ok(Stopped::by(Termination::StopCondition));
            }
            match self.ask_simulator(first + most, brief).await? {
                Simulated::Done(stopped) => return Ok(stopped),
                Simulated::Says(given) => self.turn(*given).await?,
            }
        }
    }

    /// Whether what was to stop the conversation is so.
    ///
    /// # Errors
    /// When that cannot be decided.
    async fn is_enough(&mut self, brief: Option<&Brief>) -> Result<bool, Failure> {
        if self.case.is_dynamic && checkpoints::all_reached(&self.checkpoints) {
            return Ok(true);
        }
        let Some(brief) = brief.filter(|brief| !brief.stop_when.is_empty() && !self.turns().is_empty())
        else {
            return Ok(false);
        };
        let begun = Instant::now();
        let looked = Looked::Whole { is_final: false };
        let decided = self.deciding.decide(&brief.stop_when, looked, &mut self.recorder).await;
        self.paused += begun.elapsed();
        if let Some((checked, words)) = decided.iter().find_map(|c| Some((c, c.error.as_deref()?))) {
            let kind = super::deciding::asked_kind(&checked.check);
            return Err(roles::failure(kind, &format!("`stop_when`: {words}")));
        }
        Ok(decided.iter().all(|checked| checked.verdict.passed))
    }

    /// Asks the simulated user what comes next; `most` is how many turns the conversation may have.
    ///
    /// # Errors
    /// When it cannot be asked, says nothing of use, or does not behave as a user.
    pub(super) async fn ask_simulator(
        &mut self,
        most: usize,
        brief: Option<&Brief>,
    ) -> Result<Simulated, Failure> {
        let place = self.turns().len();
        let failed = |words: &str| roles::failure(FailureKind::SimulatorError, words);
        let mut left = if brief.is_some() { RETRIES } else { 0 };
        let (answer, exchange) = loop {
            let (answer, exchange) = self.put(most, brief).await?;
            match answer {
                Ok(answer) => break (answer, exchange),
                Err(words) => {
                    self.keep(exchange);
                    if left == 0 {
                        return Err(failed(&words));
                    }
                    left -= 1;
                }
            }
        };
        let stopped = |reason| Stopped {
            reason,
            goal_progress: answer.goal_progress.clone(),
            detail: answer.reason.clone(),
        };
        match answer.next {
            UserDecision::Says(text) => {
                if let Some(words) = brief.and_then(|brief| self.misconduct(brief, &text)) {
                    self.keep(exchange.wrong(words.clone()));
                    return Err(failed(&words));
                }
                let given = Given::said(text, &self.case.unwritten, "simulator", Some(exchange));
                Ok(Simulated::Says(Box::new(given)))
            }
            UserDecision::GoalAchieved if place == 0 => {
                Err(self.too_soon(exchange, "it says that its goal is achieved before it has said anything"))
            }
            UserDecision::GivesUp if place == 0 => {
                Err(self.too_soon(exchange, "it gives up before it has said anything"))
            }
            UserDecision::GoalAchieved => {
                self.keep(exchange);
                Ok(Simulated::Done(stopped(Termination::GoalReached)))
            }
            UserDecision::GivesUp => {
                self.keep(exchange);
                Ok(Simulated::Done(stopped(Termination::GaveUp)))
            }
        }
    }

    /// Puts the question what comes next to the simulated user once.
    ///
    /// # Errors
    /// When there is nobody to ask, and when the time of the conversation is over.
    async fn put(
        &mut self,
        most: usize,
        brief: Option<&Brief>,
    ) -> Result<(Result<UserAnswer, String>, Exchange), Failure> {
        let simulator = self.case.simulator.as_ref();
        let ids = |is_reached: bool| -> Vec<&str> {
            let some =
                self.checkpoints.iter().filter(|reached: &&Reached| reached.at.is_some() == is_reached);
            some.map(|reached| reached.checkpoint.id.as_str()).collect()
        };
        let limit = self.whole_limit();
        let topic = self.conversation().current_topic.as_deref();
        let dialogue = Dialogue::of(&self.case.opening.messages, self.recorder.conversation());
        let turn_number = self.turns().len() + 1;
        let told: Option<Map<String, Value>> = brief.map(|brief| {
            brief.told(topic).into_iter().map(|(key, value)| (key.to_string(), value)).collect()
        });
        let template = brief.and_then(|brief| {
            let text = brief.template.as_ref()?.text.as_deref()?;
            Some(filled(text, brief, topic, dialogue, [turn_number, most]))
        });
        let nothing = Map::new();
        let options = brief.map(|brief| &brief.options).or(simulator.map(|simulator| &simulator.options));
        let question = SimulatorQuestion {
            options: options.unwrap_or(&nothing),
            told: told.as_ref(),
            prompt: template.as_deref(),
            test_id: &self.case.id,
            session_id: &self.deciding.session_id,
            dialogue,
            as_messages: simulator.is_some_and(|simulator| simulator.style == Style::Transcript),
            turn_number,
            max_turns: most,
            checkpoints: (&ids(true), &ids(false)),
            until: limit.map(|(at, _)| at),
        };
        if let Some(kept) = self.counterpart.kept() {
            return kept.simulated(&question, self.recorder.redactor());
        }
        let Some(role) = self.deciding.partners.simulator(self.who_simulates(brief)) else {
            let words = "there is no simulated user to ask";
            return Err(roles::failure(FailureKind::SimulatorError, words));
        };
        match role.simulate(question).await {
            Ok(answered) => Ok(answered),
            Err(Unanswered::Failed(words)) => Err(roles::failure(FailureKind::SimulatorError, &words)),
            Err(Unanswered::Deadline) => {
                self.limit = limit.map(|(_, limit)| limit);
                let limit = self.limit.unwrap_or_default();
                let message = format!("the case timed out after {} ms", limit.as_millis());
                Err(Failure::new(FailureKind::Timeout, message))
            }
        }
    }

    /// The failure of a simulated user that has nothing to say from the beginning.
    fn too_soon(&mut self, exchange: Exchange, words: &str) -> Failure {
        self.keep(exchange.wrong(words.to_string()));
        roles::failure(FailureKind::SimulatorError, words)
    }

    /// What is wrong with what a simulated user says, if anything is.
    fn misconduct(&self, brief: &Brief, said: &str) -> Option<String> {
        let conversation = self.conversation();
        let character = brief.character_in(conversation.current_topic.as_deref());
        let simulated = conversation.turns.iter().filter(|turn| &*turn.caller == "simulator");
        let conduct = Conduct {
            character: &character,
            earlier: simulated.filter_map(|turn| turn.user.as_deref()).collect(),
            last_response: conversation.turns.last().and_then(|turn| turn.answer()).unwrap_or_default(),
            most_repeats: brief.most_repeats(),
        };
        conduct.wrong(said)
    }

    /// Keeps an exchange that begins no turn: with the last one, and where there is none, with none.
    pub(super) fn keep(&mut self, exchange: Exchange) {
        let turn_id = self.turns().last().map_or_else(|| "no-turn".into(), |turn| turn.id.clone());
        self.recorder.emit(exchange.of_turn(turn_id));
    }
}

/// A prompt of a case's own with all its places filled in.
fn filled(
    template: &str,
    brief: &Brief,
    topic: Option<&str>,
    dialogue: Dialogue<'_>,
    [turn, most]: [usize; 2],
) -> String {
    let character = brief.character_in(topic);
    let mut system = String::new();
    let mut section = |title: &str, text: Option<String>| {
        if let Some(text) = text {
            system.push_str(&format!("### {title}\n{text}\n\n"));
        }
    };
    section("Character", character.role.clone());
    section("Personality", character.personality.as_ref().map(|notes| notes.lines()));
    section("Context", character.context.as_ref().map(|notes| notes.lines()));
    section("Goal", brief.goal.clone());
    let list = |title: &str, texts: &[String]| match texts {
        [] => String::new(),
        texts => format!("{title}\n{}\n", texts.iter().map(|text| format!("- {text}\n")).collect::<String>()),
    };
    let rules = list("You SHOULD:", &character.should) + &list("You should NOT:", &character.should_not);
    // What was said is JSON, a line each: nothing in it can look like another line.
    let said: Vec<String> = dialogue.json().iter().map(Value::to_string).collect();
    let values = [
        ("system", system.trim_end().to_string()),
        ("rules", rules.trim_end().to_string()),
        ("conversation", said.join("\n")),
        ("turn", turn.to_string()),
        ("max_turns", most.to_string()),
    ];
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, behind)) = behind.split_once("}}") else {
            out.push_str("{{");
            rest = behind;
            continue;
        };
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name.trim()) {
            out.push_str(value);
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}
