//! Parses replies of Anthropic's messages API, streamed or complete.

use std::collections::{BTreeMap, BTreeSet};

use hotseat_document::json::{keep_digits, optional_value};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::providers::connection::{
    CallIds, ReplyParser, failure, invalid_reply_error, late_call_error, truncated_reply_error,
    unreadable_reply_error, unsupported_call_error,
};
use crate::providers::optional_member::read_or_absent;
use crate::{
    ModelError, ModelReply, ProviderParts, ReplyAssembler, ReplyDelta, ReplySink, StopReason, TokenUsage,
    UsageReport, is_call_part,
};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnthropicEvent {
    MessageStart {
        message: MessageStartBody,
    },
    ContentBlockStart {
        index: u64,
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        index: u64,
        delta: ContentBlockDelta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: MessageDeltaBody,
        #[serde(default, deserialize_with = "read_or_absent")]
        usage: Option<Map<String, Value>>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// Pings and future event types.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct MessageStartBody {
    #[serde(default, deserialize_with = "read_or_absent")]
    model: Option<String>,
    #[serde(default, deserialize_with = "read_or_absent")]
    usage: Option<Map<String, Value>>,
    /// Empty: the content follows in blocks.
    #[serde(default)]
    content: Value,
}

/// A complete message.
#[derive(Debug, Deserialize)]
struct AnthropicMessage {
    #[serde(default, deserialize_with = "read_or_absent")]
    model: Option<String>,
    #[serde(default, deserialize_with = "read_or_absent")]
    usage: Option<Map<String, Value>>,
    content: Option<Vec<ContentBlock>>,
    stop_reason: Option<String>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
    Text {
        text: Option<String>,
    },
    Thinking {
        thinking: Option<String>,
        signature: Option<String>,
    },
    /// Encrypted reasoning.
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: Option<String>,
        name: String,
        #[serde(default, deserialize_with = "optional_value")]
        input: Option<Value>,
    },
    /// A call of a tool of an MCP server, which the provider makes.
    McpToolUse,
    /// Blocks without text for the user and without calls of the tools of the agent.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlockDelta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    SignatureDelta {
        signature: String,
    },
    /// Citations.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct MessageDeltaBody {
    stop_reason: Option<String>,
}

/// A tool call whose input is still arriving.
struct OpenToolUse {
    place: usize,
    /// Input from the start event; used if no pieces follow.
    input: Option<Value>,
}

/// Parser of one reply.
pub(in crate::providers) struct AnthropicParser<'r> {
    url: String,
    call_ids: CallIds<'r>,
    assembly: ReplyAssembler,
    /// Open calls, by block index.
    calls: BTreeMap<u64, OpenToolUse>,
    /// Indices of ignored blocks.
    ignored_blocks: BTreeSet<u64>,
    /// Blocks of reasoning as received, by block index.
    thinking: BTreeMap<u64, Value>,
    stop: Option<String>,
    usage: Option<Map<String, Value>>,
    model: Option<String>,
}

impl<'r> AnthropicParser<'r> {
    pub(in crate::providers) fn new(url: String, call_ids: CallIds<'r>) -> Self {
        AnthropicParser {
            url,
            call_ids,
            assembly: ReplyAssembler::default(),
            calls: BTreeMap::new(),
            ignored_blocks: BTreeSet::new(),
            thinking: BTreeMap::new(),
            stop: None,
            usage: None,
            model: None,
        }
    }

    fn start_message(&mut self, model: Option<String>, usage: Option<Map<String, Value>>) {
        self.model = model.filter(|model| !model.is_empty());
        self.merge_usage(usage);
    }

    /// Merges usage. Later values are totals, not increments, and may omit unchanged members, or have zero input in place of them.
    fn merge_usage(&mut self, usage: Option<Map<String, Value>>) {
        let Some(new) = usage else { return };
        let merged = self.usage.get_or_insert_default();
        for (key, value) in new {
            let is_omitted = value.is_null() || (key == "input_tokens" && value == 0);
            if !is_omitted || !merged.contains_key(&key) {
                merged.insert(key, value);
            }
        }
    }

