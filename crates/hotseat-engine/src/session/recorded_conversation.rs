//! Replays a recorded conversation for re-evaluation: turns come from its events, with the original times.
//! The agent is not contacted.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_trace::{
    AttemptFailure, CallVisibility, ErrorInfo, EventRecord, FailureKind, InterruptAnswered, InterruptRaised,
    Millis, Payload, RoleAnswered, TimeOffset, UserMessage, Verdict,
};
use serde_json::Value;

use super::conversation_ending::{ConversationEnding, SkipReason};
use super::human::HUMAN_CALLER;
use super::turn::{TIMEOUT_ERROR, TurnInput};
use crate::cases::{CaseTurn, TestCase};
use crate::roles::{RoleError, RoleExchange, SimulatorQuestion, UserAnswer};
use hotseat_checks::Check;
use hotseat_targets::message::{
    InterruptReply, InterruptRequest, MediaAttachment, ScriptedAnswers, hide_service_addresses, joined_text,
    media_parts,
};
use hotseat_targets::recorder::{SecretRedactor, TraceRecorder};
use hotseat_targets::{AgentSession, ProtocolCapabilities, TurnError};

/// Hint shown if a conversation cannot be re-evaluated.
pub const RERUN_HINT: &str = "run it again with `hotseat test`";

/// The other side of a session.
pub(super) enum SessionCounterpart<'a> {
    Agent(&'a mut dyn AgentSession),
    /// No agent: a recorded conversation.
    Recorded(&'a mut RecordedConversation),
}

/// A conversation recorded by an earlier run.
#[derive(Debug)]
pub struct RecordedConversation {
    records: Vec<EventRecord>,
    /// Index range of the events of each turn.
    pub(super) turns: Vec<Range<usize>>,
    /// Questions to the simulated user and its answers, in order.
    simulator_answers: Vec<RoleAnswered>,
    /// Number of simulator answers already replayed.
    replayed: AtomicUsize,
    outcome: RecordedOutcome,
    id: Arc<str>,
}

/// Outcome of a recorded conversation.
#[derive(Debug, Clone)]
pub struct RecordedOutcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<std::time::Duration>,
    /// What shows the tool calls of the agent.
    pub calls: CallVisibility,
    /// True if the times are unknown because it was replayed from a recording without times.
    pub is_untimed: bool,
}

/// Returns the failure of a case that cannot be re-evaluated because its conversation is missing or differs.
pub fn rerun_required(message: impl ToString, detail: impl std::fmt::Display) -> AttemptFailure {
    AttemptFailure::new(FailureKind::NotKept, message)
        .with_detail(format!("{detail}\n{RERUN_HINT}").trim_start())
}

impl SessionCounterpart<'_> {
    pub fn conversation_id(&self) -> Arc<str> {
        match self {
            SessionCounterpart::Agent(agent) => agent.conversation_id(),
            SessionCounterpart::Recorded(kept) => kept.id.clone(),
        }
    }

    pub fn capabilities(&self) -> ProtocolCapabilities {
        match self {
            SessionCounterpart::Agent(agent) => agent.capabilities(),
            // The recorded agent received everything that the case sends.
            SessionCounterpart::Recorded(kept) => {
                let calls = kept.outcome.calls;
                ProtocolCapabilities { history: true, attachments: true, options: true, calls }
            }
        }
    }

    pub fn has_timestamps(&self) -> bool {
        match self {
            SessionCounterpart::Agent(agent) => agent.has_timestamps(),
            SessionCounterpart::Recorded(kept) => !kept.outcome.is_untimed,
        }
    }

    /// Returns the recorded conversation, if the session has no agent.
    pub fn recorded(&self) -> Option<&RecordedConversation> {
        match self {
            SessionCounterpart::Agent(_) => None,
            SessionCounterpart::Recorded(kept) => Some(kept),
        }
    }
}

