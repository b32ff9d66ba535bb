//! Lets a simulated user continue a conversation.

use std::sync::Arc;

use hotseat_trace::{AttemptFailure, FailureKind, SimulationEnded, SimulationStarted, TerminationReason};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::evaluate::CheckScope;
use super::simulator_rules::SimulatorRules;
use super::turn::TurnInput;
use crate::cases::{DEFAULT_MAX_INPUTS, ProgramInputError, SimulatorBrief, TranscriptStyle};
use crate::roles::{self, Dialogue, RoleError, RoleExchange, SimulatorQuestion, UserAnswer, UserDecision};
use crate::session::{CheckResult, CheckpointResult, EndedCaseError, Session, checkpoints};
use hotseat_checks::RoleReference;

/// Number of retries if a simulated user with a goal gives an unusable answer.
const MAX_ANSWER_RETRIES: usize = 2;

/// Next step of a simulated user.
pub(super) enum SimulatorStep {
    /// It sends an input.
    Input(Box<TurnInput<'static>>),
    /// It has stopped.
    Done(SimulationOutcome),
}

/// Options of a simulation: a part of a conversation in which a simulated user gives the inputs.
#[derive(Debug, Clone, Default)]
pub struct SimulationOptions {
    /// Maximum number of inputs, if set.
    pub max_turns: Option<usize>,
    /// Brief of the simulated user; `None` uses the brief of the case.
    pub brief: Option<Arc<SimulatorBrief>>,
}

/// The reason why a simulated user has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulationOutcome {
    /// The reason.
    pub reason: TerminationReason,
    /// Progress towards the goal as the simulator reports it: `none`, `partial`, `achieved`.
    pub goal_progress: Option<Arc<str>>,
    /// Further explanation.
    pub detail: Option<String>,
}

impl SimulationOutcome {
    fn new(reason: TerminationReason) -> SimulationOutcome {
        SimulationOutcome { reason, goal_progress: None, detail: None }
    }
}

