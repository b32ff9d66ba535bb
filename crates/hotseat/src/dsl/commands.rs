//! Executes the commands of an example on its session.

use std::ops::RangeInclusive;
use std::sync::Arc;

use hotseat_trace::{AttemptFailure, FailureKind};

use super::assertion_checks::build_checks;
use super::caller_location::CallerLocation;
use super::conversation::{CURRENT_VIEW, SharedView, lock};
use super::example_facts::ExampleFacts;
use super::session_channel::{AssertionRequest, CaseAlreadyEnded, SessionCommand};
use super::simulator::{SimulationResult, SimulatorSettings, total_duration};
use super::topics::Graph;
use super::user_turn::UserTurnBuilder;
use super::views::Evaluation;
use hotseat_checks::Check;
use hotseat_engine::cases::parse_turn;
use hotseat_engine::session::{CheckSubject, EndedCaseError, Session, SimulationOptions};

/// Executes commands of one example on its session, and updates its snapshot.
pub(super) struct CommandHandler<'h, 's> {
    pub session: &'h mut Session<'s>,
    pub example: Arc<ExampleFacts>,
    pub view: SharedView,
}

impl CommandHandler<'_, '_> {
    /// Executes a command and sends the reply. The reply is dropped if the example has ended.
    pub async fn handle(&mut self, order: SessionCommand) {
        // Test functions that the session calls meanwhile need the same snapshot.
        let seen = self.view.clone();
        CURRENT_VIEW.scope(seen, self.dispatch(order)).await;
    }

    async fn dispatch(&mut self, order: SessionCommand) {
        match order {
            SessionCommand::Say { turn: said, reply } => {
                let said = self.say(said).await;
                self.publish(true);
                let _ = reply.send(said.map_err(|_| CaseAlreadyEnded));
            }
            SessionCommand::Simulate { brief, at, reply } => {
                let simulated = self.simulate(&brief, at).await;
                self.publish(true);
                let _ = reply.send(simulated.map_err(|_| CaseAlreadyEnded));
            }
            SessionCommand::DeclareGraph { graph, at, reply } => {
                let declared = self.declare_graph(&graph, at).await;
                self.publish(true);
                let _ = reply.send(declared.map_err(|_| CaseAlreadyEnded));
            }
            SessionCommand::Check { asserted, reply } => {
                let decided = self.decide_assertion(asserted).await;
                self.publish(false);
                let _ = reply.send(decided.map_err(|_| CaseAlreadyEnded));
            }
            SessionCommand::Skip(reason) => {
                self.session.skip(reason);
                self.publish(false);
            }
            SessionCommand::TestError { words, at } => {
                self.fail_test(&words, at);
                self.publish(false);
            }
            SessionCommand::Log(line) => self.session.log(line),
            SessionCommand::Overlap { at, reply } => {
                self.fail_test("a turn is in progress: wait for it before the next turn or assertion", at);
                self.publish(false);
                let _ = reply.send(Err(CaseAlreadyEnded));
            }
            SessionCommand::Synchronize(reply) => drop(reply.send(Ok(()))),
        }
    }

    /// Evaluates the assertions of topics. Must run before the example is dropped, since these may call
    /// functions of the test.
    pub async fn finish(&mut self) {
        if self.session.ensure_open().is_err() {
            return;
        }
        let of_topics = self.session.topics().into_iter().flat_map(|topics| topics.every_check());
        let reads_calls = self.session.case().every_check().chain(of_topics).any(Check::reads_calls);
        let all_turns = 1..=self.session.conversation().turns.len();
        if reads_calls && self.ensure_calls_known(all_turns, self.example.at).is_err() {
            return;
        }
        CURRENT_VIEW.scope(self.view.clone(), self.session.evaluate_all_topics()).await;
    }

    /// Checks that the tool calls of some turns are known. Otherwise the case fails with a test error.
    fn ensure_calls_known(
        &mut self,
        turns: RangeInclusive<usize>,
        at: CallerLocation,
    ) -> Result<(), EndedCaseError> {
        let unknown = lock(&self.view).turn_notes.unknown_calls(turns);
        unknown.map_or(Ok(()), |words| Err(self.fail_test(&words, at)))
    }

    /// Fails the case with a test error.
    pub fn fail_test(&mut self, words: &str, at: CallerLocation) -> EndedCaseError {
        self.session.fail(test_error(format!("{words} ({at})")))
    }

