//! Records messages and tool calls of a turn, for all protocols that have no trace events of their own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotseat_document::{excerpt, is_blank};
use hotseat_model::{StopReason, read_arguments};
use hotseat_trace::{
    AgentRunFailed, AgentRunFinished, AgentRunStarted, AssistantMessage, AttemptFailure, AwaitingInput,
    CUT_ARGUMENTS, ConversationTurn, ErrorInfo, FailureKind, Note, Origin, Raw, ReasoningMessage,
    StateSnapshot, TimeOffset, ToolArguments, ToolInvocation, plain_text,
};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::turn_failures::protocol_error;
use crate::connection::TurnError;
use crate::message::json_text::{arguments_note, joined, unknown_arguments_note};
use crate::message::{ContentPart, ConversationMessage, MessageCall, MessageRole, ToolReply, unique_id};
use crate::recorder::{StartTimes, TraceRecorder, add_usage};

/// Maximum number of members of a call that a message names.
const MAX_SHOWN_MEMBERS: usize = 10;

/// The failure of a turn without text and calls.
pub(crate) fn empty_answer() -> AttemptFailure {
    let message = "the agent's answer is empty: no text and no tool call";
    AttemptFailure::new(FailureKind::ProtocolError, message)
}

/// Records the agent's messages and tool calls in one turn.
pub(crate) struct TurnRecorder<'a> {
    turn_id: Arc<str>,
    recorder: &'a mut TraceRecorder,
    /// The agent's messages so far, for the history.
    messages: Vec<RecordedMessage>,
    /// Position of each call: message index and index among its calls.
    call_positions: HashMap<Arc<str>, (usize, usize)>,
    /// Last number used to make a repeated call id unique.
    id_counts: HashMap<String, usize>,
    /// The last call, as long as nothing of its arguments is known.
    bare_call: Option<Arc<str>>,
    /// Starts of messages that are recorded later than the calls after them, and of these calls.
    starts: StartTimes,
    recorded_notes: HashSet<String>,
    /// Usage that the agent has reported since its last run ended.
    usage: Option<Value>,
}

/// A message in the trace, which shares its text.
struct RecordedMessage {
    role: MessageRole,
    text: Arc<str>,
    tool_calls: Vec<MessageCall>,
    tool_call_id: Option<String>,
}

/// Arguments of a call as received.
#[derive(Clone)]
pub(crate) enum CallArguments {
    /// None, or an empty text: an empty object, unless the reply was cut.
    Missing,
    Json(Value),
    /// Text that is not JSON.
    Invalid(String),
    /// The agent sent something else where arguments were expected; this describes it.
    Unread(String),
}

impl<'a> TurnRecorder<'a> {
    pub(crate) fn new(turn_id: Arc<str>, recorder: &'a mut TraceRecorder) -> Self {
        TurnRecorder {
            turn_id,
            recorder,
            messages: Vec::new(),
            call_positions: HashMap::new(),
            id_counts: HashMap::new(),
            bare_call: None,
            starts: StartTimes::default(),
            recorded_notes: HashSet::new(),
            usage: None,
        }
    }

    pub(crate) fn now(&self) -> TimeOffset {
        self.recorder.now()
    }

    /// Returns the start of a message, or of a call, whose place is that of its start.
    pub(crate) fn start_time(&mut self) -> TimeOffset {
        self.starts.next(self.recorder.now())
    }

    /// Sets the arrival time of the following records.
    pub(crate) fn set_arrival(&mut self, at: Instant) {
        self.recorder.set_arrival(at);
    }

    /// Makes the following records use the current time again.
    pub(crate) fn clear_arrival(&mut self) {
        self.recorder.clear_arrival();
    }

    pub(crate) fn record_raw(&mut self, event: Value) {
        self.recorder.emit(Raw { turn_id: self.turn_id.clone(), event });
    }

    pub(crate) fn run_started(&mut self, run_id: &Arc<str>) {
        let turn_id = self.turn_id.clone();
        self.recorder.emit(AgentRunStarted { turn_id, run_id: run_id.clone(), protocol_version: None });
    }

    /// Adds a usage report to those of the current run.
    pub(crate) fn add_usage(&mut self, usage: Value) {
        self.usage = Some(add_usage(self.usage.take(), usage));
    }

    pub(crate) fn run_finished(&mut self, run_id: &Arc<str>, finish_reason: Option<Arc<str>>) {
        self.recorder.emit(AgentRunFinished {
            turn_id: self.turn_id.clone(),
            run_id: run_id.clone(),
            outcome: "success".into(),
            result: None,
            usage: self.usage.take(),
            finish_reason,
        });
    }

