//! Reads a reply, streamed or whole.

use std::collections::HashSet;
use std::sync::Arc;

use hotseat_document::excerpt;
use hotseat_document::json::{JsonReadError, optional_value};
use hotseat_model::{
    AmbiguousPiece, ContentText, MisplacedCalls, OpenCalls, PlacedPiece, ToolCallPiece, ToolCallPieces,
    UnmatchedResult, completion_error, completion_usage, is_error_object, merge_extra_members,
    reported_error, unstreamed_text,
};
use hotseat_trace::{ErrorInfo, Origin, TimeOffset, format_first, plain_text};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::connection::lines::check_value_count;
use crate::connection::{OWN_API_ADVICE, TurnError, other_protocol_advice};
use crate::message::json_text::{append_piece, joined, read_json, readable};
use crate::message::{FinishReason, ToolReply, parse_content_output};
use crate::recorder::reports_no_output;
use crate::target::{CallArguments, TurnRecorder, protocol_error};

/// Beginning of the message about a result that names no call.
const UNNAMED_RESULT: &str = "a result has an empty `tool_call_id`";

/// Maximum number of calls that a message lists.
const MAX_LISTED_CALLS: usize = 10;

/// A chunk of a stream, or a whole completion.
#[derive(Debug, Deserialize)]
struct CompletionChunk {
    choices: Option<Vec<CompletionChoice>>,
    #[serde(default, deserialize_with = "optional_value")]
    usage: Option<Value>,
    #[serde(default, deserialize_with = "optional_value")]
    x_groq: Option<Value>,
    error: Option<Value>,
    #[serde(default, deserialize_with = "optional_value")]
    model: Option<Value>,
    base_resp: Option<Value>,
    awaiting_input: Option<bool>,
    input_hint: Option<String>,
    #[serde(default, alias = "toolCalls", alias = "function_call", alias = "functionCall")]
    tool_calls: MisplacedCalls,
    /// A message beside the choices. Only its calls matter: no client would read them.
    #[serde(default)]
    message: Value,
}

#[derive(Debug, Deserialize)]
struct CompletionChoice {
    index: Option<u64>,
    delta: Option<CompletionWireMessage>,
    message: Option<CompletionWireMessage>,
    finish_reason: Option<String>,
    #[serde(default, deserialize_with = "optional_value")]
    usage: Option<Value>,
    /// Gateways report here that the provider failed.
    error: Option<Value>,
    #[serde(default, alias = "toolCalls", alias = "function_call", alias = "functionCall")]
    tool_calls: MisplacedCalls,
}

#[derive(Debug, Deserialize)]
struct CompletionWireMessage {
    role: Option<String>,
    tool_call_id: Option<String>,
    #[serde(default, deserialize_with = "optional_value")]
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<ToolCallPiece>>,
    /// Predecessor of `tool_calls`, or a wrong name of it.
    #[serde(default, alias = "toolCalls", alias = "functionCall")]
    function_call: MisplacedCalls,
    awaiting_input: Option<bool>,
    input_hint: Option<String>,
    error: Option<Value>,
    /// Members that the protocol does not define.
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl CompletionChunk {
    /// Returns the error of the chunk, which was received as `data`, or of its first choice.
    fn error(&self, data: &str) -> Option<Value> {
        let CompletionChunk { choices, error, base_resp, x_groq, .. } = self;
        let told = completion_error(error.as_ref(), base_resp.as_ref(), x_groq.as_ref());
        let mut first = (0..).zip(choices.iter().flatten()).filter(|(place, choice)| choice.is_first(*place));
        if let Some(error) = told.or_else(|| first.find_map(|(_, choice)| choice.error())) {
            return Some(error.clone());
        }
        if !choices.as_ref().is_none_or(Vec::is_empty) {
            return None;
        }
        serde_json::from_str(&readable(data)).ok().filter(is_error_object)
    }
}

impl CompletionChoice {
    /// Returns true unless the choice, the one at `place`, is an alternative reply.
    fn is_first(&self, place: u64) -> bool {
        self.index.unwrap_or(place) == 0
    }

    /// Returns the error of the choice or of its messages. One of a message with role `tool` is that of a tool.
    fn error(&self) -> Option<&Value> {
        let mut messages = self.delta.iter().chain(&self.message);
        let in_message = || {
            messages
                .find_map(|message| reported_error(message.error.as_ref().filter(|_| !message.is_result())))
        };
        reported_error(self.error.as_ref()).or_else(in_message)
    }

    fn has_misplaced_calls(&self) -> bool {
        let mut messages = self.delta.iter().chain(&self.message);
        self.tool_calls.is_present || messages.any(|message| message.function_call.is_present)
    }
}

impl CompletionWireMessage {
    fn is_result(&self) -> bool {
        self.role.as_deref() == Some("tool")
    }