impl RecordedConversation {
    /// Creates a recorded conversation from its events and its outcome.
    pub fn new(records: Vec<EventRecord>, came_to: RecordedOutcome) -> RecordedConversation {
        let mut turns: Vec<Range<usize>> = Vec::new();
        let mut open: Option<(usize, &Arc<str>)> = None;
        let (mut id, mut simulated): (Option<Arc<str>>, _) = (None, Vec::new());
        for (place, record) in records.iter().enumerate().filter(|(_, record)| record.execution.is_none()) {
            match &record.payload {
                // The turn of an agent called by another agent is part of the calling turn.
                Payload::TurnStarted(start) if start.caller_turn_id.is_none() => {
                    id.get_or_insert_with(|| start.conversation_id.clone());
                    open = Some((place, &start.turn_id));
                }
                Payload::TurnCompleted(end) if open.is_some_and(|(_, turn)| *turn == end.turn_id) => {
                    turns.extend(open.take().map(|(first, _)| first..place + 1));
                }
                Payload::TurnFailed(end) if open.is_some_and(|(_, turn)| *turn == end.turn_id) => {
                    turns.extend(open.take().map(|(first, _)| first..place + 1));
                }
                Payload::RoleAnswered(answered) if &*answered.role == "simulator" => {
                    simulated.push((**answered).clone());
                }
                _ => {}
            }
        }
        let id = id.unwrap_or_else(|| "not-begun".into());
        RecordedConversation {
            records,
            turns,
            simulator_answers: simulated,
            replayed: AtomicUsize::new(0),
            outcome: came_to,
            id,
        }
    }

    pub(super) fn started_at(&self) -> Option<(TimeOffset, Millis)> {
        self.records.first().map(|first| (first.offset, first.timestamp))
    }

    /// Returns the time limit that was exceeded.
    pub(super) fn limit(&self) -> Option<std::time::Duration> {
        self.outcome.limit
    }

    /// Returns the recorded failure if its kind is one of `kinds`.
    fn failure_of(&self, kinds: &[FailureKind]) -> Option<&AttemptFailure> {
        self.outcome.verdict.failure.as_ref().filter(|failure| kinds.contains(&failure.kind))
    }

    /// Returns the failure for a conversation that continues beyond the recorded one.
    fn beyond_recording(&self, place: usize) -> AttemptFailure {
        let message = match place {
            0 => "the recorded conversation has no turns".to_string(),
            place => format!("the recorded conversation ended after turn {place}, but now it would continue"),
        };
        let verdict = &self.outcome.verdict;
        let why = verdict.failure.as_ref().map(|failure| &failure.message).or(verdict.skip_reason.as_ref());
        rerun_required(message, why.map_or_else(String::new, |why| format!("it ended with: {why}")))
    }

    /// Replays a turn if its input equals the recorded one.
    pub(super) fn replay_turn(
        &self,
        place: usize,
        input: &TurnInput<'_>,
        case: &TestCase,
        script: &mut ScriptedAnswers,
        recorder: &mut TraceRecorder,
    ) -> Result<(), TurnError> {
        let Some(range) = self.turns.get(place) else { return Err(self.beyond_recording(place).into()) };
        let events = &self.records[range.clone()];
        self.compare_input(place, input, events, recorder.redactor())?;
        for record in events {
            if let (Payload::InterruptAnswered(answered), None) = (&record.payload, &record.execution) {
                self.compare_interrupt_answer(place, answered, range.end, case, script, recorder)?;
            }
            recorder.replay(record.clone());
        }
        match events.last().map(|last| &last.payload) {
            Some(Payload::TurnFailed(failed)) => {
                Err(self.turn_error(place, &failed.error, &input.turn, case, recorder))
            }
            _ => Ok(()),
        }
    }

    /// Returns the events after the last turn, if all turns were replayed.
    fn late_records(&self, recorder: &TraceRecorder) -> &[EventRecord] {
        match self.turns.last() {
            Some(last) if recorder.conversation().turns.len() == self.turns.len() => {
                &self.records[last.end..]
            }
            Some(_) | None => &[],
        }
    }

    /// Replays the failure after the last turn, and returns it.
    pub(super) fn replay_trailing_failure(&self, recorder: &mut TraceRecorder) -> Option<AttemptFailure> {
        let (record, error) =
            self.late_records(recorder).iter().find_map(|record| match &record.payload {
                Payload::ConversationFailed(failed) => Some((record, &failed.error)),
                _ => None,
            })?;
        recorder.replay(record.clone());
        let kind = *FailureKind::ALL.iter().find(|kind| error.code.as_deref() == Some(kind.name()))?;
        let recorded = self.failure_of(&[kind]).filter(|failure| failure.message == error.message);
        Some(recorded.cloned().unwrap_or_else(|| AttemptFailure::new(kind, &error.message)))
    }

    /// Replays the calls at MCP servers that arrived after the last turn, and the notes about services at the end.
    pub(super) fn replay_late_calls(&self, recorder: &mut TraceRecorder) {
        let of_server = |record: &&EventRecord| match &record.payload {
            Payload::ToolInvoked(invoked) => invoked.server.is_some(),
            Payload::ToolCompleted(_) | Payload::ToolFailed(_) | Payload::Note(_) => true,
            payload => payload.category() == "mcp",
        };
        for record in self.late_records(recorder).iter().filter(of_server) {
            recorder.replay(record.clone());
        }
    }