    /// Returns a usage report with the model of the reply, if the report names none and the model has a price.
    pub(crate) fn name_model(&self, usage: Value, model: Option<&str>) -> Value {
        match model {
            Some(model) => self.recorder.meter.name_model(usage, model),
            None => usage,
        }
    }

    /// Returns the note on a reply that is cut, or that ended for a reason that no provider documents.
    pub(crate) fn finish_reason_note(reason: &str) -> Option<String> {
        Some(match StopReason::from_provider(reason) {
            StopReason::MaxTokens => {
                format!("the reply was truncated at its token limit (finish_reason {reason})")
            }
            StopReason::Refusal => {
                format!("the reply was stopped by a content filter (finish_reason {reason})")
            }
            StopReason::Other(_) => format!("the reply ends with an unknown finish_reason, {reason}"),
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => return None,
        })
    }

    /// Returns true if the agent has called a tool in the turn.
    pub(crate) fn has_calls(&self) -> bool {
        !self.call_positions.is_empty()
    }

    /// Notes that a reply is cut, or ended for an unknown reason. Fails if it ended with an error, or for calls that it does not
    /// have.
    pub(crate) fn check_finish_reason(
        &mut self,
        reason: Option<&str>,
        has_calls: bool,
    ) -> Result<(), TurnError> {
        let Some(reason) = reason else { return Ok(()) };
        let stop = StopReason::from_provider(reason);
        if stop.is_cut()
            && let Some(call) = self.bare_call.take().filter(|call| !self.is_answered(call))
        {
            self.record_arguments(&call, CallArguments::Unread(CUT_ARGUMENTS.to_string()));
        }
        if stop.is_failure() {
            let message = format!("the reply ends with finish_reason {reason}");
            return Err(self.fail_run(message, Some(reason.to_string())));
        }
        if stop == StopReason::ToolUse && !has_calls {
            let message = format!("the reply ends with finish_reason {reason} but has no tool call");
            return Err(protocol_error(message));
        }
        if let Some(note) = Self::finish_reason_note(reason) {
            self.record_note(note);
        }
        Ok(())
    }

    /// Records an error of the agent, with which the turn ends.
    pub(crate) fn fail_run(&mut self, message: String, code: Option<String>) -> TurnError {
        let error = ErrorInfo { code, message, retriable: None };
        self.run_failed(&error);
        TurnError::Run(error)
    }

    /// Records an error reported by the agent.
    pub(crate) fn run_failed(&mut self, error: &ErrorInfo) {
        self.recorder.emit(AgentRunFailed {
            turn_id: self.turn_id.clone(),
            error: error.clone(),
            usage: self.usage.take(),
        });
    }

    /// Notes that something beside an error of the agent is invalid, so that it is not recorded.
    pub(crate) fn record_unread_beside_error(&mut self, failure: &AttemptFailure) {
        self.record_note(format!("not all that the agent sent with its error was read: {}", failure.message));
    }

    /// Records a message that started at `started`; `has_tool_use` is set if known. Empty messages are
    /// ignored.
    pub(crate) fn record_message(
        &mut self,
        content: String,
        started: Option<TimeOffset>,
        has_tool_use: Option<bool>,
    ) {
        self.record_text(joined(content).into(), started, has_tool_use);
    }

    /// Like [`TurnRecorder::record_message`], for a text that is shared.
    pub(crate) fn record_text(
        &mut self,
        content: Arc<str>,
        started: Option<TimeOffset>,
        has_tool_use: Option<bool>,
    ) {
        if content.is_empty() {
            return;
        }
        self.messages.push(RecordedMessage::new(MessageRole::Assistant, content.clone()));
        self.recorder.emit(AssistantMessage {
            turn_id: self.turn_id.clone(),
            message_id: unique_id().into(),
            content,
            has_tool_use,
            started_us: started,
            ..AssistantMessage::default()
        });
    }

    pub(crate) fn record_reasoning(&mut self, content: String) {
        if content.is_empty() {
            return;
        }
        let message_id = unique_id().into();
        let (turn_id, content) = (self.turn_id.clone(), joined(content).into());
        self.recorder.emit(ReasoningMessage { turn_id, message_id, content, subagent: None });
    }

