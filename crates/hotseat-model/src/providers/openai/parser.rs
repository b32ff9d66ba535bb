//! Parses chat completions, streamed or complete.

use std::collections::HashSet;

use hotseat_document::json::keep_digits;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::providers::connection::{
    CallIds, ReplyParser, failure, invalid_reply_error, late_call_error, truncated_reply_error,
    unreadable_reply_error, unsupported_call_error,
};
use crate::providers::optional_member::read_or_absent;
use crate::{
    AmbiguousPiece, ContentError, ContentText, MisplacedCalls, ModelError, ModelReply, PlacedPiece,
    ProviderParts, ReplyAssembler, ReplyDelta, ReplySink, StopReason, TokenUsage, ToolCallPiece,
    ToolCallPieces, UsageReport, completion_error, completion_usage, is_error_object, merge_extra_members,
    reported_error, unstreamed_text,
};

/// A chunk of a stream, or a complete reply.
#[derive(Debug, Deserialize)]
struct ChatCompletionChunk {
    choices: Option<Vec<ChatCompletionChoice>>,
    usage: Option<Value>,
    x_groq: Option<Value>,
    #[serde(default, deserialize_with = "read_or_absent")]
    model: Option<String>,
    error: Option<Value>,
    base_resp: Option<Value>,
    #[serde(default, alias = "toolCalls", alias = "function_call", alias = "functionCall")]
    tool_calls: MisplacedCalls,
}

#[derive(Debug, Deserialize)]
struct ChatCompletionChoice {
    index: Option<u64>,
    delta: Option<ChatCompletionMessage>,
    message: Option<ChatCompletionMessage>,
    finish_reason: Option<String>,
    usage: Option<Value>,
    /// Gateways report here that the provider failed.
    error: Option<Value>,
    #[serde(default, alias = "toolCalls", alias = "function_call", alias = "functionCall")]
    tool_calls: MisplacedCalls,
}

#[derive(Debug, Deserialize)]
struct ChatCompletionMessage {
    role: Option<String>,
    error: Option<Value>,
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<ToolCallPiece>>,
    /// The deprecated form of tool calls, or a wrong one.
    #[serde(default, alias = "toolCalls", alias = "functionCall")]
    function_call: MisplacedCalls,
    /// Members that the protocol does not define.
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// A tool call whose pieces are arriving.
#[derive(Default)]
struct PendingToolCall {
    /// Index among the calls of the reply, once its name is known.
    place: Option<usize>,
    /// Members that the protocol does not define.
    extra: Map<String, Value>,
}

/// Parser of one reply.
pub(in crate::providers) struct OpenAiParser<'r> {
    url: String,
    call_ids: CallIds<'r>,
    assembly: ReplyAssembler,
    pieces: ToolCallPieces,
    calls: Vec<PendingToolCall>,
    /// Ids of the calls that have started.
    ids: HashSet<String>,
    /// Members of the message that the protocol does not define, and `reasoning_content`.
    extra: Map<String, Value>,
    finish: Option<String>,
    refused: bool,
    /// True after the end marker of the stream.
    done: bool,
    has_choice: bool,
    /// True if a choice had a delta: a whole message after it may repeat the reply.
    has_deltas: bool,
    usage: Option<TokenUsage>,
    model: Option<String>,
}

impl<'r> OpenAiParser<'r> {
    pub(in crate::providers) fn new(url: String, call_ids: CallIds<'r>) -> Self {
        OpenAiParser {
            url,
            call_ids,
            assembly: ReplyAssembler::default(),
            pieces: ToolCallPieces::default(),
            calls: Vec::new(),
            ids: HashSet::new(),
            extra: Map::new(),
            finish: None,
            refused: false,
            done: false,
            has_choice: false,
            has_deltas: false,
            usage: None,
            model: None,
        }
    }

    fn add_chunk(&mut self, data: &str, sink: &mut dyn ReplySink) -> Result<(), ModelError> {
        let chunk: ChatCompletionChunk = serde_json::from_str(&keep_digits(data))
            .map_err(|error| unreadable_reply_error(&self.url, error, data))?;
        self.check_errors(&chunk, data)?;
        if chunk.has_misplaced_calls() {
            return Err(invalid_reply_error(&self.url, &format!("it {}", MisplacedCalls::PROBLEM), data));
        }
        let in_choice = chunk.choices.iter().flatten().find_map(|choice| choice.usage.as_ref());
        let usage = completion_usage(chunk.usage, chunk.x_groq.as_ref(), in_choice);
        // If several chunks have usage, each one is the total so far: one that cannot be used leaves it unknown.
        if let Some(report) = usage.filter(UsageReport::has_counts) {
            self.usage = report.as_object().and_then(UsageReport::parse).and_then(|report| report.to_usage());
        }
        self.model = self.model.take().or(chunk.model.filter(|model| !model.is_empty()));
        for (place, choice) in (0..).zip(chunk.choices.unwrap_or_default()) {
            // Nothing says which of several alternative replies counts.
            if choice.index.unwrap_or(place) != 0 || place != 0 {
                return Err(invalid_reply_error(&self.url, "it has more than one choice", data));
            }
            self.has_choice = true;
            if choice.delta.is_some() && choice.message.as_ref().is_some_and(ChatCompletionMessage::has_calls)
            {
                return Err(invalid_reply_error(
                    &self.url,
                    "it has a `delta` and a `message` with tool calls",
                    data,
                ));
            }
            let is_whole = choice.delta.is_none();
            self.pieces.begin_message(is_whole);
            self.has_deltas |= !is_whole;
            if let Some(message) = choice.delta.or(choice.message) {
                self.add_message(message, is_whole, data, sink)?;
            }
            let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
            self.finish = StopReason::later_name(self.finish.take(), reason);
        }
        Ok(())
    }

