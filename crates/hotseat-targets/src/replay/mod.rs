//! Target that replays recordings in this process.
//!
//! Turn n of a case gets turn n of its recording. Inputs and answers of the test are compared with the
//! recorded ones, because another input could have led to another reaction. The recorded times pass without
//! waiting.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::excerpt;
use hotseat_trace::{
    AgentRunFailed, AgentRunFinished, AgentRunStarted, AssistantMessage, AttemptFailure, AwaitingInput,
    CallVisibility, ErrorInfo, FailureKind, InterruptAnswered, InterruptRaised, Note, Origin, Payload,
    ReasoningMessage, StateSnapshot, TimeOffset, ToolArguments, ToolInvocation,
};
use serde_json::Value;

use crate::connection::TurnError;
use crate::message::{
    ConversationMessage, InterruptReply, InterruptRequest, MediaAttachment, PendingReply, ScriptedAnswers,
    ToolReply, hide_service_addresses, media_parts, unique_id,
};
use crate::recorder::TraceRecorder;
use crate::recording::{
    self, AgentRecording, ReadRecordingError, RecordedArguments, RecordedEvent, RecordedEventKind,
    RecordedTurn, file_name, mcp_payload,
};
use crate::target::{
    AgentInput, AgentSession, BoxFuture, ProtocolCapabilities, TurnFuture, unanswered_call,
    unanswered_interrupt,
};

/// Hint for a recording that no longer matches.
const MISMATCH_HINT: &str = "record again with `hotseat test --record`, or set `match: position` on a target of `type: replay` to skip the comparison";

/// A target that replays recordings.
#[derive(Debug, Clone)]
pub struct ReplayTarget {
    /// Location of the recordings.
    pub source: RecordingSource,
    /// Display name of the location.
    pub display_path: String,
    /// How inputs are compared with the recording.
    pub matching: ReplayMatching,
    /// The case under test, once known.
    pub case: Option<CaseName>,
    /// Id of the conversation; generated if absent.
    pub conversation_id: Option<String>,
}

/// Location of recordings.
#[derive(Debug, Clone)]
pub enum RecordingSource {
    /// A folder with one file per case.
    Folder(PathBuf),
    /// One recording for all cases, and its file.
    File(Arc<AgentRecording>, PathBuf),
}

/// How inputs are compared with the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayMatching {
    /// Inputs and answers of the test must be equal.
    Exact,
    /// Only the position of a turn counts.
    Position,
}

/// The case under test.
#[derive(Debug, Clone)]
pub struct CaseName {
    /// Its suite, as named in recordings.
    pub suite: String,
    /// Its id.
    pub id: String,
}

/// A session that replays a recording.
pub struct ReplaySession {
    target: ReplayTarget,
    id: Arc<str>,
    recording: Option<Arc<AgentRecording>>,
    turns: usize,
    runs: usize,
}

impl ReplaySession {
    /// Opens a session. The recording is not read yet.
    pub fn open(target: ReplayTarget) -> Self {
        let id = target.conversation_id.clone().unwrap_or_else(unique_id);
        ReplaySession { target, id: id.into(), recording: None, turns: 0, runs: 0 }
    }