    /// Records the start of a call and returns its id in the trace: the agent's id, with a number if it is
    /// already used. The origin of calls that arrive together, or with their results, is [`Origin::Snapshot`]: their times are
    /// unknown. A call starts when it is recorded, unless `started` is set.
    pub(crate) fn record_call(
        &mut self,
        id: &str,
        name: &str,
        origin: Origin,
        started: Option<TimeOffset>,
    ) -> Arc<str> {
        let known = |id: &str| self.recorder.conversation().call(id).is_some();
        let id = if id.is_empty() { "call" } else { id };
        let mut tool_call_id = id.to_string();
        if known(id) {
            let number = self.id_counts.entry(id.to_string()).or_insert(1);
            while known(&tool_call_id) {
                *number += 1;
                tool_call_id = format!("{id}#{number}");
            }
        }
        let called =
            MessageCall { id: tool_call_id.clone(), name: name.to_string(), arguments: "{}".to_string() };
        match self.messages.last_mut() {
            Some(last) if last.role == MessageRole::Assistant => last.tool_calls.push(called),
            _ => self.messages.push(RecordedMessage {
                tool_calls: vec![called],
                ..RecordedMessage::new(MessageRole::Assistant, Arc::default())
            }),
        }
        let tool_call_id: Arc<str> = tool_call_id.into();
        self.bare_call = Some(tool_call_id.clone());
        if let Some(message) = self.messages.last() {
            let place = (self.messages.len() - 1, message.tool_calls.len() - 1);
            self.call_positions.insert(tool_call_id.clone(), place);
        }
        self.recorder.emit(ToolInvocation {
            turn_id: self.turn_id.clone(),
            tool_call_id: tool_call_id.clone(),
            tool_name: name.into(),
            started_us: started.filter(|started| *started != self.recorder.now()),
            origin,
            ..ToolInvocation::default()
        });
        tool_call_id
    }

    pub(crate) fn record_arguments(&mut self, tool_call_id: &Arc<str>, arguments: CallArguments) {
        self.record_streamed_arguments(tool_call_id, arguments, None);
    }

    /// Records arguments that were received in parts, the last of them at `ended_us`.
    pub(crate) fn record_streamed_arguments(
        &mut self,
        tool_call_id: &Arc<str>,
        arguments: CallArguments,
        ended_us: Option<TimeOffset>,
    ) {
        if let Some(&(message, place)) = self.call_positions.get(tool_call_id) {
            self.messages[message].tool_calls[place].arguments = arguments.to_text();
        }
        if !matches!(arguments, CallArguments::Missing) {
            self.bare_call.take_if(|call| call == tool_call_id);
        }
        let (input, text) = match arguments {
            CallArguments::Missing => (Some(Value::Object(Map::new())), None),
            CallArguments::Json(input) => (Some(input), None),
            CallArguments::Invalid(text) => {
                self.record_note(arguments_note(tool_call_id, &text));
                (None, Some(text))
            }
            CallArguments::Unread(problem) => {
                self.record_note(unknown_arguments_note(tool_call_id, &problem));
                (None, Some(problem))
            }
        };
        let (turn_id, tool_call_id) = (self.turn_id.clone(), tool_call_id.clone());
        self.recorder.emit(ToolArguments { turn_id, tool_call_id, input, text, ended_us, message_id: None });
    }

    pub(crate) fn record_result(&mut self, tool_call_id: &Arc<str>, reply: ToolReply, origin: Origin) {
        self.record_streamed_result(tool_call_id, reply, origin, self.now());
    }

    /// Records a result that was received in parts, the last of them at `at`.
    pub(crate) fn record_streamed_result(
        &mut self,
        tool_call_id: &Arc<str>,
        reply: ToolReply,
        origin: Origin,
        at: TimeOffset,
    ) {
        let (turn_id, tool_call_id) = (self.turn_id.clone(), tool_call_id.clone());
        let text = match &reply {
            ToolReply::Content(output) => plain_text(output),
            ToolReply::Error(error) => error.clone(),
        };
        self.messages.push(RecordedMessage {
            tool_call_id: Some(tool_call_id.to_string()),
            ..RecordedMessage::new(MessageRole::Tool, text.into())
        });
        self.recorder.emit_at(at, reply.into_payload(turn_id, tool_call_id, origin));
    }

    /// Returns true if a call was made in this turn.
    pub(crate) fn is_call_of_turn(&self, tool_call_id: &str) -> bool {
        self.call_positions.contains_key(tool_call_id)
    }

    /// Returns true if a call has a result.
    pub(crate) fn is_answered(&self, tool_call_id: &str) -> bool {
        self.recorder.conversation().call(tool_call_id).is_some_and(|call| call.result.is_some())
    }