    /// Fails if a chunk reports an error.
    fn check_errors(&self, chunk: &ChatCompletionChunk, data: &str) -> Result<(), ModelError> {
        let in_choice = chunk.choices.iter().flatten().find_map(ChatCompletionChoice::error);
        let ChatCompletionChunk { error, base_resp, x_groq, .. } = chunk;
        let beside = completion_error(error.as_ref(), base_resp.as_ref(), x_groq.as_ref());
        if let Some(error) = beside.or(in_choice) {
            let choices = chunk.choices.iter().flatten();
            // Some clients ignore the error and carry out the calls.
            return Err(
                match choices.filter_map(ChatCompletionChoice::message).any(ChatCompletionMessage::has_calls)
                {
                    true => invalid_reply_error(&self.url, "it has an error and tool calls", data),
                    false => failure::from_error_event(&self.url, error),
                },
            );
        }
        if chunk.choices.as_ref().is_none_or(Vec::is_empty)
            && let Ok(error) = serde_json::from_str::<Value>(data)
            && is_error_object(&error)
        {
            return Err(failure::from_error_event(&self.url, &error));
        }
        Ok(())
    }

    fn add_message(
        &mut self,
        mut message: ChatCompletionMessage,
        is_whole: bool,
        data: &str,
        sink: &mut dyn ReplySink,
    ) -> Result<(), ModelError> {
        let content = match ContentText::read(message.content.as_ref().unwrap_or(&Value::Null)) {
            Ok(content) => content,
            Err(ContentError::Call(kind)) => return Err(unsupported_call_error(&self.url, &kind)),
            Err(error) => return Err(invalid_reply_error(&self.url, &format!("it {error}"), data)),
        };
        // The pieces that follow have no role of their own.
        if let Some(role) = message.role.as_deref().filter(|role| !matches!(*role, "" | "assistant")) {
            let problem = format!("it has a message with role `{role}` instead of `assistant`");
            return Err(invalid_reply_error(&self.url, &problem, data));
        }
        if let Some(text) = &message.reasoning_content {
            message.extra.insert("reasoning_content".to_string(), text.as_str().into());
        }
        let follows_deltas = is_whole && self.has_deltas;
        if follows_deltas {
            message.extra.retain(|key, _| !self.extra.contains_key(key));
        }
        merge_extra_members(&mut self.extra, message.extra);
        // Another text than the streamed one is read, too.
        let unread = |streamed: &str, text: String| match follows_deltas {
            true => unstreamed_text(streamed, &text).unwrap_or(&text).to_string(),
            false => text,
        };
        let reasoning = message.reasoning_content.or(message.reasoning).unwrap_or_default();
        let reasoning = unread(self.assembly.reasoning(), reasoning);
        if !reasoning.is_empty() {
            self.assembly.pass_on(ReplyDelta::Reasoning { text: reasoning }, sink);
        }
        let refusals = [content.refusal, message.refusal.unwrap_or_default()];
        self.refused |= refusals.iter().any(|refusal| !refusal.is_empty());
        let text = unread(self.assembly.text(), content.text + &refusals.concat());
        if !text.is_empty() {
            self.assembly.pass_on(ReplyDelta::Text { text }, sink);
        }
        for call in message.tool_calls.into_iter().flatten() {
            self.add_call_piece(call, sink)
                .map_err(|error| invalid_reply_error(&self.url, &error.to_string(), data))?;
        }
        Ok(())
    }

    fn add_call_piece(
        &mut self,
        piece: ToolCallPiece,
        sink: &mut dyn ReplySink,
    ) -> Result<(), AmbiguousPiece> {
        let PlacedPiece { call: number, name, arguments, extra } = self.pieces.place(piece)?;
        if number == self.calls.len() {
            self.calls.push(PendingToolCall::default());
        }
        merge_extra_members(&mut self.calls[number].extra, extra);
        match self.calls[number].place {
            Some(index) if !arguments.is_empty() => {
                self.assembly.pass_on(ReplyDelta::ToolCallArguments { index, text: arguments }, sink);
            }
            None if !name.is_empty() => self.start_call(number, name, sink),
            Some(_) | None => {}
        }
        Ok(())
    }