    /// Checks that the user's input equals the recorded one.
    fn compare_input(
        &self,
        place: usize,
        input: &TurnInput<'_>,
        events: &[EventRecord],
        redactor: &SecretRedactor,
    ) -> Result<(), AttemptFailure> {
        let caller = events.iter().find_map(|record| match &record.payload {
            Payload::TurnStarted(start) => Some(&*start.caller_id),
            _ => None,
        });
        let message = events.iter().find_map(|record| match &record.payload {
            Payload::UserMessage(message) if record.execution.is_none() => Some(message),
            _ => None,
        });
        let (Some(caller), Some(message)) = (caller, message) else {
            return Err(self.beyond_recording(place));
        };
        let UserMessage { content, attachments, options, .. } = message;
        let clean = |text: &str| redactor.text(text).into_owned();
        let shown = |options: Option<&Value>| {
            options
                .map_or_else(|| "nothing".to_string(), |options| redactor.json(options.clone()).to_string())
        };
        let turn = &input.turn;
        let names = |names: Vec<String>| match names.is_empty() {
            true => "nothing".to_string(),
            false => names.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", "),
        };
        let now_options = turn.options.as_ref().map(|options| &options.value);
        let compared = [
            ("the source of the input differs", input.caller.to_string(), caller.to_string()),
            ("the user's text differs", clean(&joined_text(&turn.content)), clean(content)),
            (
                "the attachments differ",
                names(media_parts(&turn.content).map(MediaAttachment::display_name).collect()),
                names(attachments.clone()),
            ),
            ("the turn options differ (`options`)", shown(now_options), shown(options.as_ref())),
        ];
        let differ = |now: &str, kept: &str| hide_service_addresses(now) != hide_service_addresses(kept);
        match compared.into_iter().find(|(_, now, kept)| differ(now, kept)) {
            None => Ok(()),
            Some((what, now, kept)) => {
                let message = format!("turn {}: {what} from the recorded conversation", place + 1);
                Err(rerun_required(message, format!("now: {now}\nrecorded: {kept}")))
            }
        }
    }

    /// Compares the test's answer to an interrupt with the recorded one. Answers in a case file were compared
    /// before as text.
    fn compare_interrupt_answer(
        &self,
        place: usize,
        answered: &InterruptAnswered,
        until: usize,
        case: &TestCase,
        script: &mut ScriptedAnswers,
        recorder: &TraceRecorder,
    ) -> Result<(), AttemptFailure> {
        let raised = self.records[..until].iter().rev().find_map(|record| match &record.payload {
            Payload::InterruptRaised(raised) if raised.interrupt_id == answered.interrupt_id => Some(raised),
            _ => None,
        });
        let Some(raised) = raised else { return Ok(()) };
        let tool = tool_of(raised, recorder);
        let request = InterruptRequest {
            reason: raised.reason.as_deref(),
            message: raised.message.as_deref(),
            tool: tool.as_deref(),
        };
        let now = match script.interrupt_reply(&request) {
            Some(InterruptReply::Resolved(payload)) => Some(Some(recorder.redactor().json(payload))),
            Some(InterruptReply::Cancelled) => Some(None),
            None => None,
        };
        let kept = match &*answered.status {
            "cancelled" => None,
            _ => Some(answered.payload.clone().unwrap_or_default()),
        };
        if case.program.is_none() || now.as_ref() == Some(&kept) {
            return Ok(());
        }
        let shown =
            |answer: &Option<Value>| answer.as_ref().map_or("it is cancelled".to_string(), Value::to_string);
        let now = now.as_ref().map_or("nothing".to_string(), shown);
        let message = format!(
            "turn {}: the test's answer to interrupt {} differs from the recorded conversation",
            place + 1,
            answered.interrupt_id
        );
        Err(rerun_required(message, format!("now: {now}\nrecorded: {}", shown(&kept))))
    }

    /// Outcome of a recorded turn that failed. Re-evaluated only if it had been stopped by a time-limit check
    /// that has since changed.
    fn turn_error(
        &self,
        place: usize,
        error: &ErrorInfo,
        turn: &CaseTurn,
        case: &TestCase,
        recorder: &TraceRecorder,
    ) -> TurnError {
        let events = &self.records[self.turns[place].clone()];
        let failed_run = events.iter().any(|record| match &record.payload {
            Payload::AgentRunFailed(failed) => failed.error == *error,
            _ => false,
        });
        if failed_run {
            return TurnError::Run(error.clone());
        }
        let is_last = place + 1 == self.turns.len();
        let failure = self.outcome.verdict.failure.as_ref().filter(|_| is_last);
        let gave_up = error.code.as_deref() == Some(TIMEOUT_ERROR[0]) && error.message == TIMEOUT_ERROR[1];
        match failure {
            Some(failure) if gave_up && self.outcome.limit.is_some() => failure.clone().into(),
            _ if gave_up => self.stopped_turn_error(place, turn, case, recorder),
            Some(failure) if error.code.as_deref() == Some(failure.kind.name()) => failure.clone().into(),
            _ => TurnError::Run(error.clone()),
        }
    }

    /// Returns the error of a turn that was stopped at the limit of a check.
    fn stopped_turn_error(
        &self,
        place: usize,
        turn: &CaseTurn,
        case: &TestCase,
        recorder: &TraceRecorder,
    ) -> TurnError {
        let conversation = recorder.conversation();
        let took =
            conversation.turns.last().map(hotseat_trace::ConversationTurn::duration).unwrap_or_default();
        let whole = conversation.scope().agent_clock().total();
        let of_turn = turn.checks.iter().filter_map(Check::time_limit).any(|limit| took > limit);
        let of_case = case.checks.iter().filter_map(Check::time_limit).any(|limit| whole > limit);
        if of_turn || of_case {
            return TurnError::Deadline;
        }
        let message = format!(
            "turn {} of the recorded conversation was stopped after {} ms, but may take longer now",
            place + 1,
            took.as_millis()
        );
        rerun_required(message, "it had exceeded a `max_duration_ms` limit").into()
    }

    /// Returns the next recorded answer of the simulated user and its exchange. Fails if there are no more
    /// answers, or the question differs from the recorded one.
    pub(super) fn next_simulator_answer(
        &self,
        question: &SimulatorQuestion<'_>,
        redactor: &SecretRedactor,
    ) -> Result<(Result<UserAnswer, RoleError>, RoleExchange), AttemptFailure> {
        let place = question.turn_number - 1;
        let Some(answered) = self.simulator_answers.get(self.replayed.fetch_add(1, Ordering::Relaxed)) else {
            // The recorded simulator could not be asked either.
            let ended = self.failure_of(&[FailureKind::SimulatorError, FailureKind::Timeout]);
            return Err(ended.cloned().unwrap_or_else(|| self.beyond_recording(place)));
        };
        if let Some(key) = question.changed_key(answered, redactor) {
            let message = format!(
                "turn {}: the question to the simulated user differs from the recorded conversation (`{key}`)",
                place + 1
            );
            return Err(rerun_required(message, ""));
        }
        Ok(question.parse_recorded(answered))
    }

    /// Returns the next recorded input of the human. Fails if there is none: how the conversation ended.
    pub(super) fn next_human_input(
        &self,
        place: usize,
        unwritten: &CaseTurn,
    ) -> Result<TurnInput<'static>, ConversationEnding> {
        let turn = self.turns.get(place).map(|range| &self.records[range.clone()]).unwrap_or_default();
        let typed = turn.iter().any(|record| match &record.payload {
            Payload::TurnStarted(start) => &*start.caller_id == HUMAN_CALLER,
            _ => false,
        });
        let message = turn.iter().find_map(|record| match &record.payload {
            Payload::UserMessage(message) => Some(message.content.clone()),
            _ => None,
        });
        match (message.filter(|_| typed), SkipReason::from_verdict(&self.outcome.verdict)) {
            (Some(text), _) => Ok(TurnInput::from_text(text, unwritten, HUMAN_CALLER, None)),
            (None, Some(reason)) => Err(ConversationEnding::Skipped(reason)),
            (None, None) => Err(match self.failure_of(&[FailureKind::NoInput]) {
                Some(failure) => ConversationEnding::Failed(failure.clone()),
                None => ConversationEnding::Completed,
            }),
        }
    }
}

/// Returns the tool whose call an interrupt pauses: from the recorded call, or as the agent reports it.
fn tool_of(raised: &InterruptRaised, recorder: &TraceRecorder) -> Option<String> {
    let call = raised.tool_call_id.as_ref().and_then(|id| recorder.conversation().call(id));
    let reported = raised.value.get("toolName").and_then(Value::as_str);
    call.map(|call| call.name.to_string()).or_else(|| reported.map(str::to_string))
}