    /// Updates the snapshot. The conversation is cloned only after a turn.
    fn publish(&self, said: bool) {
        let mut seen = lock(&self.view);
        seen.ended = self.session.ensure_open().is_err();
        if said {
            seen.turn_in_progress = false;
            seen.conversation = Arc::new(self.session.conversation().clone());
        }
        let known = seen.evaluations.len();
        if self.session.checks().len() > known {
            let new = self.session.checks()[known..].iter().map(Evaluation::from_result);
            Arc::make_mut(&mut seen.evaluations).extend(new);
        }
    }

    async fn say(&mut self, said: UserTurnBuilder) -> Result<(), EndedCaseError> {
        let UserTurnBuilder { members: written, at } = said;
        let options = written.get("options").cloned();
        let turn = parse_turn(&written.into(), self.session.case(), self.session.redactor(), at.place());
        let mut turn = turn.map_err(|error| self.fail_test(&error.to_string(), at))?;
        let loaded = turn.load_attachments(&[&self.example.folder]);
        loaded.map_err(|error| self.fail_test(&error.to_string(), at))?;
        if let Some(options) = options {
            let number = self.session.conversation().turns.len() + 1;
            let mut seen = lock(&self.view);
            Arc::make_mut(&mut seen.turn_notes).options.insert(number, options);
        }
        self.session.send_turn(turn).await
    }

    async fn simulate(
        &mut self,
        brief: &SimulatorSettings,
        at: CallerLocation,
    ) -> Result<SimulationResult, EndedCaseError> {
        let told = brief.to_case_brief(&self.example.simulators, at);
        let mut told = told.map_err(|error| self.fail_test(&error.to_string(), at))?;
        if let Some(template) = &mut told.template {
            let read = template.load(std::slice::from_ref(&self.example.folder));
            read.map_err(|error| self.fail_test(&error.to_string(), at))?;
        }
        let first = self.session.conversation().turns.len();
        let simulation = SimulationOptions { max_turns: told.max_turns, brief: Some(Arc::new(told)) };
        let stopped = self.session.simulate(simulation).await?;
        let turns = &self.session.conversation().turns[first..];
        Ok(SimulationResult {
            reason: stopped.reason,
            goal_progress: stopped.goal_progress.as_deref().map(str::to_string),
            detail: stopped.detail,
            turns: turns.len(),
            duration: total_duration(turns),
        })
    }

    async fn declare_graph(&mut self, graph: &Graph, at: CallerLocation) -> Result<(), EndedCaseError> {
        let ExampleFacts { topics, criteria, .. } = &*self.example;
        match graph.to_case_topics(topics, criteria, self.session, at) {
            Ok(topics) => self.session.declare_topics(Arc::new(topics)).await,
            Err(wrong) => {
                let mut words = wrong.iter().map(|(words, at)| format!("{words} ({at})"));
                let first = words.next().unwrap_or_default();
                let rest = words.collect::<Vec<_>>().join("\n");
                Err(self.session.fail(test_error(first).with_detail(rest)))
            }
        }
    }

    /// Evaluates an assertion. Returns true if it passes.
    async fn decide_assertion(&mut self, asserted: AssertionRequest) -> Result<bool, EndedCaseError> {
        let AssertionRequest { assertion, strength, message, at } = asserted;
        let place = at.place();
        let (criteria, redactor) = (&self.example.criteria, self.session.redactor());
        let found = build_checks(assertion.kind, assertion.negated, &place, criteria, redactor);
        let checks = found.map_err(|words| self.fail_test(&words, at))?;
        if checks.iter().any(Check::reads_calls) {
            let last = self.session.conversation().turns.len();
            let first = if assertion.subject == CheckSubject::LastTurn { last } else { 1 };
            self.ensure_calls_known(first..=last, at)?;
        }
        let own = |check: Check| {
            let message = message.clone().or(check.message.clone());
            Check { place: place.clone(), strength, message, ..check }
        };
        let checks = checks.into_iter().map(own).collect();
        let decided = self.session.evaluate_all(checks, assertion.subject).await?;
        Ok(decided.iter().all(|checked| checked.verdict.passed))
    }
}

pub(super) fn test_error(message: String) -> AttemptFailure {
    AttemptFailure::new(FailureKind::TestError, message)
}