    fn start_block(
        &mut self,
        index: u64,
        block: ContentBlock,
        sink: &mut dyn ReplySink,
    ) -> Result<(), ModelError> {
        match block {
            ContentBlock::Text { text } => self.add_text(text.unwrap_or_default(), sink),
            ContentBlock::Thinking { thinking, signature } => {
                self.thinking.insert(index, json!({"type": "thinking", "thinking": ""}));
                self.add_thinking(index, thinking.unwrap_or_default(), sink);
                if let Some(signature) = signature {
                    self.extend_thinking(index, "signature", &signature);
                }
            }
            ContentBlock::RedactedThinking { data } => {
                self.thinking.insert(index, json!({"type": "redacted_thinking", "data": data}));
            }
            ContentBlock::ToolUse { id, name, input } => {
                let place = self.assembly.started_calls();
                let id = self.call_ids.choose(&id.unwrap_or_default(), false, place);
                self.assembly.pass_on(ReplyDelta::ToolCallStarted { index: place, id, name }, sink);
                self.calls.insert(index, OpenToolUse { place, input });
            }
            ContentBlock::McpToolUse => return Err(unsupported_call_error(&self.url, "mcp_tool_use")),
            ContentBlock::Other => drop(self.ignored_blocks.insert(index)),
        }
        Ok(())
    }

    fn add_to_block(
        &mut self,
        index: u64,
        delta: ContentBlockDelta,
        data: &str,
        sink: &mut dyn ReplySink,
    ) -> Result<(), ModelError> {
        match delta {
            // Such a block is not said to the user.
            ContentBlockDelta::TextDelta { .. } if self.ignored_blocks.contains(&index) => {}
            ContentBlockDelta::TextDelta { text } => self.add_text(text, sink),
            ContentBlockDelta::ThinkingDelta { thinking } => self.add_thinking(index, thinking, sink),
            ContentBlockDelta::SignatureDelta { signature } => {
                self.extend_thinking(index, "signature", &signature);
            }
            ContentBlockDelta::InputJsonDelta { partial_json } => {
                let Some(call) = self.calls.get_mut(&index) else {
                    // Server-side tools stream their input as well.
                    if self.ignored_blocks.contains(&index) {
                        return Ok(());
                    }
                    return Err(invalid_reply_error(
                        &self.url,
                        "a tool call delta belongs to no open call",
                        data,
                    ));
                };
                if !partial_json.is_empty() {
                    call.input = None;
                    let place = call.place;
                    self.assembly
                        .pass_on(ReplyDelta::ToolCallArguments { index: place, text: partial_json }, sink);
                }
            }
            ContentBlockDelta::Other => {}
        }
        Ok(())
    }

    /// Ends a block. If the input came with the start event, it is emitted now.
    fn end_block(&mut self, index: u64, sink: &mut dyn ReplySink) {
        let Some(OpenToolUse { place, input: Some(input) }) = self.calls.remove(&index) else { return };
        let is_empty = match &input {
            Value::Object(members) => members.is_empty(),
            Value::Null => true,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
        };
        if !is_empty {
            self.assembly
                .pass_on(ReplyDelta::ToolCallArguments { index: place, text: input.to_string() }, sink);
        }
    }

    fn add_text(&mut self, text: String, sink: &mut dyn ReplySink) {
        if !text.is_empty() {
            self.assembly.pass_on(ReplyDelta::Text { text }, sink);
        }
    }

    /// Appends to a text of a block of reasoning.
    fn extend_thinking(&mut self, index: u64, key: &str, more: &str) {
        let Some(Value::Object(block)) = self.thinking.get_mut(&index) else { return };
        if let Value::String(text) = block.entry(key).or_insert_with(|| "".into()) {
            text.push_str(more);
        }
    }

    fn add_thinking(&mut self, index: u64, text: String, sink: &mut dyn ReplySink) {
        self.extend_thinking(index, "thinking", &text);
        if !text.is_empty() {
            self.assembly.pass_on(ReplyDelta::Reasoning { text }, sink);
        }
    }
}