    /// Reads the recording of the case under test.
    fn read_recording(&self) -> Result<Arc<AgentRecording>, AttemptFailure> {
        let folder = match &self.target.source {
            RecordingSource::File(recording, _) => return Ok(recording.clone()),
            RecordingSource::Folder(folder) => folder,
        };
        let wrong = |message: String| AttemptFailure::new(FailureKind::TestError, message);
        let Some(CaseName { suite, id }) = &self.target.case else {
            return Err(wrong("a folder of recordings can only be replayed for a case".to_string()));
        };
        let shown = |name: &str| format!("{}/{name}", self.target.display_path.trim_end_matches('/'));
        for suite in [Some(suite.as_str()), None] {
            let name = file_name(suite, id);
            match recording::read(&folder.join(&name), &shown(&name)) {
                Ok(found)
                    if found.case == *id && (found.suite.is_none() || found.suite.as_deref() == suite) =>
                {
                    return Ok(Arc::new(found));
                }
                Ok(found) => {
                    let message = format!(
                        "{} should contain the recording of {}, but it is of {}",
                        shown(&name),
                        describe_case(suite, id),
                        describe_case(found.suite.as_deref(), &found.case)
                    );
                    return Err(
                        wrong(message).with_detail("rename the file to match its case, or record again")
                    );
                }
                Err(ReadRecordingError::Missing) => {}
                Err(ReadRecordingError::Unreadable(error)) => {
                    return Err(wrong(format!("cannot read {}: {error}", shown(&name))));
                }
                Err(ReadRecordingError::Invalid(mistakes)) => {
                    let mut words = mistakes.into_iter().map(|mistake| mistake.to_string());
                    let first = words.next().unwrap_or_default();
                    let message = format!("this is not a valid recording: {first}");
                    return Err(wrong(message).with_detail(words.collect::<Vec<_>>().join("\n")));
                }
            }
        }
        let message = format!("no recording of `{id}` of {suite} in {}", self.target.display_path);
        let help = match suite.ends_with(".rs") {
            true => "tests in Rust are not recorded: name one recording, which serves all examples, or a folder with a recording without a suite".to_string(),
            false => format!(
                "record it with `hotseat test --record {}` and the real agent; the file will be {}; a recording that you write needs this name, or {} without a `suite`",
                self.target.display_path,
                file_name(Some(suite), id),
                file_name(None, id)
            ),
        };
        Err(wrong(message).with_detail(help))
    }

    fn replay_turn(&mut self, input: AgentInput<'_>) -> Result<(), TurnError> {
        let Some(recording) = self.recording.clone() else {
            return Err(AttemptFailure::new(FailureKind::TestError, "no recording was read").into());
        };
        input.recorder.set_recorded_secrets(&recording.secrets);
        self.turns += 1;
        let Some(turn) = recording.turns.get(self.turns - 1) else {
            let message = format!(
                "the recording of `{}` has {} turn(s), but this is turn {}",
                recording.case,
                recording.turns.len(),
                self.turns
            );
            return Err(AttemptFailure::new(FailureKind::TestError, message)
                .with_detail(RERECORD_HINT)
                .into());
        };
        if self.target.matching == ReplayMatching::Exact {
            self.compare_input(turn, &input)?;
        }
        let AgentInput { turn_id, script, limits, recorder, .. } = input;
        let began = recorder.conversation().turns.last().map_or_else(|| recorder.now(), |turn| turn.started);
        let mut serving = TurnReplay {
            turn_id,
            started: began,
            delay: first_time(turn)
                .map_or(0, |first| recorder.latest().0.saturating_sub(began.0 + TimeOffset::from(first).0)),
            limit: recorder.offset_of(limits.deadline) - began,
            matching: self.target.matching,
            events: &turn.events,
            run: None,
            runs: &mut self.runs,
            script,
            recorder,
        };
        serving.run(turn)
    }

    /// Checks that the input equals the recorded one.
    fn compare_input(&self, turn: &RecordedTurn, input: &AgentInput<'_>) -> Result<(), AttemptFailure> {
        let redactor = input.recorder.redactor();
        let said = redactor.text(input.text);
        let attached: Vec<String> = media_parts(input.content)
            .map(|media| redactor.text(&MediaAttachment::display_name(media)).into_owned())
            .collect();
        let (what, now, then) = if hide_service_addresses(&said) != hide_service_addresses(&turn.user) {
            ("the user's text differs", format!("{said:?}"), format!("{:?}", turn.user))
        } else if attached != turn.attachments {
            ("the attachments differ", attached.join(", "), turn.attachments.join(", "))
        } else {
            return Ok(());
        };
        let place = turn.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
        let message = format!("turn {}: {what} from the recording", self.turns);
        let detail = format!("now: {now}\nrecorded{place}: {then}\n{MISMATCH_HINT}");
        Err(AttemptFailure::new(FailureKind::TestError, message).with_detail(detail))
    }
}

const RERECORD_HINT: &str = "record again with `hotseat test --record`";

fn describe_case(suite: Option<&str>, id: &str) -> String {
    format!("`{id}` of {}", suite.unwrap_or("any suite"))
}

