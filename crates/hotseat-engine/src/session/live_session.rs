//! The session: one running conversation, independent of the front end that drives it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    AttemptFailure, CallVisibility, ConversationFailed, ConversationTurn as Turned, FailureKind, Note,
    TracedConversation, TurnFailed, TurnOutcome, Verdict,
};
use tokio::time::Instant;

use super::checkpoints::CheckpointResult;
use super::conversation_ending::{ConversationEnding, SkipReason, cancelled_failure};
use super::evaluate::{CheckEvaluator, CheckScope, failure_from_checks};
use super::mcp_results::{
    differing_results, late_answers, late_call, unreached_faults, with_unreached_faults,
};
use super::recorded_conversation::{RecordedConversation, SessionCounterpart, rerun_required};
use super::resolve_references::{missing_times, test_error};
use super::topic_tracker::TopicTracker;
use super::turn::{DeadlineSource, TurnInput, execute_turn, failure_info, judge_turn_end};
use crate::cases::{
    CaseTopics, CaseTurn, CheckVocabulary, MODEL_PREFIX, McpAddresses, TestCase, refuse_all_turns,
};
use crate::scripts::ScriptCapabilities;
use crate::session::{CheckResult, ConversationResult, ProgramChecks, SessionRoles, SessionTimeouts};
use hotseat_checks::Check;
use hotseat_document::Diagnostic;
use hotseat_targets::message::{ScriptedAnswers, media_parts};
use hotseat_targets::recorder::{SecretRedactor, TraceRecorder};
use hotseat_targets::{AgentSession, ProtocolCapabilities, TurnError, TurnLimits};

/// Default time limit of open-ended conversations: those with a simulated user or driven by a program.
const DEFAULT_OPEN_ENDED_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum number of checks that the program of a case may make.
pub const MAX_PROGRAM_CHECKS: usize = 10_000;

/// Error of a request made after the case has ended: nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCaseError {
    /// The reason.
    pub reason: String,
    /// True if this request itself ended the case, false if it had ended before.
    pub ended_now: bool,
}

/// The subject of a check made by a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckSubject {
    /// The last turn.
    LastTurn,
    /// The conversation so far.
    Conversation,
    /// A value of the test. The result is reported with the preceding turn.
    Value,
}

/// A running conversation.
///
/// The driver sends the user's inputs and makes checks; the session records the results, so the verdict does
/// not depend on the driver. A failed hard check ends the case, unless the case continues after failures; a
/// soft check is only recorded.
pub struct Session<'a> {
    pub(super) case: &'a TestCase,
    pub(super) counterpart: SessionCounterpart<'a>,
    pub(super) evaluator: CheckEvaluator<'a>,
    timeouts: SessionTimeouts,
    script: ScriptedAnswers,
    pub(super) recorder: TraceRecorder,
    started: Instant,
    /// Time spent on judges and human input. Time limits of the conversation do not count it.
    pub(super) paused: Duration,
    /// Whether a replayed cassette had no answer of the simulated user.
    pub(super) misses_recording: bool,
    pub(super) checks: Vec<CheckResult>,
    pub(super) checkpoints: Vec<CheckpointResult>,
    pub(super) limit: Option<Duration>,
    pub(super) logs: Vec<String>,
    /// Remarks on the conversation that do not change the verdict.
    pub(super) warnings: Vec<String>,
    /// The first failed turn, if the case continues after failures.
    first_failure: Option<AttemptFailure>,
    /// Problem of the first check that was decided as if there were no calls, before the agent used a service of the test.
    pub(super) assumed_no_calls: Option<Diagnostic>,
    /// How the conversation ended; `None` while it is running.
    ending: Option<ConversationEnding>,
    /// True if it reached its end without an error or a failed check that ends it early.
    is_complete: bool,
    /// The topics that are tracked, and the current one.
    pub(super) topic_tracker: Option<TopicTracker>,
    /// Vocabulary that resolves references of checks made by a program: the case's, with the goal stated
    /// last.
    pub(super) vocabulary: Arc<CheckVocabulary>,
}