    /// True if a delta may belong to a result that is being received: it has no role, and nothing that only the agent sends.
    fn continues_result(&self) -> bool {
        let CompletionWireMessage { role, refusal, reasoning_content, reasoning, .. } = self;
        role.as_deref().is_none_or(str::is_empty)
            && !self.has_calls()
            && [refusal, reasoning_content, reasoning].iter().all(|text| text.is_none())
    }

    fn has_calls(&self) -> bool {
        self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty()) || self.function_call.is_present
    }
}

pub(super) struct CompletionReply {
    pub(super) text: Arc<str>,
    /// True if the server sent a text, even an empty one.
    pub(super) has_content: bool,
    /// Members of the message that the protocol does not define, and `reasoning_content`.
    pub(super) extra: Map<String, Value>,
    pub(super) calls: Vec<CompletionCall>,
    pub(super) finish_reason: Option<Arc<str>>,
}

/// A tool call of a reply.
pub(super) struct CompletionCall {
    /// Id to which results refer.
    pub(super) id: String,
    pub(super) trace_id: Arc<str>,
    pub(super) name: String,
    pub(super) arguments: CallArguments,
    /// The arguments as received.
    raw_arguments: String,
    /// Members that the protocol does not define.
    extra: Map<String, Value>,
}

impl CompletionCall {
    /// Returns the call as part of the history of later requests.
    pub(super) fn to_history_json(&self) -> Value {
        let arguments = if self.raw_arguments.trim().is_empty() { "{}" } else { &self.raw_arguments };
        let function = json!({"name": self.name, "arguments": arguments});
        let mut call = json!({"id": self.id, "type": "function", "function": function});
        call.as_object_mut().expect("it is an object").extend(self.extra.clone());
        call
    }
}

/// A tool call that is being received.
#[derive(Default)]
struct PartialCall {
    /// Name and trace id, once the name is known.
    started: Option<(String, Arc<str>)>,
    /// Its result, if the server has run it.
    result: Option<ToolReply>,
    extra: Map<String, Value>,
    /// Arrival of the last part.
    last_part: Option<TimeOffset>,
}

/// True if the first delta of a result has all of it: a text, unless it is the beginning of a JSON value.
fn is_complete_result(content: &Value) -> bool {
    let text = match content {
        Value::Null => return false,
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => plain_text(other),
    };
    match text.trim_start().chars().next() {
        Some('{' | '[') => read_json(&text).is_ok(),
        first => first.is_some(),
    }
}

/// A result of the server that is being received.
struct OpenResult {
    /// Id of the call.
    id: String,
    content: Value,
    error: Option<Value>,
    /// Arrival of the last part.
    last_part: TimeOffset,
    /// True if its first delta has all of it, so that deltas without a role are the agent's.
    is_complete: bool,
}

impl OpenResult {
    fn begin(id: &str, content: Option<Value>, error: Option<Value>, at: TimeOffset) -> OpenResult {
        let is_complete = content.as_ref().is_some_and(is_complete_result);
        let none = Value::String(String::new());
        let mut open =
            OpenResult { id: id.to_string(), content: none, error: None, last_part: at, is_complete };
        open.add(content, error, at);
        open
    }

    fn add(&mut self, content: Option<Value>, error: Option<Value>, at: TimeOffset) {
        self.error = error.or(self.error.take());
        let piece = content.unwrap_or_default();
        if piece.is_null() || piece == "" {
            return;
        }
        self.last_part = at;
        match (&mut self.content, piece) {
            (Value::String(known), Value::String(piece)) => append_piece(known, &piece),
            (Value::Array(known), Value::Array(parts)) => known.extend(parts),
            (Value::String(known), first) if known.is_empty() => self.content = first,
            (known, piece) => {
                let mut text = match known.take() {
                    Value::String(text) => text,
                    other => plain_text(&other),
                };
                append_piece(&mut text, &plain_text(&piece));
                *known = Value::String(text);
            }
        }
    }

    fn into_reply(self) -> ToolReply {
        match reported_error(self.error.as_ref()) {
            Some(error) => ToolReply::failed(parse_error(error).message, &plain_text(&self.content)),
            None => ToolReply::Content(parse_content_output(&self.content)),
        }
    }
}