impl ReplyParser for AnthropicParser<'_> {
    fn url(&self) -> &str {
        &self.url
    }

    fn handle_event(&mut self, data: &str, sink: &mut dyn ReplySink) -> Result<bool, ModelError> {
        let event: AnthropicEvent = serde_json::from_str(&keep_digits(data))
            .map_err(|error| unreadable_reply_error(&self.url, error, data))?;
        match event {
            AnthropicEvent::MessageStart { message } => {
                // Clients that take the message as the start of the reply find the call there.
                if let Some(kind) = message.call_part() {
                    let problem = format!("its start has a `{kind}`, which belongs into a block of its own");
                    return Err(invalid_reply_error(&self.url, &problem, data));
                }
                // Its output is that of the first token; the end of the stream has the total.
                let mut usage = message.usage;
                if let Some(counts) = &mut usage {
                    counts.retain(|key, _| !matches!(key.as_str(), "output_tokens" | "total_tokens"));
                }
                self.start_message(message.model, usage);
            }
            AnthropicEvent::ContentBlockStart { index, content_block } => {
                self.start_block(index, content_block, sink)?
            }
            AnthropicEvent::ContentBlockDelta { index, delta } => {
                self.add_to_block(index, delta, data, sink)?
            }
            AnthropicEvent::ContentBlockStop { index } => self.end_block(index, sink),
            AnthropicEvent::MessageDelta { delta, usage } => {
                self.stop = StopReason::later_name(self.stop.take(), delta.stop_reason);
                // Some gateways omit the end of blocks.
                while let Some((&index, _)) = self.calls.first_key_value() {
                    self.end_block(index, sink);
                }
                self.merge_usage(usage);
            }
            AnthropicEvent::MessageStop => return Ok(true),
            AnthropicEvent::Error { error } => return Err(failure::from_error_event(&self.url, &error)),
            AnthropicEvent::Other => {}
        }
        Ok(false)
    }

    fn check_late_event(&self, data: &str) -> Result<(), ModelError> {
        let has_call = match serde_json::from_str(data) {
            Ok(AnthropicEvent::MessageStart { message }) => message.call_part().is_some(),
            Ok(AnthropicEvent::ContentBlockStart { content_block, .. }) => {
                matches!(content_block, ContentBlock::ToolUse { .. } | ContentBlock::McpToolUse)
            }
            Ok(AnthropicEvent::Error { error }) => {
                return Err(failure::from_error_event(&self.url, &error));
            }
            _ => false,
        };
        if has_call { Err(late_call_error(&self.url, data)) } else { Ok(()) }
    }

    fn handle_complete(&mut self, body: &str, sink: &mut dyn ReplySink) -> Result<(), ModelError> {
        let whole: AnthropicMessage = serde_json::from_str(&keep_digits(body))
            .map_err(|error| unreadable_reply_error(&self.url, error, body))?;
        if let Some(error) = whole.error {
            return Err(failure::from_error_event(&self.url, &error));
        }
        self.start_message(whole.model, whole.usage);
        for (index, block) in (0..).zip(whole.content.unwrap_or_default()) {
            self.start_block(index, block, sink)?;
            self.end_block(index, sink);
        }
        self.stop = whole.stop_reason;
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn assembly(&self) -> &ReplyAssembler {
        &self.assembly
    }

    fn reply(&mut self) -> Result<(ModelReply, Option<TokenUsage>), ModelError> {
        let Some(stop) = self.stop.take() else { return Err(truncated_reply_error(&self.url)) };
        let reason = StopReason::from_provider(&stop);
        if reason.is_failure() {
            return Err(failure::from_error_event(&self.url, &json!({"stop_reason": stop})));
        }
        if reason == StopReason::ToolUse && self.assembly.started_calls() == 0 {
            let problem = format!("it ends with stop_reason {stop} but has no tool call");
            return Err(invalid_reply_error(&self.url, &problem, ""));
        }
        let mut reply = self.assembly.clone().into_reply();
        if !matches!(reason, StopReason::EndTurn | StopReason::ToolUse) {
            reply.stop = reason;
        }
        reply.model = self.model.clone();
        let thinking = std::mem::take(&mut self.thinking);
        if !reply.tool_calls.is_empty() && !thinking.is_empty() {
            reply.provider_parts = Some(ProviderParts::ThinkingBlocks(thinking.into_values().collect()));
        }
        let usage = self.usage.as_ref().and_then(|usage| UsageReport::parse(usage)?.to_usage());
        // No input at all is not counted.
        Ok((reply, usage.filter(|usage| usage.input_tokens > 0)))
    }
}

impl MessageStartBody {
    /// Returns the type of the first block that is a call of a tool.
    fn call_part(&self) -> Option<&str> {
        let call = self.content.as_array()?.iter().find(|block| is_call_part(block))?;
        Some(call["type"].as_str().unwrap_or("tool call"))
    }
}