/// Checks that the agent supports everything the case sends.
fn check_capabilities(case: &TestCase, agent: &mut dyn AgentSession) -> Result<(), AttemptFailure> {
    let carries = agent.capabilities();
    let cannot = |what: &str| {
        let message = format!("{what} cannot be sent: this kind of target does not support it");
        Err(AttemptFailure::new(FailureKind::TestError, message))
    };
    let attached = case.turns.iter().any(|turn| media_parts(&turn.content).next().is_some());
    let attached = attached
        || case.opening.messages.iter().any(|message| media_parts(&message.content).next().is_some());
    if !case.opening.messages.is_empty() && !carries.history {
        return cannot("messages before the first turn");
    }
    if attached && !carries.attachments {
        return cannot("attachments");
    }
    let options = case.turns.iter().chain([&case.turn_defaults]).any(|turn| turn.options.is_some());
    if options && !carries.options {
        return cannot("`options`");
    }
    agent.seed_history(&case.opening.messages)?;
    // A replay reads its recording with the history.
    if agent.capabilities().calls == CallVisibility::Hidden
        && let Some(hidden) = case.hidden_calls()
    {
        return Err(test_error(hidden.into()));
    }
    check_timestamps(agent.has_timestamps(), case)
}

/// Checks that assertions about time can be evaluated.
fn check_timestamps(known: bool, case: &TestCase) -> Result<(), AttemptFailure> {
    match case.every_check().find(|check| check.is_timing()) {
        Some(check) if !known => Err(test_error(missing_times(&check.place).into())),
        _ => Ok(()),
    }
}