/// Returns the time of the first event of a turn, from its start. `None` if the times are unknown.
fn first_time(turn: &RecordedTurn) -> Option<Duration> {
    turn.events.iter().flat_map(|event| event.at.into_iter().chain(event.started)).min()
}

/// The replay of one turn.
struct TurnReplay<'a> {
    turn_id: Arc<str>,
    started: TimeOffset,
    /// Time in microseconds by which events are later than recorded. Without it, the first ones would be earlier than the input,
    /// and times that are moved one by one would change the order in which texts and calls began.
    delay: u64,
    /// Maximum duration of the turn.
    limit: Duration,
    matching: ReplayMatching,
    events: &'a [RecordedEvent],
    /// The current agent run.
    run: Option<Arc<str>>,
    runs: &'a mut usize,
    script: &'a mut ScriptedAnswers,
    recorder: &'a mut TraceRecorder,
}

impl TurnReplay<'_> {
    /// Replays the turn from start to end. The end of the turn has the recorded time, too.
    fn run(&mut self, turn: &RecordedTurn) -> Result<(), TurnError> {
        let served = self.events.iter().try_for_each(|event| self.record_event(event));
        if let (Ok(()) | Err(TurnError::Run(_)), Some(duration)) = (&served, turn.duration) {
            self.delay = 0;
            self.advance_to(duration)?;
            // The recorded turn was stopped at this limit, and would have taken longer.
            if turn.unfinished.is_some() && duration >= self.limit {
                return Err(TurnError::Deadline);
            }
        }
        served?;
        match &turn.unfinished {
            None => Ok(()),
            Some(reason) => {
                if let Some(failure) = self.recorder.traffic().recorded_failure(reason) {
                    return Err(failure.into());
                }
                let message = format!("the recorded turn is incomplete: {reason}");
                Err(AttemptFailure::new(FailureKind::TestError, message).with_detail(RERECORD_HINT).into())
            }
        }
    }

    /// Advances the time to `at`, or to the deadline of the turn. The next event has exactly this time: the time that
    /// replaying takes must not change the order in which texts and calls began.
    fn advance_to(&mut self, at: Duration) -> Result<(), TurnError> {
        self.recorder.clear_arrival();
        if at > self.limit {
            let end = self.to_offset(self.limit);
            self.recorder.advance_to(end);
            return Err(TurnError::Deadline);
        }
        let at = self.to_offset(at);
        self.recorder.advance_to(at);
        self.recorder.set_arrival_offset(at);
        Ok(())
    }

    /// Converts an offset in the turn to an offset in the conversation.
    fn to_offset(&self, at: Duration) -> TimeOffset {
        TimeOffset(self.started.0 + self.delay + TimeOffset::from(at).0)
    }

    /// Starts a run of the agent, unless one is open.
    fn start_run(&mut self) {
        if self.run.is_none() {
            *self.runs += 1;
            let run_id: Arc<str> = format!("run-{}", self.runs).into();
            self.run = Some(run_id.clone());
            let turn_id = self.turn_id.clone();
            self.recorder.emit(AgentRunStarted { turn_id, run_id, protocol_version: None });
        }
    }

    /// Records an event at its time.
    fn record_event(&mut self, event: &RecordedEvent) -> Result<(), TurnError> {
        if let Some(at) = event.at {
            self.advance_to(at)?;
        }
        let started_us = event.started.map(|started| self.to_offset(started));
        let turn_id = self.turn_id.clone();
        self.start_run();
        let payload: Payload = match &event.kind {
            RecordedEventKind::Message { text, calls_tools, subagent } => AssistantMessage {
                turn_id,
                message_id: unique_id().into(),
                content: text.as_str().into(),
                has_tool_use: *calls_tools,
                started_us,
                origin: Origin::Stream,
                subagent: subagent.as_deref().map(Arc::from),
            }
            .into(),
            RecordedEventKind::Reasoning { text } => {
                let (message_id, content) = (unique_id().into(), text.as_str().into());
                ReasoningMessage { turn_id, message_id, content, subagent: None }.into()
            }
            RecordedEventKind::ToolCall { id, tool, arguments, origin, subagent } => {
                self.recorder.emit(ToolInvocation {
                    turn_id: turn_id.clone(),
                    tool_call_id: id.as_str().into(),
                    tool_name: tool.as_str().into(),
                    started_us,
                    origin: *origin,
                    subagent: subagent.as_deref().map(Arc::from),
                    ..ToolInvocation::default()
                });
                let (input, text) = match arguments {
                    RecordedArguments::None => return Ok(()),
                    RecordedArguments::Json(value) => (Some(value.clone()), None),
                    RecordedArguments::Broken(text) => (None, Some(text.clone())),
                };
                let ended_us = event.ended.map(|ended| self.to_offset(ended));
                ToolArguments {
                    turn_id,
                    tool_call_id: id.as_str().into(),
                    input,
                    text,
                    ended_us,
                    message_id: None,
                }
                .into()
            }
            RecordedEventKind::ToolResult { id, result, origin: Origin::Client } => {
                let reply = self.answer_call(id, result, event)?;
                reply.into_payload(turn_id, id.as_str().into(), Origin::Client)
            }
            RecordedEventKind::ToolResult { id, result, origin } => {
                result.clone().into_payload(turn_id, id.as_str().into(), *origin)
            }
            RecordedEventKind::Interrupt { id, reason, message, tool_call_id, value, .. } => {
                InterruptRaised {
                    turn_id,
                    interrupt_id: id.as_str().into(),
                    reason: reason.clone(),
                    message: message.clone(),
                    tool_call_id: tool_call_id.as_deref().map(Arc::from),
                    server: None,
                    value: value.clone(),
                }
                .into()
            }
            RecordedEventKind::InterruptAnswer { id, payload } => {
                let payload = self.answer_interrupt(id, payload.as_ref(), event)?;
                let status = if payload.is_some() { "resolved" } else { "cancelled" };
                let interrupt_id = id.as_str().into();
                InterruptAnswered { turn_id, interrupt_id, status: status.into(), payload }.into()
            }
            RecordedEventKind::State { state } => StateSnapshot { turn_id, state: state.clone() }.into(),
            RecordedEventKind::AwaitingInput { awaiting, hint } => {
                AwaitingInput { turn_id, awaiting: *awaiting, hint: hint.clone() }.into()
            }
            RecordedEventKind::Mcp { event, payload } => match mcp_payload(event, payload, &turn_id) {
                Ok(payload) => payload,
                // The file was checked when it was read.
                Err(_) => return Ok(()),
            },
            RecordedEventKind::Note { text } => Note { turn_id, message: text.clone(), event: None }.into(),
            RecordedEventKind::Finished { outcome, result, usage, finish_reason } => AgentRunFinished {
                turn_id,
                run_id: self.run.take().unwrap_or_default(),
                outcome: outcome.as_str().into(),
                result: result.clone(),
                usage: usage.clone(),
                finish_reason: finish_reason.as_deref().map(Arc::from),
            }
            .into(),
            RecordedEventKind::Error { message, code, usage } => {
                let error = ErrorInfo { code: code.clone(), message: message.clone(), retriable: None };
                self.recorder.emit(AgentRunFailed { turn_id, error: error.clone(), usage: usage.clone() });
                return Err(TurnError::Run(error));
            }
        };
        self.recorder.emit(payload);
        Ok(())
    }
}