impl Session<'_> {
    /// Lets a simulated user continue the conversation. Fails if the case has ended, or ends during the
    /// simulation.
    pub async fn simulate(
        &mut self,
        simulation: SimulationOptions,
    ) -> Result<SimulationOutcome, EndedCaseError> {
        self.ensure_open()?;
        let brief = match simulation.brief {
            Some(brief) => Some(self.resolve_brief(brief)?),
            None => self.case.brief().cloned(),
        };
        let limit = simulation.max_turns.or_else(|| brief.as_ref()?.max_turns).or(self.case.max_turns);
        let most = limit.unwrap_or(DEFAULT_MAX_INPUTS);
        let most = match self.case.max_turns.filter(|_| self.case.program.is_some()) {
            Some(whole) => most.min(whole.saturating_sub(self.turns().len())),
            None => most,
        };
        if let Err(error) = self.ensure_simulator(brief.as_deref()) {
            return Err(self.fail(roles::role_failure(FailureKind::SimulatorError, &error.to_string())));
        }
        let first = self.turns().len();
        self.recorder.emit(SimulationStarted {
            turn: first + 1,
            goal: brief.as_ref().and_then(|brief| brief.goal.clone()),
            max_turns: most,
        });
        let stopped = self.run_simulation(first, most, brief.as_deref()).await;
        let ended = match &stopped {
            Ok(stopped) => stopped.clone(),
            Err(failure) => SimulationOutcome {
                detail: Some(failure.message.clone()),
                ..SimulationOutcome::new(TerminationReason::Error)
            },
        };
        self.recorder.emit(SimulationEnded {
            reason: ended.reason,
            turns: self.turns().len() - first,
            goal_progress: ended.goal_progress,
            detail: ended.detail,
        });
        let stopped = stopped.map_err(|failure| self.fail(failure))?;
        if self.case.program.is_some() {
            // The program's next step may depend on the results of its topics.
            let first = self.checks.len();
            self.evaluate_all_topics().await;
            self.check_hard_failures(first)?;
        }
        Ok(stopped)
    }

    /// Resolves the references in a brief given by a program. Fails if a reference is unknown, which ends the
    /// case.
    fn resolve_brief(
        &mut self,
        mut brief: Arc<SimulatorBrief>,
    ) -> Result<Arc<SimulatorBrief>, EndedCaseError> {
        self.vocabulary = Arc::new(self.vocabulary.with_goal(brief.goal.clone()));
        let mut diagnostics = self.resolve_references(Arc::make_mut(&mut brief).stop_when.iter_mut());
        diagnostics.extend(self.unknown_topics(brief.stop_when.iter()));
        diagnostics.extend(brief.unknown_topics(self.topics()));
        self.fail_on(diagnostics)?;
        Ok(brief)
    }

    /// Returns the reference to the simulator: from the brief, else from the case.
    fn simulator_reference<'b>(&'b self, brief: Option<&'b SimulatorBrief>) -> Option<&'b RoleReference> {
        let of_case = || self.case.simulator.as_ref()?.reference.as_ref();
        brief.and_then(|brief| brief.reference.as_ref()).or_else(of_case)
    }

    /// Makes sure that the simulator exists. Programs name it only at run time. Fails if there is no such
    /// simulator.
    fn ensure_simulator(&mut self, brief: Option<&SimulatorBrief>) -> Result<(), ProgramInputError> {
        if self.counterpart.recorded().is_some() {
            return Ok(());
        }
        let Some(finds) = self.evaluator.roles.role_lookup.clone() else { return Ok(()) };
        let reference = self.simulator_reference(brief).cloned();
        let simulators = &mut self.evaluator.roles.simulators;
        if simulators.iter().all(|(known, _)| *known != reference) {
            let simulator = finds.simulator(reference.as_ref(), &self.case.place)?;
            simulators.push((reference, simulator));
        }
        Ok(())
    }

    /// Sends inputs until there is a reason to stop. Fails if the conversation cannot continue.
    async fn run_simulation(
        &mut self,
        first: usize,
        most: usize,
        brief: Option<&SimulatorBrief>,
    ) -> Result<SimulationOutcome, AttemptFailure> {
        loop {
            if self.turns().len() - first >= most {
                return Ok(SimulationOutcome::new(TerminationReason::MaxTurns));
            }
            if self.should_stop(brief).await? {
                return Ok(SimulationOutcome::new(TerminationReason::StopCondition));
            }
            match self.ask_simulator(first + most, brief).await? {
                SimulatorStep::Done(stopped) => return Ok(stopped),
                SimulatorStep::Input(input) => self.run_turn(*input).await?,
            }
        }
    }

    /// Returns true if a stop condition is met. Fails if a condition cannot be evaluated.
    async fn should_stop(&mut self, brief: Option<&SimulatorBrief>) -> Result<bool, AttemptFailure> {
        if checkpoints::all_reached(&self.checkpoints) {
            return Ok(true);
        }
        let Some(brief) = brief.filter(|brief| !brief.stop_when.is_empty() && !self.turns().is_empty())
        else {
            return Ok(false);
        };
        if let Some(problem) = brief.stop_when.iter().find_map(|check| self.unseen_calls(check)) {
            self.assumed_no_calls.get_or_insert(problem);
        }
        let begun = Instant::now();
        let looked = CheckScope::Condition { start: 0, end: self.turns().len() };
        let decided = self.evaluator.evaluate(&brief.stop_when, looked, &mut self.recorder).await;
        self.paused += begun.elapsed();
        self.logs.extend(decided.iter().flat_map(|checked| checked.said.iter().cloned()));
        if let Some((kind, words)) = decided.iter().find_map(CheckResult::evaluation_error) {
            return Err(roles::role_failure(kind, &format!("`stop_when`: {words}")));
        }
        Ok(decided.iter().all(|checked| checked.verdict.passed))
    }

    /// Asks the simulated user for the next input; `most` is the maximum number of turns of the conversation.
    /// Fails if it cannot be asked, gives no usable answer, or violates the simulator rules.
    pub(super) async fn ask_simulator(
        &mut self,
        most: usize,
        brief: Option<&SimulatorBrief>,
    ) -> Result<SimulatorStep, AttemptFailure> {
        let place = self.turns().len();
        let failed = |words: &str| roles::role_failure(FailureKind::SimulatorError, words);
        let mut left = if brief.is_some() { MAX_ANSWER_RETRIES } else { 0 };
        let (answer, exchange) = loop {
            let (answer, exchange) = self.ask_once(most, brief).await?;
            match answer {
                Ok(answer) => break (answer, exchange),
                Err(error) => {
                    self.record_exchange(exchange);
                    self.misses_recording |= matches!(error, RoleError::NotRecorded(_));
                    if left == 0 || error.is_final() {
                        return Err(failed(&error.to_string()));
                    }
                    left -= 1;
                }
            }
        };
        let stopped = |reason| SimulationOutcome {
            reason,
            goal_progress: answer.goal_progress.clone(),
            detail: answer.reason.clone(),
        };
        match answer.next {
            UserDecision::Says(text) => {
                if let Some(words) = brief.and_then(|brief| self.rule_violation(brief, &text)) {
                    return Err(self.simulator_failure(exchange, &words));
                }
                let input = TurnInput::from_text(text, &self.case.turn_defaults, "simulator", Some(exchange));
                Ok(SimulatorStep::Input(Box::new(input)))
            }
            UserDecision::GoalAchieved if place == 0 => {
                Err(self
                    .simulator_failure(exchange, "it reports its goal as achieved before its first input"))
            }
            UserDecision::GivesUp if place == 0 => {
                Err(self.simulator_failure(exchange, "it stops before its first input"))
            }
            UserDecision::GoalAchieved => {
                self.record_exchange(exchange);
                Ok(SimulatorStep::Done(stopped(TerminationReason::GoalReached)))
            }
            UserDecision::GivesUp => {
                self.record_exchange(exchange);
                Ok(SimulatorStep::Done(stopped(TerminationReason::GaveUp)))
            }
        }
    }

    /// Asks the simulated user once. Fails if there is no simulator, or the time limit of the case ends before it
    /// answers: the party that is awaited at the limit is at fault.
    async fn ask_once(
        &mut self,
        most: usize,
        brief: Option<&SimulatorBrief>,
    ) -> Result<(Result<UserAnswer, RoleError>, RoleExchange), AttemptFailure> {
        let simulator = self.case.simulator.as_ref();
        let ids = |is_reached: bool| -> Vec<&str> {
            let of_state = |reached: &&CheckpointResult| reached.at.is_some() == is_reached;
            self.checkpoints.iter().filter(of_state).map(|reached| reached.checkpoint.id.as_str()).collect()
        };
        let limit = self.case_deadline();
        let topic = self.conversation().current_topic.as_deref();
        let dialogue = Dialogue::new(&self.case.opening.messages, self.recorder.conversation());
        let turn_number = self.turns().len() + 1;
        let brief_values: Option<Map<String, Value>> = brief.map(|brief| {
            brief.prompt_values(topic).into_iter().map(|(key, value)| (key.to_string(), value)).collect()
        });
        let template = brief.and_then(|brief| {
            let text = brief.template.as_ref()?.text.as_deref()?;
            Some(fill_prompt_template(text, brief, topic, dialogue, [turn_number, most]))
        });
        let nothing = Map::new();
        let options = brief.map(|brief| &brief.options).or(simulator.map(|simulator| &simulator.options));
        let question = SimulatorQuestion {
            options: options.unwrap_or(&nothing),
            brief_values: brief_values.as_ref(),
            prompt: template.as_deref(),
            test_id: &self.case.id,
            session_id: &self.evaluator.session_id,
            dialogue,
            as_messages: simulator.is_some_and(|simulator| simulator.style == TranscriptStyle::Transcript),
            turn_number,
            max_turns: most,
            checkpoints: (&ids(true), &ids(false)),
            deadline: limit.map(|(at, _)| at),
        };
        if let Some(kept) = self.counterpart.recorded() {
            return kept.next_simulator_answer(&question, self.recorder.redactor());
        }
        let Some(role) = self.evaluator.roles.simulator(self.simulator_reference(brief)) else {
            let words = "no simulated user is configured";
            return Err(roles::role_failure(FailureKind::SimulatorError, words));
        };
        let (answer, exchange) = role.simulate(question).await;
        if let (Err(RoleError::Deadline), Some((_, limit))) = (&answer, limit) {
            let words =
                format!("no answer before the time limit of the case ({} ms) ended", limit.as_millis());
            return Err(self.simulator_failure(exchange, &words));
        }
        Ok((answer, exchange))
    }

    /// Records an exchange that ends the conversation, and returns the failure of the simulated user.
    fn simulator_failure(&mut self, exchange: RoleExchange, words: &str) -> AttemptFailure {
        self.record_exchange(exchange.with_error(words));
        roles::role_failure(FailureKind::SimulatorError, words)
    }

    /// Returns the rule that an input of the simulated user violates, if any.
    fn rule_violation(&self, brief: &SimulatorBrief, text: &str) -> Option<String> {
        let conversation = self.conversation();
        let character = brief.persona_in(conversation.current_topic.as_deref());
        let simulated = conversation.turns.iter().filter(|turn| &*turn.caller == "simulator");
        let conduct = SimulatorRules {
            character: &character,
            earlier: simulated.filter_map(|turn| turn.user.as_deref()).collect(),
            last_response: conversation.turns.last().and_then(|turn| turn.answer()).unwrap_or_default(),
            max_repeats: brief.repeat_limit(),
        };
        conduct.violation(text)
    }

    /// Records an exchange that starts no turn as part of the last turn, if there is one.
    pub(super) fn record_exchange(&mut self, exchange: RoleExchange) {
        let turn_id = self.turns().last().map_or_else(|| "no-turn".into(), |turn| turn.id.clone());
        self.recorder.emit(exchange.into_payload(turn_id));
    }
}