    /// Starts a call whose name is known, with the arguments that have arrived.
    fn start_call(&mut self, number: usize, name: String, sink: &mut dyn ReplySink) {
        let index = self.assembly.started_calls();
        self.calls[number].place = Some(index);
        let sent = self.pieces.id(number);
        let id = self.call_ids.choose(sent, self.ids.contains(sent), index);
        self.ids.insert(id.clone());
        self.assembly.pass_on(ReplyDelta::ToolCallStarted { index, id, name }, sink);
        let text = self.pieces.arguments(number).to_string();
        if !text.is_empty() {
            self.assembly.pass_on(ReplyDelta::ToolCallArguments { index, text }, sink);
        }
    }
}

impl ReplyParser for OpenAiParser<'_> {
    fn url(&self) -> &str {
        &self.url
    }

    fn handle_event(&mut self, data: &str, sink: &mut dyn ReplySink) -> Result<bool, ModelError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(true);
        }
        self.add_chunk(data, sink)?;
        Ok(false)
    }

    fn check_late_event(&self, data: &str) -> Result<(), ModelError> {
        let Ok(chunk) = serde_json::from_str::<ChatCompletionChunk>(data) else { return Ok(()) };
        self.check_errors(&chunk, data)?;
        let choices = chunk.choices.iter().flatten();
        let mut messages = choices.flat_map(|choice| choice.delta.iter().chain(&choice.message));
        let has_part = |message: &ChatCompletionMessage| {
            matches!(message.content.as_ref().map(ContentText::read), Some(Err(ContentError::Call(_))))
        };
        match chunk.has_misplaced_calls() || messages.any(|message| message.has_calls() || has_part(message))
        {
            true => Err(late_call_error(&self.url, data)),
            false => Ok(()),
        }
    }

    fn handle_complete(&mut self, body: &str, sink: &mut dyn ReplySink) -> Result<(), ModelError> {
        self.add_chunk(body, sink)?;
        self.done = true;
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.done || self.finish.is_some()
    }

    fn assembly(&self) -> &ReplyAssembler {
        &self.assembly
    }

    fn reply(&mut self) -> Result<(ModelReply, Option<TokenUsage>), ModelError> {
        if !self.has_ended() {
            return Err(truncated_reply_error(&self.url));
        }
        if let Some(finish) = &self.finish
            && StopReason::from_provider(finish).is_failure()
        {
            return Err(failure::from_error_event(&self.url, &json!({"finish_reason": finish})));
        }
        if !self.has_choice {
            return Err(invalid_reply_error(&self.url, "it has no choices", ""));
        }
        if let Some(nameless) = self.calls.iter().position(|call| call.place.is_none()) {
            let arguments = self.pieces.arguments(nameless);
            return Err(invalid_reply_error(&self.url, "a tool call has no name", arguments));
        }
        if let Some(reason) = &self.finish
            && StopReason::from_provider(reason) == StopReason::ToolUse
            && self.calls.is_empty()
        {
            let problem = format!("it ends with finish_reason {reason} but has no tool call");
            return Err(invalid_reply_error(&self.url, &problem, ""));
        }
        let mut reply = self.assembly.clone().into_reply();
        reply.stop = self.stop_reason(&reply);
        reply.model = self.model.clone();
        for call in &mut self.calls {
            if let Some(started) = call.place.and_then(|place| reply.tool_calls.get_mut(place)) {
                started.extra = std::mem::take(&mut call.extra);
            }
        }
        let members = std::mem::take(&mut self.extra);
        if !reply.tool_calls.is_empty() && !members.is_empty() {
            reply.provider_parts = Some(ProviderParts::ChatMembers(members));
        }
        Ok((reply, self.usage))
    }
}

impl OpenAiParser<'_> {
    fn stop_reason(&self, reply: &ModelReply) -> StopReason {
        match self.finish.as_deref().map(StopReason::from_provider) {
            _ if self.refused => StopReason::Refusal,
            // Some servers send `stop` together with tool calls.
            None | Some(StopReason::EndTurn | StopReason::ToolUse) => reply.stop.clone(),
            Some(reason) => reason,
        }
    }
}

impl ChatCompletionChunk {
    fn has_misplaced_calls(&self) -> bool {
        self.tool_calls.is_present
            || self.choices.iter().flatten().any(ChatCompletionChoice::has_misplaced_calls)
    }
}

impl ChatCompletionChoice {
    /// Returns the error of the choice or of its messages.
    fn error(&self) -> Option<&Value> {
        let mut messages = self.delta.iter().chain(&self.message);
        let in_message = || messages.find_map(|message| reported_error(message.error.as_ref()));
        reported_error(self.error.as_ref()).or_else(in_message)
    }

    fn message(&self) -> Option<&ChatCompletionMessage> {
        self.delta.as_ref().or(self.message.as_ref())
    }

    fn has_misplaced_calls(&self) -> bool {
        let mut messages = self.delta.iter().chain(&self.message);
        self.tool_calls.is_present || messages.any(|message| message.function_call.is_present)
    }
}

impl ChatCompletionMessage {
    fn has_calls(&self) -> bool {
        self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty()) || self.function_call.is_present
    }
}