/// Reads one reply.
#[derive(Default)]
pub(super) struct CompletionReader {
    keep_raw: bool,
    chunks: u64,
    /// The text since the last result.
    text: String,
    text_started: Option<TimeOffset>,
    /// The texts before results of the server, which are messages of their own.
    earlier_texts: Vec<Arc<str>>,
    /// Number of calls before the last result.
    earlier_calls: usize,
    reasoning: String,
    has_content: bool,
    /// Type of the first part of the content that is not read.
    skipped_part: Option<String>,
    extra: Map<String, Value>,
    pieces: ToolCallPieces,
    calls: Vec<PartialCall>,
    /// The calls without a result.
    open_calls: OpenCalls,
    /// The result whose message has begun. Deltas without a role belong to it, until it is complete.
    open_result: Option<OpenResult>,
    /// Id of the first complete result that a text without a role follows.
    unmarked_text: Option<String>,
    finish_reason: FinishReason,
    usage: Option<Value>,
    model: Option<String>,
    awaiting: Option<bool>,
    hint: Option<String>,
    has_choice: bool,
    /// Advice about the first part of the reply that is none of a chat completion.
    advice: Option<&'static str>,
    /// True if a choice had a delta: a whole message after it may repeat the reply.
    has_deltas: bool,
    /// True if a note says that a whole message differs from the deltas before it.
    has_noted_difference: bool,
    has_further_choices: bool,
    done: bool,
    /// True if the reply arrives as a whole.
    is_whole: bool,
}

impl CompletionReader {
    pub(super) fn new(keep_raw: bool) -> Self {
        CompletionReader { keep_raw, ..CompletionReader::default() }
    }

    /// Returns true if the server has ended the reply.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the number of received chunks.
    pub(super) fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Returns which protocol the reply belongs to, to end a sentence, if it has no choice.
    pub(super) fn other_protocol_advice(&self) -> Option<String> {
        Some(format!("; {}", self.advice.filter(|_| !self.has_choice)?))
    }