/// Fills in the placeholders of a case's own prompt template.
fn fill_prompt_template(
    template: &str,
    brief: &SimulatorBrief,
    topic: Option<&str>,
    dialogue: Dialogue<'_>,
    [turn, most]: [usize; 2],
) -> String {
    let character = brief.persona_in(topic);
    let mut system = String::new();
    let mut section = |title: &str, text: Option<String>| {
        if let Some(text) = text {
            system.push_str(&format!("### {title}\n{text}\n\n"));
        }
    };
    section("Character", character.role.clone());
    section("Personality", character.personality.as_ref().map(|notes| notes.to_text()));
    section("Context", character.context.as_ref().map(|notes| notes.to_text()));
    section("Goal", brief.goal.clone());
    let list = |title: &str, texts: &[String]| match texts {
        [] => String::new(),
        texts => format!("{title}\n{}\n", texts.iter().map(|text| format!("- {text}\n")).collect::<String>()),
    };
    let rules = list("You SHOULD:", &character.should) + &list("You should NOT:", &character.should_not);
    // The dialogue is JSON, one line per message, so that no text can imitate another line.
    let messages: Vec<String> = dialogue.to_json().iter().map(Value::to_string).collect();
    let values = [
        ("system", system.trim_end().to_string()),
        ("rules", rules.trim_end().to_string()),
        ("conversation", messages.join("\n")),
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