impl TurnReplay<'_> {
    /// Returns the test's answer to a call of an offered tool. A server or a function that would answer it is not
    /// asked.
    fn answer_call(
        &mut self,
        id: &str,
        then: &ToolReply,
        event: &RecordedEvent,
    ) -> Result<ToolReply, TurnError> {
        let call = self.recorder.conversation().call(id);
        let (tool, arguments) =
            call.map(|call| (call.name.clone(), call.arguments.clone())).unwrap_or_default();
        let Some(now) = self.script.tool_reply(&tool, &arguments) else {
            return match self.script.tool_url(&tool) {
                Some(_) => Ok(then.clone()),
                None => Err(unanswered_call(&tool, &arguments, self.script).into()),
            };
        };
        let redactor = self.recorder.redactor();
        let now = match now {
            PendingReply::Ready(ToolReply::Content(output)) => ToolReply::Content(redactor.json(output)),
            PendingReply::Ready(ToolReply::Error(message)) => {
                ToolReply::Error(redactor.text(&message).into_owned())
            }
            PendingReply::Computed(_) => return Ok(then.clone()),
        };
        if now != *then && self.matching == ReplayMatching::Exact {
            let what = format!("a call of {tool}");
            return Err(answers_differ(&what, &describe_reply(&now), &describe_reply(then), event).into());
        }
        Ok(now)
    }

    /// Returns the test's answer to an interrupt; `None` if it is cancelled.
    fn answer_interrupt(
        &mut self,
        id: &str,
        then: Option<&Value>,
        event: &RecordedEvent,
    ) -> Result<Option<Value>, TurnError> {
        let raised = self.events.iter().rev().find_map(|event| match &event.kind {
            RecordedEventKind::Interrupt { id: raised, reason, message, tool, tool_call_id, value }
                if raised == id =>
            {
                Some((reason, message, tool, tool_call_id, value))
            }
            _ => None,
        });
        let Some((reason, message, tool, call, value)) = raised else {
            let message = format!(
                "the recording answers interrupt {id} in a different turn than the one that raised it"
            );
            return Err(AttemptFailure::new(FailureKind::TestError, message).into());
        };
        let of_call = call.as_deref().and_then(|id| self.recorder.conversation().call(id));
        let tool = tool.clone().or_else(|| of_call.map(|call| call.name.to_string()));
        let asked = InterruptRequest {
            reason: reason.as_deref(),
            message: message.as_deref(),
            tool: tool.as_deref(),
        };
        let now = match self.script.interrupt_reply(&asked) {
            None => return Err(unanswered_interrupt(&asked, value).into()),
            Some(InterruptReply::Resolved(payload)) => Some(self.recorder.redactor().json(payload)),
            Some(InterruptReply::Cancelled) => None,
        };
        if now.as_ref() != then && self.matching == ReplayMatching::Exact {
            let shown = |payload: Option<&Value>| match payload {
                Some(payload) => excerpt(&payload.to_string(), MAX_SHOWN_CHARS).into_owned(),
                None => "it is cancelled".to_string(),
            };
            let what = format!("interrupt {id}");
            return Err(answers_differ(&what, &shown(now.as_ref()), &shown(then), event).into());
        }
        Ok(now)
    }
}