    /// Returns the finish reason, if known.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.name()
    }

    /// Reads the data of the next stream event.
    pub(super) fn read_chunk(&mut self, data: &str, telling: &mut TurnRecorder<'_>) -> Result<(), TurnError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        self.chunks += 1;
        if self.done {
            telling.record_note(format!("chunk {} arrived after `[DONE]`; it is included", self.chunks));
        }
        self.read_data(data, &format!("chunk {}", self.chunks), telling)
    }

    /// Reads an event that is named as an error: its data is one, or contains it as `error`.
    pub(super) fn read_error(&mut self, data: &str, telling: &mut TurnRecorder<'_>) -> TurnError {
        let told: Value = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_string()));
        if self.keep_raw {
            telling.record_raw(told.clone());
        }
        let mut error = parse_error(reported_error(told.get("error")).unwrap_or(&told));
        if matches!(error.message.trim(), "" | "[DONE]") {
            error.message = "an event named `error`".to_string();
        }
        if let Ok(chunk) = serde_json::from_str(&readable(data)) {
            self.read_beside_error(chunk, data, "the event named `error`", telling);
        }
        self.record_usage(telling);
        telling.run_failed(&error);
        TurnError::Run(error)
    }

    /// Reads a whole completion.
    pub(super) fn read_whole(&mut self, body: &str, telling: &mut TurnRecorder<'_>) -> Result<(), TurnError> {
        self.is_whole = true;
        self.read_data(body, "the answer", telling)?;
        self.done = true;
        Ok(())
    }

    fn read_data(&mut self, data: &str, what: &str, telling: &mut TurnRecorder<'_>) -> Result<(), TurnError> {
        if self.keep_raw {
            let received = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_string()));
            telling.record_raw(received);
        }
        check_value_count(data).map_err(|words| protocol_error(format!("{what} {words}")))?;
        let chunk = parse_chunk(data, what, telling)?;
        match chunk.error(data) {
            Some(error) => {
                self.read_beside_error(chunk, data, what, telling);
                self.record_usage(telling);
                Err(run_failure(&error, telling))
            }
            None => self.read_parsed(chunk, data, what, telling),
        }
    }

    /// Reads the choices that stand beside an error. The error counts more than an invalid choice, and than the finish reason.
    fn read_beside_error(
        &mut self,
        chunk: CompletionChunk,
        data: &str,
        what: &str,
        telling: &mut TurnRecorder<'_>,
    ) {
        self.read_usage(&chunk);
        if chunk.choices.is_some()
            && let Err(TurnError::Failed(failure)) = self.read_parsed(chunk, data, what, telling)
        {
            telling.record_unread_beside_error(&failure);
        }
        self.finish_reason = FinishReason::default();
    }

    /// Reads a chunk or a completion, except its error.
    fn read_parsed(
        &mut self,
        chunk: CompletionChunk,
        data: &str,
        what: &str,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        let has_usage = self.read_usage(&chunk);
        let is_signal = has_usage || chunk.awaiting_input.is_some() || chunk.input_hint.is_some();
        if chunk.choices.is_none() && !is_signal {
            telling.record_note(format!("{what} has no `choices`; it is ignored: {}", excerpt(data, 200)));
            self.advice.get_or_insert(other_protocol_advice(data).unwrap_or(OWN_API_ADVICE));
        }
        let mut choices = chunk.choices.iter().flatten();
        if chunk.tool_calls.is_present
            || MisplacedCalls::are_members_of(&chunk.message)
            || choices.any(CompletionChoice::has_misplaced_calls)
        {
            return Err(protocol_error(format!("{what} {}", MisplacedCalls::PROBLEM)));
        }
        if let Some(Value::String(model)) = chunk.model {
            self.model = Some(model);
        }
        self.awaiting = chunk.awaiting_input.or(self.awaiting);
        self.hint = chunk.input_hint.or(self.hint.take());
        for (place, choice) in (0..).zip(chunk.choices.unwrap_or_default()) {
            // Further choices are alternative replies.
            if !choice.is_first(place) {
                self.has_further_choices = true;
                continue;
            }
            self.has_choice = true;
            if choice.delta.is_some() && choice.message.as_ref().is_some_and(CompletionWireMessage::has_calls)
            {
                let message = format!("{what} has a `delta` and a `message` with tool calls");
                return Err(protocol_error(message));
            }
            let is_whole = choice.delta.is_none();
            self.pieces.begin_message(is_whole);
            self.has_deltas |= !is_whole;
            if let Some(message) = choice.delta.or(choice.message) {
                let complete = self.open_result.as_ref().filter(|open| open.is_complete);
                let continues = !is_whole && message.continues_result();
                if let Some(open) = complete.filter(|_| continues && message.content.is_some()) {
                    self.unmarked_text.get_or_insert_with(|| open.id.clone());
                }
                if !continues || complete.is_some() {
                    self.end_result(telling)?;
                }
                self.read_message(message, is_whole, what, telling)?;
            }
            let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
            if is_whole || reason.is_some() {
                self.end_result(telling)?;
            }
            self.finish_reason.add(reason.map(Arc::from));
        }
        Ok(())
    }

    /// Reads the usage of a chunk and returns true if it has one. Usage is cumulative: the last chunk with figures counts.
    fn read_usage(&mut self, chunk: &CompletionChunk) -> bool {
        let first = chunk.choices.iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0);
        let in_choice = first.and_then(|choice| choice.usage.as_ref());
        let usage = completion_usage(chunk.usage.clone(), chunk.x_groq.as_ref(), in_choice);
        let has_usage = usage.is_some();
        self.usage = usage.or(self.usage.take());
        has_usage
    }

    /// Records the usage of the reply, unless it counts no token of a reply that is not empty.
    fn record_usage(&mut self, telling: &mut TurnRecorder<'_>) {
        let Some(usage) = self.usage.take() else { return };
        let is_empty = self.text.is_empty()
            && self.earlier_texts.iter().all(|text| text.is_empty())
            && self.calls.is_empty();
        if !is_empty && reports_no_output(&usage) {
            telling.record_note("the usage counts no token of the reply, so it is not known");
            return;
        }
        let usage = telling.name_model(usage, self.model.as_deref());
        telling.add_usage(usage);
    }

    fn read_message(
        &mut self,
        mut message: CompletionWireMessage,
        is_whole: bool,
        what: &str,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), TurnError> {
        // Pieces that follow have no role of their own, so those of a message of another role cannot be left out.
        if let Some(role) = message.role.as_deref().filter(|role| !matches!(*role, "" | "assistant" | "tool"))
        {
            let role = excerpt(role, 200);
            return Err(protocol_error(format!(
                "{what} has a message with role `{role}`; the agent's messages have the role `assistant`"
            )));
        }
        self.awaiting = message.awaiting_input.or(self.awaiting);
        self.hint = message.input_hint.take().or(self.hint.take());
        // A server that runs its own tools may send their results.
        if message.is_result() {
            let Some(id) = &message.tool_call_id else {
                return Err(protocol_error(format!("{what} has a result without a `tool_call_id`")));
            };
            if message.has_calls() {
                return Err(protocol_error(format!("{what} has a result with tool calls")));
            }
            // The text before it is a message.
            self.end_message(telling);
            self.open_result = Some(OpenResult::begin(id, message.content, message.error, telling.now()));
            return Ok(());
        }
        if let Some(open) = &mut self.open_result {
            open.add(message.content, message.error, telling.now());
            return Ok(());
        }
        if let Some(text) = &message.reasoning_content {
            message.extra.insert("reasoning_content".to_string(), text.as_str().into());
        }
        let follows_deltas = is_whole && self.has_deltas;
        if follows_deltas {
            message.extra.retain(|key, _| !self.extra.contains_key(key));
        }
        merge_extra_members(&mut self.extra, message.extra);
        let reasoning = message.reasoning_content.or(message.reasoning).unwrap_or_default();
        let unread = follows_deltas.then(|| unstreamed_text(&self.reasoning, &reasoning)).flatten();
        let unread = unread.unwrap_or(&reasoning).to_string();
        self.reasoning.push_str(&unread);
        self.has_content |= message.content.as_ref().is_some_and(|content| !content.is_null());
        let content = ContentText::read(message.content.as_ref().unwrap_or(&Value::Null))
            .map_err(|error| protocol_error(format!("{what} {error}")))?;
        self.skipped_part = self.skipped_part.take().or(content.skipped);
        let mut content = content.text + &content.refusal + &message.refusal.unwrap_or_default();
        if follows_deltas {
            content = self.unstreamed_content(content, what, telling);
        }
        match content.is_empty() {
            true => {}
            false => {
                self.text_started.get_or_insert_with(|| telling.start_time());
                append_piece(&mut self.text, &content);
                self.finish_reason.follow_with(&content);
            }
        }
        let calls = message.tool_calls.unwrap_or_default();
        let origin = if self.is_whole || calls.len() > 1 { Origin::Snapshot } else { Origin::Stream };
        for call in calls {
            self.read_call(call, origin, telling)
                .map_err(|error| protocol_error(format!("{what} is ambiguous: {error}")))?;
        }
        Ok(())
    }

    /// Returns what the text of a whole message adds to the text that was streamed before it, or since the last result.
    fn unstreamed_content(&mut self, content: String, what: &str, telling: &mut TurnRecorder<'_>) -> String {
        // The texts are not joined for each message: a server may send many.
        let after_earlier =
            self.earlier_texts.iter().try_fold(content.as_str(), |rest, text| rest.strip_prefix(&**text));
        let last = Some(self.text.as_str()).filter(|text| !text.is_empty());
        let rest = after_earlier
            .and_then(|rest| unstreamed_text(&self.text, rest))
            .or_else(|| last.and_then(|text| unstreamed_text(text, &content)));
        match rest {
            Some(rest) => rest.to_string(),
            // One note is enough, however many such messages there are.
            None if std::mem::replace(&mut self.has_noted_difference, true) => content,
            None => {
                telling.record_note(format!(
                    "{what} has a `message` whose text differs from that of the deltas before it; both are read"
                ));
                content
            }
        }
    }

    /// Records the result that has been received, of a call that the server has run itself.
    fn end_result(&mut self, telling: &mut TurnRecorder<'_>) -> Result<(), TurnError> {
        let Some(open) = self.open_result.take() else { return Ok(()) };
        let (id, last_part) = (open.id.clone(), open.last_part);
        let reply = open.into_reply();
        let number = self.call_of_result(&id)?;
        let failed = |words: &str| protocol_error(format!("a result of tool call {id}, {words}"));
        let PartialCall { started: Some((name, trace_id)), result, .. } = &mut self.calls[number] else {
            return Err(failed("which was never announced"));
        };
        match result {
            // The server reports it again.
            Some(known) if *known == reply => return Ok(()),
            Some(_) if id.is_empty() => {
                let message =
                    format!("{UNNAMED_RESULT}, and the last call, of {name}, already has another one");
                return Err(protocol_error(message));
            }
            Some(_) => return Err(failed("which already has another one")),
            None => *result = Some(reply.clone()),
        }
        self.pieces.set_result(number);
        telling.record_streamed_result(trace_id, reply, Origin::Stream, last_part);
        Ok(())
    }

    /// Returns the number of the call of a result, which is open no longer. If all calls with its id have results, that is the last
    /// one, of which the server may report it again.
    fn call_of_result(&mut self, id: &str) -> Result<usize, TurnError> {
        match self.open_calls.take(id) {
            Ok(number) => Ok(number),
            Err(UnmatchedResult::NoCall) if id.is_empty() => {
                self.calls.len().checked_sub(1).ok_or_else(|| {
                    protocol_error(format!("{UNNAMED_RESULT}, and no tool call was announced"))
                })
            }
            Err(UnmatchedResult::NoCall) => {
                let unknown =
                    || protocol_error(format!("a result of tool call {id}, which was never announced"));
                self.pieces.call_with_id(id).ok_or_else(unknown)
            }
            Err(UnmatchedResult::SeveralCalls) => {
                let name = |call: usize| self.calls[call].started.as_ref().map(|(name, _)| name.clone());
                let names: Vec<String> = self.open_calls.numbers().filter_map(name).collect();
                let names = format_first(&names, MAX_LISTED_CALLS);
                Err(protocol_error(format!("{UNNAMED_RESULT}, and several calls have no result: {names}")))
            }
        }
    }

    /// Records the text since the last result as a message. What follows a result is the next message.
    fn end_message(&mut self, telling: &mut TurnRecorder<'_>) {
        let text: Arc<str> = joined(std::mem::take(&mut self.text)).into();
        let has_calls = self.calls.len() > self.earlier_calls;
        telling.record_text(text.clone(), self.text_started.take(), Some(has_calls));
        self.earlier_calls = self.calls.len();
        if !text.is_empty() {
            self.earlier_texts.push(text);
        }
    }

    fn read_call(
        &mut self,
        piece: ToolCallPiece,
        origin: Origin,
        telling: &mut TurnRecorder<'_>,
    ) -> Result<(), AmbiguousPiece> {
        let PlacedPiece { call: number, name, extra, .. } = self.pieces.place(piece)?;
        if number == self.calls.len() {
            self.calls.push(PartialCall::default());
        }
        let call = &mut self.calls[number];
        if call.result.is_none() {
            self.open_calls.add(number, self.pieces.id(number));
        }
        if call.started.is_none() && !name.is_empty() {
            // A call counts once its name is known, even if the stream breaks before its arguments are
            // complete.
            let started = Some(telling.start_time());
            let trace_id = telling.record_call(self.pieces.id(number), &name, origin, started);
            call.started = Some((name, trace_id));
        }
        merge_extra_members(&mut call.extra, extra);
        call.last_part = Some(telling.now());
        Ok(())
    }

    /// Records the data not recorded yet and returns the reply. Fails if the reply is invalid or reports an
    /// error.
    pub(super) fn finish(mut self, telling: &mut TurnRecorder<'_>) -> Result<CompletionReply, TurnError> {
        telling.record_reasoning(std::mem::take(&mut self.reasoning));
        let ended = self.end_result(telling);
        self.end_message(telling);
        self.record_usage(telling);
        let text = match &self.earlier_texts[..] {
            [text] => Arc::clone(text),
            texts => texts.join("\n").into(),
        };
        let mut calls: Vec<CompletionCall> = Vec::new();
        let mut nameless = None;
        let mut ids: HashSet<String> = HashSet::new();
        for (number, arriving) in self.calls.into_iter().enumerate() {
            let raw_arguments = self.pieces.arguments(number).to_string();
            let Some((name, trace_id)) = arriving.started else {
                nameless = Some(raw_arguments);
                continue;
            };
            let arguments = CallArguments::from_text(raw_arguments.clone());
            telling.record_streamed_arguments(&trace_id, arguments.clone(), arriving.last_part);
            // Results refer to calls by id, so each call needs a unique one.
            let id = match self.pieces.id(number) {
                "" => trace_id.to_string(),
                id if ids.contains(id) => {
                    telling.record_note(format!("tool call id {id} is used for two calls; both are counted"));
                    trace_id.to_string()
                }
                id => id.to_string(),
            };
            ids.insert(id.clone());
            let extra = arriving.extra;
            calls.push(CompletionCall { id, trace_id, name, arguments, raw_arguments, extra });
        }
        if let Some(awaiting) = self.awaiting {
            telling.record_awaiting(awaiting, self.hint);
        }
        ended?;
        if let Some(arguments) = nameless {
            return Err(protocol_error(match arguments.trim().is_empty() {
                true => "a tool call has neither a name nor arguments".to_string(),
                false => format!("a tool call has no name; its arguments are {}", excerpt(&arguments, 200)),
            }));
        }
        if !self.has_choice {
            let which = if self.has_further_choices { "no first choice" } else { "no choice" };
            let advice = self.advice.map_or_else(String::new, |advice| format!("; {advice}"));
            return Err(protocol_error(format!("the reply contains {which} (`choices`){advice}")));
        }
        if self.has_further_choices {
            telling.record_note("the reply has further choices; only the first one is read");
        }
        if let Some(part_type) = &self.skipped_part {
            let part_type = excerpt(part_type, 60);
            telling.record_note(format!(
                "the `content` of the reply has a part `{part_type}`, which is not read"
            ));
        }
        if let Some(id) = &self.unmarked_text {
            telling.record_note(format!(
                "the text after the result of tool call {id} has no role; it is read as text of the agent"
            ));
        }
        let finish_reason = self.finish_reason.into_name();
        telling.check_finish_reason(finish_reason.as_deref(), !calls.is_empty())?;
        Ok(CompletionReply { text, has_content: self.has_content, extra: self.extra, calls, finish_reason })
    }
}