    pub(crate) fn record_awaiting(&mut self, awaiting: bool, hint: Option<String>) {
        self.recorder.emit(AwaitingInput { turn_id: self.turn_id.clone(), awaiting, hint });
    }

    pub(crate) fn record_state(&mut self, state: Value) {
        self.recorder.emit(StateSnapshot { turn_id: self.turn_id.clone(), state });
    }

    /// Records a note, once in the turn.
    pub(crate) fn record_note(&mut self, message: impl Into<String>) {
        let (turn_id, message) = (self.turn_id.clone(), message.into());
        if !self.recorded_notes.insert(message.clone()) {
            return;
        }
        self.recorder.emit(Note { turn_id, message, event: None });
    }

    /// Checks that the turn has an answer. Calls that only MCP servers and models of the test saw are one.
    /// Fails if the agent sent neither visible text nor a tool call.
    pub(crate) fn check_answered(&mut self) -> Result<(), AttemptFailure> {
        let is_answer = |message: &RecordedMessage| {
            message.role == MessageRole::Assistant
                && !(is_blank(&message.text) && message.tool_calls.is_empty())
        };
        if self.messages.iter().any(is_answer) {
            return Ok(());
        }
        self.recorder.flush_inbox();
        if self.recorder.conversation().turns.last().is_some_and(ConversationTurn::has_calls) {
            return Ok(());
        }
        Err(empty_answer())
    }

    /// Ends a turn: returns its messages for the history, also if it ended with an error, and its outcome. A turn that succeeded
    /// fails if the agent sent neither text nor a tool call.
    pub(crate) fn end(
        mut self,
        ended: Result<(), TurnError>,
    ) -> (Vec<ConversationMessage>, Result<(), TurnError>) {
        let ended = ended.and_then(|()| Ok(self.check_answered()?));
        // A run that neither finished nor failed, such as one that was too slow, has used its tokens all the same.
        if let Some(usage) = self.usage.take() {
            self.recorder.meter.add_reports(&usage);
        }
        (self.messages.into_iter().map(RecordedMessage::into_history).collect(), ended)
    }
}

impl RecordedMessage {
    fn new(role: MessageRole, text: Arc<str>) -> Self {
        RecordedMessage { role, text, tool_calls: Vec::new(), tool_call_id: None }
    }

    fn into_history(self) -> ConversationMessage {
        let RecordedMessage { role, text, tool_calls, tool_call_id } = self;
        // Messages of the agent that only call tools have no content.
        let has_content = role == MessageRole::Tool || !text.is_empty();
        let content = has_content.then(|| ContentPart::Text(text.to_string()));
        let content = content.into_iter().collect();
        ConversationMessage { role, content, name: None, tool_calls, tool_call_id }
    }
}

impl CallArguments {
    /// Parses arguments received as text. `null` means an empty object.
    pub(crate) fn from_text(text: String) -> Self {
        let text = joined(text);
        match read_arguments(&text) {
            _ if text.trim().is_empty() => CallArguments::Missing,
            Ok(value) => CallArguments::Json(value),
            Err(_) => CallArguments::Invalid(text),
        }
    }

    /// Arguments of a call that has none at `place`, but these members that nothing reads.
    pub(crate) fn missing(place: &str, unread: &[&str]) -> Self {
        if unread.is_empty() {
            return CallArguments::Missing;
        }
        let shown: Vec<String> =
            unread.iter().take(MAX_SHOWN_MEMBERS).map(|name| format!("`{}`", excerpt(name, 60))).collect();
        CallArguments::Unread(format!("the call has no {place}, but {}", shown.join(", ")))
    }

    /// Reads arguments received as JSON, or as JSON in a string.
    pub(crate) fn from_json(value: Value) -> Self {
        match value {
            Value::Null => CallArguments::Missing,
            Value::String(text) => CallArguments::from_text(text),
            value => CallArguments::Json(value),
        }
    }

    /// Returns the arguments as text for the history.
    fn to_text(&self) -> String {
        match self {
            CallArguments::Json(value) => value.to_string(),
            CallArguments::Invalid(text) => text.clone(),
            CallArguments::Missing | CallArguments::Unread(_) => "{}".to_string(),
        }
    }

    /// Returns the arguments as a value for checks and scripted answers.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            CallArguments::Missing => Value::Object(Map::new()),
            CallArguments::Json(value) => value.clone(),
            CallArguments::Invalid(text) | CallArguments::Unread(text) => Value::String(text.clone()),
        }
    }
}