/// Maximum number of characters of an answer shown in an error.
const MAX_SHOWN_CHARS: usize = 300;

fn describe_reply(reply: &ToolReply) -> String {
    match reply {
        ToolReply::Content(output) => excerpt(&output.to_string(), MAX_SHOWN_CHARS).into_owned(),
        ToolReply::Error(message) => format!("the error {:?}", excerpt(message, MAX_SHOWN_CHARS)),
    }
}

/// Returns the failure of an answer that differs from the recorded one.
fn answers_differ(what: &str, now: &str, then: &str, event: &RecordedEvent) -> AttemptFailure {
    let place = event.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
    let message = format!("the test's answer to {what} differs from the recording");
    let detail = format!("now: {now}\nrecorded{place}: {then}\n{MISMATCH_HINT}");
    AttemptFailure::new(FailureKind::TestError, message).with_detail(detail)
}

impl AgentSession for ReplaySession {
    fn conversation_id(&self) -> Arc<str> {
        self.id.clone()
    }

    /// The recorded agent received everything that the case sends.
    fn capabilities(&self) -> ProtocolCapabilities {
        let hides_calls = self.recording.as_ref().is_some_and(|recording| recording.hides_calls);
        let calls = if hides_calls { CallVisibility::Hidden } else { CallVisibility::Protocol };
        ProtocolCapabilities { calls, ..ProtocolCapabilities::ALL }
    }

    fn seed_history(&mut self, _messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        self.recording = Some(self.read_recording()?);
        Ok(())
    }

    fn has_timestamps(&self) -> bool {
        self.recording.as_ref().is_none_or(|recording| recording.is_timed())
    }

    fn send_input<'a>(&'a mut self, input: AgentInput<'a>) -> TurnFuture<'a> {
        Box::pin(async move { self.replay_turn(input) })
    }