/// Parses data of a stream, or a whole completion. Fails with the error of the server if invalid data has one, or is a list with
/// one, as Gemini sends it.
fn parse_chunk(data: &str, what: &str, telling: &mut TurnRecorder<'_>) -> Result<CompletionChunk, TurnError> {
    let data = readable(data);
    serde_json::from_str(&data).map_err(|error| {
        let told: Value = serde_json::from_str(&data).unwrap_or_default();
        let mut entries = told.as_array().map_or(std::slice::from_ref(&told), Vec::as_slice).iter();
        if let Some(told) = entries.find_map(|entry| reported_error(entry.get("error"))) {
            return run_failure(told, telling);
        }
        let words = match error.is_data() {
            true => format!("is not a chat completion ({error})"),
            false => JsonReadError::from(error).to_string(),
        };
        protocol_error(format!("{what} {words}: {}", excerpt(&data, 200)))
    })
}

/// Records an error of the server and returns it.
fn run_failure(error: &Value, telling: &mut TurnRecorder<'_>) -> TurnError {
    let error = parse_error(error);
    telling.run_failed(&error);
    TurnError::Run(error)
}

/// Parses an error of the server: a string, or an object with a `message` or `detail` and maybe a `code` or `type`, or the
/// `base_resp` of MiniMax.
fn parse_error(error: &Value) -> ErrorInfo {
    let text = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Some(joined(text.clone())),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let first = |places: &[&Value]| places.iter().find_map(|value| text(value));
    let message = match error {
        Value::String(text) => joined(text.clone()),
        other => first(&[
            &other["message"],
            &other["detail"],
            &error["status_msg"],
            &other["error_message"],
            &other["errorMessage"],
            &other["error_msg"],
            &other["text"],
        ])
        .unwrap_or_else(|| other.to_string()),
    };
    let code = first(&[
        &error["code"],
        &error["error_code"],
        &error["errorCode"],
        &error["type"],
        &error["status_code"],
    ]);
    ErrorInfo { code, message, retriable: None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recorder::{SecretRedactor, TraceRecorder};

    /// Reads chunks: returns the error, or the text and the calls with their arguments.
    fn read(chunks: &[String]) -> Result<(String, Vec<(String, Value)>), TurnError> {
        let mut recorder = TraceRecorder::new(SecretRedactor::default(), false);
        let mut telling = TurnRecorder::new("turn-1".into(), &mut recorder);
        let mut reading = CompletionReader::new(false);
        for chunk in chunks {
            reading.read_chunk(chunk, &mut telling)?;
        }
        let reply = reading.finish(&mut telling)?;
        let calls = reply.calls.into_iter().map(|call| (call.name, call.arguments.to_value()));
        Ok((reply.text.to_string(), calls.collect()))
    }

    fn chunk(delta: Value) -> String {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
    }

    #[test]
    fn entries_of_a_whole_message_are_different_calls() {
        let call = |amount: u64| json!({"id": "c1", "index": 0, "function": {"name": "pay", "arguments": {"amount": amount}}});
        let whole = json!({"choices": [{"message": {"tool_calls": [call(1), call(2)]}, "finish_reason": "tool_calls"}]});
        let calls = [1, 2].map(|amount| ("pay".to_string(), json!({"amount": amount})));
        assert_eq!(read(&[whole.to_string()]), Ok((String::new(), calls.to_vec())));
    }

    #[test]
    fn joins_call_pieces_of_different_servers() {
        let piece = |call: Value| chunk(json!({"tool_calls": [call]}));
        let named = |id: &str, name: &str, arguments: &str| json!({"id": id, "function": {"name": name, "arguments": arguments}});
        let calls = [("a".to_string(), json!({"x": 1})), ("b".to_string(), json!({"y": 2}))];
        let ways: [Vec<String>; 7] = [
            // Complete calls without an index.
            vec![piece(named("1", "a", "{\"x\":1}")), piece(named("2", "b", "{\"y\":2}"))],
            // All calls in one chunk.
            vec![chunk(json!({"tool_calls": [named("1", "a", "{\"x\":1}"), named("2", "b", "{\"y\":2}")]}))],
            // Without ids and index: a name starts a call, a piece without a name continues it.
            vec![
                piece(json!({"function": {"name": "a", "arguments": "{\"x\""}})),
                piece(json!({"function": {"arguments": ":1}"}})),
                piece(json!({"function": {"name": "b", "arguments": "{\"y\":2}"}})),
            ],
            // All calls have index 0 and their own ids.
            vec![
                piece(json!({"index": 0, "id": "1", "function": {"name": "a", "arguments": "{\"x\":1}"}})),
                piece(json!({"index": 0, "id": "2", "function": {"name": "b", "arguments": "{\"y\""}})),
                piece(json!({"index": 0, "function": {"arguments": ":2}"}})),
            ],
            // All calls have index 0 and no ids.
            vec![
                piece(json!({"index": 0, "function": {"name": "a", "arguments": "{\"x\":1}"}})),
                piece(json!({"index": 0, "function": {"name": "b", "arguments": "{\"y\""}})),
                piece(json!({"index": 0, "function": {"name": "b", "arguments": ":2}"}})),
            ],
            // A new id and the name in each piece.
            vec![
                piece(json!({"index": 0, "id": "1", "function": {"name": "a", "arguments": ""}})),
                piece(json!({"index": 0, "id": "2", "function": {"name": "a", "arguments": "{\"x\""}})),
                piece(json!({"index": 0, "id": "3", "function": {"name": "a", "arguments": ":1}"}})),
                piece(json!({"index": 1, "id": "4", "function": {"name": "b", "arguments": "{\"y\":"}})),
                piece(json!({"index": 1, "id": "5", "function": {"name": "b", "arguments": "2}"}})),
            ],
            // Arguments as an object, and before the name.
            vec![
                piece(json!({"index": 0, "function": {"arguments": {"x": 1}}})),
                piece(json!({"index": 1, "id": "2", "function": {"name": "b", "arguments": "{\"y\":2}"}})),
                piece(json!({"index": 0, "id": "1", "function": {"name": "a"}})),
            ],
        ];
        for way in ways {
            assert_eq!(read(&way), Ok((String::new(), calls.to_vec())), "{way:?}");
        }
    }

    #[test]
    fn complete_calls_with_one_index_and_one_name_are_different() {
        let call = |id: &str, text: &str| {
            let function = json!({"name": "pay", "arguments": json!({"to": [text]}).to_string()});
            chunk(json!({"tool_calls": [{"index": 0, "id": id, "function": function}]}))
        };
        let texts = ["}{", "\\\"]", ""];
        let calls = texts.map(|text| ("pay".to_string(), json!({"to": [text]})));
        let chunks: Vec<String> = (0..).zip(texts).map(|(id, text)| call(&format!("c{id}"), text)).collect();
        assert_eq!(read(&chunks), Ok((String::new(), calls.to_vec())));
        let empty = |id: &str| {
            let function = json!({"name": "pay", "arguments": ""});
            chunk(json!({"tool_calls": [{"index": 0, "id": id, "function": function}]}))
        };
        let calls = ["pay", "pay"].map(|name| (name.to_string(), json!({})));
        assert_eq!(read(&[empty("c0"), empty("c1")]), Ok((String::new(), calls.to_vec())));
    }

    proptest! {
        /// However pieces of calls and text are split and interleaved, nothing is lost, duplicated or merged.
        #[test]
        fn joins_split_and_interleaved_pieces(
            text in "[a-z ]{0,20}",
            calls in prop::collection::vec(("[a-z]{1,8}", prop::collection::vec("[a-zé\"\\\\ ]{0,8}", 0..4)), 0..4),
            cuts in prop::collection::vec(1_usize..5, 64),
            order in prop::collection::vec(any::<u8>(), 256),
        ) {
            let mut cuts = cuts.into_iter().cycle();
            let mut cut = |text: &str| {
                let characters: Vec<char> = text.chars().collect();
                let mut rest = characters.as_slice();
                let mut pieces = Vec::new();
                while !rest.is_empty() {
                    let (piece, more) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                    pieces.push(piece.iter().collect::<String>());
                    rest = more;
                }
                pieces
            };
            // Each call and the text are a sequence; the sequences are interleaved.
            let mut sequences: Vec<Vec<Value>> = vec![cut(&text).into_iter().map(|piece| json!({"content": piece})).collect()];
            let mut expected = Vec::new();
            for (index, (name, arguments)) in calls.iter().enumerate() {
                let arguments = json!(arguments);
                expected.push((name.clone(), arguments.clone()));
                let begin = json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "function": {"name": name}}]});
                let pieces = cut(&arguments.to_string()).into_iter().map(|piece| {
                    json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                });
                sequences.push(std::iter::once(begin).chain(pieces).collect());
            }
            let mut chunks = Vec::new();
            let mut order = order.into_iter().cycle();
            while sequences.iter().any(|sequence| !sequence.is_empty()) {
                let filled: Vec<usize> = (0..sequences.len()).filter(|&at| !sequences[at].is_empty()).collect();
                let at = filled[usize::from(order.next().unwrap_or(0)) % filled.len()];
                chunks.push(chunk(sequences[at].remove(0)));
            }
            chunks.push(chunk(json!({})));
            let (said, mut called) = read(&chunks).expect("the chunks are whole");
            // Calls are in the order in which they started.
            called.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.to_string().cmp(&b.1.to_string())));
            expected.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.to_string().cmp(&b.1.to_string())));
            prop_assert_eq!((said, called), (text, expected));
        }

        #[test]
        fn does_not_panic_on_any_chunk(chunks in prop::collection::vec("[\\[\\]{}:,\"a-z0-9]{0,40}", 0..4)) {
            let _ = read(&chunks);
        }
    }
}