impl<'a> Session<'a> {
    /// Opens a session. `script` holds the answers of client-side tools. If the conversation cannot start,
    /// the session has ended before anything is sent.
    pub fn open(
        case: &'a TestCase,
        agent: &'a mut dyn AgentSession,
        script: ScriptedAnswers,
        timeouts: SessionTimeouts,
        partners: SessionRoles,
        recorder: TraceRecorder,
    ) -> Session<'a> {
        let unsupported = check_capabilities(case, agent);
        Session::build(
            case,
            SessionCounterpart::Agent(agent),
            unsupported,
            script,
            timeouts,
            partners,
            recorder,
        )
    }

    /// Opens a session that re-evaluates a recorded conversation; the agent is not contacted.
    pub fn reevaluate(
        case: &'a TestCase,
        kept: &'a mut RecordedConversation,
        script: ScriptedAnswers,
        timeouts: SessionTimeouts,
        partners: SessionRoles,
        mut recorder: TraceRecorder,
    ) -> Session<'a> {
        if let Some((offset, wall)) = kept.started_at() {
            recorder.set_time(offset, wall);
        }
        let counterpart = SessionCounterpart::Recorded(kept);
        let unsupported = check_timestamps(counterpart.has_timestamps(), case);
        Session::build(case, counterpart, unsupported, script, timeouts, partners, recorder)
    }

    fn build(
        case: &'a TestCase,
        counterpart: SessionCounterpart<'a>,
        start: Result<(), AttemptFailure>,
        script: ScriptedAnswers,
        timeouts: SessionTimeouts,
        partners: SessionRoles,
        mut recorder: TraceRecorder,
    ) -> Session<'a> {
        recorder.set_call_visibility(counterpart.capabilities().calls);
        if !case.mcp.is_empty() {
            recorder.set_test_servers(case.mcp.iter().map(|(name, _)| name.into()).collect());
        }
        let mut session = Session {
            case,
            evaluator: CheckEvaluator { case, session_id: counterpart.conversation_id(), roles: partners },
            counterpart,
            timeouts,
            script: script.with_asking_tools(case.signs.tools.clone()),
            recorder,
            started: Instant::now(),
            paused: Duration::ZERO,
            misses_recording: false,
            checks: Vec::new(),
            checkpoints: case.checkpoints.iter().map(CheckpointResult::new).collect(),
            limit: None,
            logs: Vec::new(),
            warnings: Vec::new(),
            first_failure: None,
            assumed_no_calls: None,
            ending: start.err().map(ConversationEnding::Failed),
            is_complete: false,
            topic_tracker: None,
            vocabulary: case.vocabulary.clone(),
        };
        if let Some(topics) = case.topics.clone().filter(|_| session.ending.is_none()) {
            session.start_topics(topics);
        }
        session
    }

    /// The case.
    pub fn case(&self) -> &TestCase {
        self.case
    }

    /// Returns what removes secrets from the conversation, and from the assertions about it.
    pub fn redactor(&self) -> &SecretRedactor {
        self.recorder.redactor()
    }

    /// Returns the agent's id of the conversation.
    pub fn id(&self) -> Arc<str> {
        self.evaluator.session_id.clone()
    }

    /// Returns the addresses of MCP servers and served models, by name. Names of models start with `models/`. If no agent is
    /// contacted, nothing listens at them.
    pub fn service_addresses(&self) -> BTreeMap<String, String> {
        let servers = self.case.mcp.iter().map(|(name, _)| name.to_string());
        let models = self.case.models.iter().map(|(name, _)| format!("{MODEL_PREFIX}{name}"));
        let example = |name: String| {
            let address = McpAddresses::Example.address(&name).ok()??;
            Some((name, address))
        };
        let mut addresses: BTreeMap<String, String> = servers.chain(models).filter_map(example).collect();
        if let SessionCounterpart::Agent(agent) = &self.counterpart {
            addresses.extend(agent.service_addresses());
        }
        addresses
    }

    /// Returns the capabilities of the target.
    pub fn capabilities(&self) -> ProtocolCapabilities {
        self.counterpart.capabilities()
    }

    /// Returns the deadline of the case and its time limit; `None` without such a limit.
    pub fn conversation_deadline(&self) -> Option<(Instant, Duration)> {
        self.case_deadline()
    }

    /// Returns the conversation recorded so far.
    pub fn conversation(&self) -> &TracedConversation {
        self.recorder.conversation()
    }

    /// Returns the configured time limit of the whole conversation.
    pub fn time_limit(&self) -> Option<Duration> {
        self.case.timeout.or(self.timeouts.case)
    }

    /// Returns the evaluated checks, in order.
    pub fn checks(&self) -> &[CheckResult] {
        &self.checks
    }

    /// Checks that the case is still running. Fails if the case has ended; the error contains the reason.
    pub fn ensure_open(&self) -> Result<(), EndedCaseError> {
        let why = match &self.ending {
            None => return Ok(()),
            Some(ConversationEnding::Completed) => "the conversation has ended".to_string(),
            Some(ConversationEnding::Skipped(reason)) => format!("skipped: {}", reason.text),
            Some(ConversationEnding::Failed(failure)) => failure.message.clone(),
        };
        Err(EndedCaseError { reason: format!("the case has ended: {why}"), ended_now: false })
    }

    /// Sends one user turn and waits for the agent's answer. Fails if the case has ended or ends with this
    /// turn.
    pub async fn send_turn(&mut self, turn: CaseTurn) -> Result<(), EndedCaseError> {
        self.ensure_open()?;
        if let Some(most) = self.case.max_turns.filter(|most| self.turns().len() >= *most) {
            let message = format!("max turns ({most}) reached, but the test sends another turn");
            return Err(self.fail(AttemptFailure::new(FailureKind::MaxTurns, message)));
        }
        let mut turn = turn;
        let mut diagnostics = self.unsupported_parts(&turn);
        diagnostics.extend(self.resolve_references(turn.checks.iter_mut()));
        diagnostics.extend(self.unknown_topics(turn.checks.iter()));
        self.fail_on(diagnostics)?;
        let outcome = self.run_turn(TurnInput::from_turn(&turn)).await;
        outcome.map_err(|failure| self.end_with(ConversationEnding::Failed(failure)))
    }

    /// Evaluates a check and records its result. Fails if the case has ended, or the check is hard and
    /// failed.
    pub async fn evaluate(
        &mut self,
        check: Check,
        subject: CheckSubject,
    ) -> Result<&CheckResult, EndedCaseError> {
        self.evaluate_all(vec![check], subject).await.map(|decided| &decided[0])
    }

    /// Returns the number of the preceding turn; `None` after a simulated user, whose turns are reported
    /// together.
    fn preceding_turn(&self) -> Option<usize> {
        self.turns().last().filter(|turn| &*turn.caller != "simulator").map(|turn| turn.number)
    }

    /// Evaluates checks that are asserted together: all are evaluated even if one fails. Fails if the case
    /// has ended, or a hard check failed.
    pub async fn evaluate_all(
        &mut self,
        mut checks: Vec<Check>,
        subject: CheckSubject,
    ) -> Result<&[CheckResult], EndedCaseError> {
        self.ensure_open()?;
        self.ensure_check_capacity(checks.len())?;
        let first = self.checks.len();
        let mut diagnostics = self.resolve_references(checks.iter_mut());
        diagnostics.extend(self.unknown_topics(checks.iter()));
        diagnostics.extend(checks.iter().filter_map(|check| self.undecidable_calls(check)));
        if subject == CheckSubject::LastTurn {
            diagnostics.extend(checks.iter().filter_map(|check| {
                Some(refuse_all_turns(check)?.help("expect it of `conversation`, or leave `turns` out"))
            }));
        }
        if let Some(wrong) = diagnostics.first() {
            let undecided =
                checks.iter().map(|check| CheckResult::errored(check, wrong.message().to_string()));
            self.checks.extend(undecided);
            return Err(self.fail(test_error(diagnostics)));
        }
        for check in checks {
            let looked = match (subject, self.turns().len()) {
                // Values can be compared before the first turn.
                (CheckSubject::Value, _) => CheckScope::Whole { is_final: false },
                (_, 0) => {
                    self.record_missing_turn(check)?;
                    continue;
                }
                (CheckSubject::Conversation, _) => CheckScope::Whole { is_final: false },
                (CheckSubject::LastTurn, n) => CheckScope::Turn(n - 1),
            };
            let begun = Instant::now();
            let checked = match check.comparison_error() {
                Some(words) => CheckResult::errored(&check, words.to_string()),
                None => self.evaluator.evaluate_one(&check, looked, &mut self.recorder).await,
            };
            self.paused += begun.elapsed();
            let turn = match subject {
                CheckSubject::Value => self.preceding_turn(),
                CheckSubject::LastTurn | CheckSubject::Conversation => checked.turn,
            };
            self.checks.push(CheckResult { turn, ..checked });
        }
        self.check_hard_failures(first)?;
        Ok(&self.checks[first..])
    }

    /// Checks that the program may make `more` checks. Fails if [`MAX_PROGRAM_CHECKS`] would be exceeded,
    /// which ends the case.
    pub(super) fn ensure_check_capacity(&mut self, more: usize) -> Result<(), EndedCaseError> {
        if self.checks.len() + more <= MAX_PROGRAM_CHECKS {
            return Ok(());
        }
        let message = format!("the test makes more than {MAX_PROGRAM_CHECKS} checks");
        let help = "look for an endless loop, or compare several values in one check";
        Err(self.fail(AttemptFailure::new(FailureKind::TestError, message).with_detail(help)))
    }

    /// Records a check of a turn when there is none yet. A hard check then ends the case as a test error.
    fn record_missing_turn(&mut self, check: Check) -> Result<(), EndedCaseError> {
        let wrong = Diagnostic::new("there is no turn to check yet; send one first");
        let (wrong, is_hard) = (wrong.at(check.place.clone()), check.is_hard());
        self.checks.push(CheckResult::errored(&check, wrong.message().to_string()));
        if is_hard { Err(self.fail(test_error(wrong.into()))) } else { Ok(()) }
    }

    /// Ends the case if a hard check failed among the checks from index `since`. Fails if there is such a
    /// check and the case does not continue after failures.
    pub(super) fn check_hard_failures(&mut self, since: usize) -> Result<(), EndedCaseError> {
        match failure_from_checks(&self.checks[since..]).filter(|_| !self.case.continue_on_failure) {
            Some(failure) => Err(self.fail(failure)),
            None => Ok(()),
        }
    }

    /// Sets the check functions of the program that drives the session.
    pub fn set_program_checks(&mut self, program: Arc<dyn ProgramChecks>) {
        self.evaluator.roles.program_checks = Some(program);
    }

    /// Returns the tracked topics.
    pub fn topics(&self) -> Option<&CaseTopics> {
        self.topic_tracker.as_ref().map(|followed| &*followed.topics)
    }

    /// Returns the permissions of the program that drives the session.
    pub fn permissions(&self) -> Option<&ScriptCapabilities> {
        self.evaluator.roles.permissions.as_ref()
    }

    /// Ends the case as failed, regardless of its checks.
    pub fn fail(&mut self, failure: AttemptFailure) -> EndedCaseError {
        self.end_with(ConversationEnding::Failed(failure))
    }

    /// Ends the case as skipped; a hard check that failed before still fails it.
    pub fn skip(&mut self, reason: impl Into<String>) -> EndedCaseError {
        self.end_with(ConversationEnding::Skipped(SkipReason::from(reason.into())))
    }

    /// Adds a log line of the test.
    pub fn log(&mut self, line: impl Into<String>) {
        self.logs.push(line.into());
    }

    /// Ends the case. Only the first ending counts.
    pub(super) fn end_with(&mut self, ending: ConversationEnding) -> EndedCaseError {
        let first = self.ending.is_none();
        let ending = self.ending.get_or_insert(ending);
        let why = match ending {
            ConversationEnding::Completed => "the conversation has ended".to_string(),
            ConversationEnding::Skipped(reason) => reason.text.clone(),
            ConversationEnding::Failed(failure) => failure.message.clone(),
        };
        EndedCaseError { reason: why, ended_now: first }
    }

    pub(super) fn turns(&self) -> &[Turned] {
        &self.recorder.conversation().turns
    }

    /// Sends an input and evaluates its turn. Fails if the conversation cannot continue after it.
    pub(super) async fn run_turn(&mut self, mut input: TurnInput<'_>) -> Result<(), AttemptFailure> {
        let place = self.turns().len();
        self.script.begin_turn(&input.turn.resume);
        let started = Instant::now();
        let (deadline, cause) = self.turn_deadline(&input.turn, started);
        let traffic = self.recorder.traffic().clone();
        let (script, recorder) = (&mut self.script, &mut self.recorder);
        let (outcome, cause) = match &mut self.counterpart {
            SessionCounterpart::Agent(agent) => {
                let limits = TurnLimits::new(deadline, self.timeouts.idle).with_traffic(&traffic);
                let outcome =
                    execute_turn((place, started), &mut input, *agent, script, limits, recorder).await;
                self.limit = cause.limit().filter(|_| matches!(outcome, Err(TurnError::Deadline)));
                (outcome, cause)
            }
            SessionCounterpart::Recorded(kept) => {
                let outcome = kept.replay_turn(place, &input, self.case, script, recorder);
                let gave_up = |error: &TurnError| matches!(error, TurnError::Failed(failure) if failure.kind == FailureKind::Timeout);
                self.limit = kept.limit().filter(|_| outcome.as_ref().is_err_and(gave_up));
                (outcome, DeadlineSource::Check)
            }
        };
        let late = match outcome {
            Err(TurnError::Deadline) => {
                let mut late = late_answers(self.recorder.conversation(), &self.script);
                if let SessionCounterpart::Agent(agent) = &self.counterpart {
                    late.extend(agent.awaited_requests(deadline.into_std()));
                }
                late
            }
            Ok(()) | Err(TurnError::Run(_) | TurnError::Failed(_)) => Vec::new(),
        };
        let ended = judge_turn_end(&input.turn, outcome, cause, &self.script);
        let mut notes = self.turns().get(place).map(differing_results).unwrap_or_default();
        if matches!(ended, Err(None)) {
            notes.extend_from_slice(&late);
        }
        for message in notes {
            let turn_id = self.turns()[place].id.clone();
            self.recorder.emit(Note { turn_id, message, event: None });
        }

        // A turn that was stopped by the limit of a check is still evaluated, and fails by that check.
        let judged = ended.is_ok() || ended.as_ref().is_err_and(Option::is_none);
        if judged {
            if let Some(problem) = input.turn.checks.iter().find_map(|check| self.undecidable_calls(check)) {
                return Err(test_error(problem.into()));
            }
            self.update_topic(place).await?;
            let begun = Instant::now();
            let (checks, recorder) = (&input.turn.checks, &mut self.recorder);
            let decided = self.evaluator.evaluate(checks, CheckScope::Turn(place), recorder).await;
            self.checks.extend(decided);
            let looked = self.evaluator.evaluate_checkpoints(&mut self.checkpoints, place, recorder).await;
            self.paused += begun.elapsed();
            looked?;
            self.evaluate_left_topics().await;
        }
        let failure = match ended {
            Ok(()) => failure_from_checks(&self.checks),
            Err(Some(failure)) if late.is_empty() => return Err(failure),
            Err(Some(failure)) => return Err(failure.with_detail(late.join("\n"))),
            Err(None) => {
                // The limit may belong to the whole conversation, whose other checks would need turns that
                // were never sent.
                let limits = |check: &&Check| check.time_limit().is_some();
                let (own, last): (Vec<Check>, Vec<Check>) = (
                    self.case.checks.iter().filter(limits).cloned().collect(),
                    self.case.final_checks.iter().filter(limits).cloned().collect(),
                );
                self.evaluate_conversation(&own, &last).await;
                return Err(failure_from_checks(&self.checks).unwrap_or_else(|| {
                    let message = "the turn was stopped at the `max_duration_ms` limit";
                    AttemptFailure::new(FailureKind::Timeout, message)
                }));
            }
        };
        match failure {
            Some(failure) if self.case.continue_on_failure => {
                self.first_failure.get_or_insert(failure);
                Ok(())
            }
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    async fn evaluate_conversation(&mut self, checks: &[Check], final_checks: &[Check]) {
        for (checks, is_final) in [(checks, false), (final_checks, true)] {
            let looked = CheckScope::Whole { is_final };
            let decided = self.evaluator.evaluate(checks, looked, &mut self.recorder).await;
            self.checks.extend(decided);
        }
    }

    /// Evaluates the hard checks of a conversation without its end that have failed and that further turns could
    /// not mend: what an agent did stays done.
    async fn evaluate_lasting_failures(&mut self) {
        let may_last = |check: &&Check| check.is_hard() && check.reads_conversation();
        for (checks, is_final) in [(&self.case.checks, false), (&self.case.final_checks, true)] {
            let checks: Vec<Check> = checks.iter().filter(may_last).cloned().collect();
            let looked = CheckScope::Whole { is_final };
            let decided = self.evaluator.evaluate(&checks, looked, &mut self.recorder).await;
            self.checks.extend(decided.into_iter().filter(|result| result.is_failed_for_good));
        }
    }

    /// Returns true if nothing more was to be said. A failed check of the last turn in a file ends nothing early.
    fn has_reached_end(&self) -> bool {
        match &self.ending {
            None | Some(ConversationEnding::Completed) => true,
            Some(ConversationEnding::Failed(failure)) => {
                failure.kind == FailureKind::Assertion && self.has_sent_written_turns()
            }
            Some(ConversationEnding::Skipped(_)) => false,
        }
    }

    /// Returns true if all turns are in the file, and were sent.
    fn has_sent_written_turns(&self) -> bool {
        let case = self.case;
        let is_written = case.program.is_none() && case.simulator.is_none() && case.interactive.is_none();
        is_written && self.turns().len() == case.turns.len()
    }

    /// Returns the failure of the agent after its last turn, and records it.
    async fn trailing_failure(&mut self) -> Option<AttemptFailure> {
        let is_complete = self.is_complete;
        if !is_complete && !matches!(self.ending, Some(ConversationEnding::Skipped(_))) {
            return None;
        }
        match &mut self.counterpart {
            SessionCounterpart::Agent(agent) => {
                let trailing = agent.check_trailing_output().await;
                let failure = trailing
                    .and_then(|()| if is_complete { agent.complete_conversation() } else { Ok(()) })
                    .err()?;
                if let Some(turn_id) = self.turns().last().map(|turn| turn.id.clone()) {
                    self.recorder.emit(ConversationFailed { turn_id, error: failure_info(&failure) });
                }
                Some(failure)
            }
            SessionCounterpart::Recorded(kept) => kept.replay_trailing_failure(&mut self.recorder),
        }
    }

    /// Ends the conversation, evaluates the checks of the whole case and returns the verdict.
    pub(super) async fn conclude(&mut self) -> Verdict {
        let case = self.case;
        // A test without turns may still assert something about the conversation. Checks that apply to every
        // test are left out here.
        if self.turns().is_empty() && case.program.is_some() && self.ensure_open().is_ok() {
            for check in case.own_checks() {
                // The first hard check ends the case; the others are only recorded.
                let _ = self.record_missing_turn(check.clone());
            }
        }
        self.is_complete = self.has_reached_end();
        if let Some(failure) = self.trailing_failure().await {
            self.is_complete = false;
            if !matches!(self.ending, Some(ConversationEnding::Failed(_))) {
                self.ending = Some(ConversationEnding::Failed(failure));
            }
        }
        if let SessionCounterpart::Recorded(kept) = &self.counterpart {
            kept.replay_late_calls(&mut self.recorder);
        }
        self.recorder.flush_inbox();
        if let (None | Some(ConversationEnding::Completed), Some(failure)) =
            (&self.ending, late_call(self.recorder.conversation()))
        {
            self.ending = Some(ConversationEnding::Failed(failure));
        }
        if let None | Some(ConversationEnding::Completed) = self.ending
            && let Some(problem) = case.every_check().find_map(|check| self.unseen_calls(check))
        {
            self.ending = Some(ConversationEnding::Failed(test_error(problem.into())));
        }
        let unreached = unreached_faults(case, self.recorder.conversation());
        let ending = match self.ending.take() {
            None | Some(ConversationEnding::Completed) => {
                if !self.turns().is_empty() || case.program.is_none() {
                    self.evaluate_all_topics().await;
                    self.evaluate_conversation(&case.checks, &case.final_checks).await;
                }
                let failure = unreached
                    .or_else(|| self.wrongly_assumed_no_calls())
                    .or_else(|| missing_checkpoints(&self.checkpoints))
                    .or_else(|| failure_from_checks(&self.checks));
                failure.map_or(ConversationEnding::Completed, ConversationEnding::Failed)
            }
            // A check that fails first may hide why: the fault that it is about never happened.
            Some(ConversationEnding::Failed(failure)) if failure.kind == FailureKind::Assertion => {
                // A failed check of the last turn ends nothing early.
                self.is_complete = self.has_sent_written_turns();
                ConversationEnding::Failed(with_unreached_faults(failure, unreached))
            }
            Some(ConversationEnding::Skipped(reason)) => {
                self.evaluate_lasting_failures().await;
                ConversationEnding::Skipped(reason)
            }
            // An attempt that says something about the agent is not replaced because a role failed after that.
            Some(ConversationEnding::Failed(failure)) if is_failed_role(failure.kind) => {
                self.evaluate_lasting_failures().await;
                ConversationEnding::Failed(failure_from_checks(&self.checks).unwrap_or(failure))
            }
            Some(ending) => ending,
        };
        // A failed turn or check decides the verdict, even if the conversation continued.
        let failed = self.first_failure.take().or_else(|| failure_from_checks(&self.checks));
        match (ending, failed) {
            (ConversationEnding::Failed(failure), _)
            | (ConversationEnding::Completed | ConversationEnding::Skipped(_), Some(failure)) => {
                Verdict::failed(self.attribute_to_max_turns(failure))
            }
            (ConversationEnding::Skipped(reason), None) => reason.into_verdict(),
            (ConversationEnding::Completed, None) => Verdict::passed(),
        }
    }

    /// Ends a conversation that was stopped where it was, and returns the verdict. Its current turn fails; nothing more is
    /// evaluated.
    pub(super) fn cancel(&mut self) -> Verdict {
        let failure = cancelled_failure();
        self.recorder.clear_arrival();
        if let Some(turn) = self.turns().last().filter(|turn| turn.outcome == TurnOutcome::Open) {
            let turn_id = turn.id.clone();
            self.recorder.emit(TurnFailed { turn_id, error: failure_info(&failure) });
        }
        self.is_complete = false;
        Verdict::failed(failure)
    }

    /// Returns the result of a concluded conversation, computed from the recorded events.
    pub(super) fn into_result(self, verdict: Verdict) -> ConversationResult {
        let mut result = ConversationResult {
            verdict,
            checks: self.checks,
            checkpoints: self.checkpoints,
            limit: self.limit,
            logs: self.logs,
            warnings: self.warnings,
            conversation: TracedConversation::default(),
            events: Vec::new(),
            redactor: self.recorder.redactor().clone(),
            duration: Duration::ZERO,
            is_complete: self.is_complete,
            is_untimed: !self.counterpart.has_timestamps(),
        };
        result.redact(&self.recorder);
        (result.conversation, result.events) = self.recorder.finish();
        result.duration = result.conversation.scope().duration();
        result
    }

    /// Returns the deadline of the whole conversation, and its limit.
    pub(super) fn case_deadline(&self) -> Option<(Instant, Duration)> {
        let is_open = self.case.simulator.is_some() || self.case.program.is_some();
        let unless_said = is_open.then_some(DEFAULT_OPEN_ENDED_TIMEOUT);
        let limit = self.time_limit().or(unless_said)?;
        // Time skipped by a replay counts as elapsed.
        let remaining = limit.saturating_sub(self.recorder.skipped());
        Some((self.started + remaining + self.paused, limit))
    }

    /// Returns the deadline of a turn that starts at `now`, and its source: the nearest of all limits that apply.
    fn turn_deadline(&self, turn: &CaseTurn, now: Instant) -> (Instant, DeadlineSource) {
        let limit = turn.timeout.unwrap_or(self.timeouts.turn);
        let mut nearest = (now + limit, DeadlineSource::Turn(limit));
        let mut consider = |at: Instant, cause: DeadlineSource| {
            if at < nearest.0 {
                nearest = (at, cause);
            }
        };
        if let Some((at, limit)) = self.case_deadline() {
            consider(at, DeadlineSource::Case(limit));
        }
        // One extra millisecond, so that the measured time exceeds the limit.
        let over = |limit: Duration| limit + Duration::from_millis(1);
        for limit in turn.checks.iter().filter_map(Check::time_limit) {
            consider(now + over(limit), DeadlineSource::Check);
        }
        // The time between turns does not count.
        for limit in self.case.checks.iter().filter_map(Check::time_limit) {
            let spent = self.recorder.conversation().scope().agent_clock().total();
            consider(now + over(limit).saturating_sub(spent), DeadlineSource::Check);
        }
        nearest
    }

    /// Checks that a program has sent all turns of the recorded conversation. Fails if turns are missing
    /// though the case has not ended.
    pub(super) fn ensure_all_turns_sent(&self) -> Result<(), AttemptFailure> {
        match self.counterpart.recorded() {
            Some(kept) if self.ensure_open().is_ok() && self.turns().len() < kept.turns.len() => {
                let message = format!(
                    "the recorded conversation has {} turns, but now the test ends after turn {}",
                    kept.turns.len(),
                    self.turns().len()
                );
                Err(rerun_required(message, ""))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Returns the failure of a finished conversation with required checkpoints that were not reached.
pub(super) fn missing_checkpoints(all: &[CheckpointResult]) -> Option<AttemptFailure> {
    let missing: Vec<&CheckpointResult> = all.iter().filter(|reached| reached.is_missing()).collect();
    if missing.is_empty() {
        return None;
    }
    // A checkpoint that is missing for certain is about the agent, so it takes precedence.
    let undecided = missing[0].undecided.as_ref();
    if let Some((kind, why)) = undecided.filter(|_| missing.iter().all(|missed| missed.undecided.is_some())) {
        let message = format!("checkpoint {} failed: {why}", missing[0].checkpoint.id);
        return Some(AttemptFailure::new(*kind, message));
    }
    let ids: Vec<&str> = missing.iter().map(|reached| reached.checkpoint.id.as_str()).collect();
    let detail = missing.iter().map(|reached| {
        let why = reached.missing.as_deref().unwrap_or("no turn was checked");
        format!("{} ({}): {why}", reached.checkpoint.id, reached.checkpoint.place)
    });
    let failure = AttemptFailure::new(
        FailureKind::MissingCheckpoints,
        format!("missing checkpoints: {}", ids.join(", ")),
    );
    Some(failure.with_detail(detail.collect::<Vec<_>>().join("\n")))
}

/// True if a conversation ended because a simulated user or a judge failed.
fn is_failed_role(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::SimulatorError | FailureKind::JudgeError)
}