    fn check_trailing_output(&mut self) -> BoxFuture<'_, Result<(), AttemptFailure>> {
        Box::pin(async move {
            let turns = self.recording.iter().flat_map(|recording| &recording.turns);
            let last = turns.take(self.turns).last();
            match last.and_then(|turn| turn.trailing_error.as_ref()) {
                Some(message) => Err(AttemptFailure::new(FailureKind::ProtocolError, message)),
                None => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hotseat_trace::{TimeOffset, TurnItem, TurnStart, UserMessage};

    use super::{RecordingSource, ReplayMatching, ReplaySession, ReplayTarget};
    use crate::connection::TurnLimits;
    use crate::message::ScriptedAnswers;
    use crate::recorder::{SecretRedactor, TraceRecorder};
    use crate::recording::{
        AgentRecording, RecordedArguments, RecordedEvent, RecordedEventKind, RecordedTurn,
    };
    use crate::target::AgentInput;
    use hotseat_trace::Origin;

    fn event(at: u64, started: Option<u64>, kind: RecordedEventKind) -> RecordedEvent {
        let time = Duration::from_millis;
        RecordedEvent { at: Some(time(at)), started: started.map(time), ended: None, kind, place: None }
    }

    fn message(text: &str) -> RecordedEventKind {
        RecordedEventKind::Message { text: text.to_string(), calls_tools: None, subagent: None }
    }

    fn call(tool: &str) -> RecordedEventKind {
        RecordedEventKind::ToolCall {
            id: tool.to_string(),
            tool: tool.to_string(),
            arguments: RecordedArguments::None,
            origin: Origin::Stream,
            subagent: None,
        }
    }

    /// Replays a turn whose input was sent this long after its start. Returns what the agent did in order, and the end.
    fn replay(late: u64) -> (Vec<String>, TimeOffset) {
        // The first text begins before the first call, and ends after it.
        let events = vec![
            event(1, None, call("first")),
            event(2, Some(0), message("before")),
            event(3, None, call("second")),
            event(5, Some(4), message("after")),
        ];
        let duration = Some(Duration::from_millis(500));
        let turn = RecordedTurn { events, duration, ..RecordedTurn::default() };
        let recording = AgentRecording { turns: vec![turn], ..AgentRecording::default() };
        let source = RecordingSource::File(Arc::new(recording), std::path::PathBuf::new());
        let target = ReplayTarget {
            source,
            display_path: String::new(),
            matching: ReplayMatching::Position,
            case: None,
            conversation_id: None,
        };
        let mut session = ReplaySession::open(target);
        session.recording = session.read_recording().ok();
        let mut recorder = TraceRecorder::new(SecretRedactor::default(), true);
        let turn_id: Arc<str> = "t".into();
        let begun = recorder.now();
        recorder.set_arrival_offset(begun);
        recorder.emit(TurnStart::by_user(turn_id.clone(), "c".into(), "hotseat"));
        recorder.set_arrival_offset(TimeOffset(begun.0 + late * 1000));
        recorder.emit(UserMessage {
            turn_id: turn_id.clone(),
            message_id: "u".into(),
            content: "hello".into(),
            ..UserMessage::default()
        });
        recorder.clear_arrival();
        let mut script = ScriptedAnswers::default();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        let input = AgentInput {
            turn_id,
            message_id: "u".into(),
            text: "hello",
            content: &[],
            options: None,
            script: &mut script,
            limits: TurnLimits::new(deadline, Duration::from_secs(60)),
            recorder: &mut recorder,
        };
        assert!(session.replay_turn(input).is_ok());
        let end = TimeOffset(recorder.latest().0.max(recorder.now().0) - begun.0);
        let turn = &recorder.conversation().turns[0];
        let items = turn.items().into_iter().map(|item| match item {
            TurnItem::Message(message) => message.content.to_string(),
            TurnItem::Call(call) => call.name.to_string(),
        });
        (items.collect(), end)
    }

    #[test]
    fn a_late_input_changes_neither_order_nor_duration() {
        for late in [0, 1, 2, 4, 40] {
            let (items, end) = replay(late);
            assert_eq!(items, ["before", "first", "second", "after"], "{late} ms");
            assert!((500_000..600_000).contains(&end.0), "{late} ms: {end:?}");
        }
    }
}
