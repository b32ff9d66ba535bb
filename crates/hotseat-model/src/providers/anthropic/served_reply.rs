//! Writes replies of the messages API.

use serde_json::{Value, json};

use crate::providers::served::{ReplyHead, ReplyWriter, write_event};
use crate::{ModelError, ModelErrorKind, ModelReply, ModelToolCall, ReplyDelta, StopReason, TokenUsage};

/// Writes a complete reply.
pub(in crate::providers) fn anthropic_reply(head: &ReplyHead, reply: &ModelReply) -> Value {
    let thinking = (!reply.reasoning.is_empty())
        .then(|| json!({"type": "thinking", "thinking": reply.reasoning, "signature": ""}));
    let text = (!reply.text.is_empty()).then(|| json!({"type": "text", "text": reply.text}));
    let calls = reply.tool_calls.iter().map(tool_use);
    let content: Vec<Value> = thinking.into_iter().chain(text).chain(calls).collect();
    message(head, content, Some(stop_reason(&reply.stop)), usage(reply.usage))
}

fn tool_use(call: &ModelToolCall) -> Value {
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
}

fn message(head: &ReplyHead, content: Vec<Value>, stop: Option<&str>, usage: Value) -> Value {
    json!({
        "id": head.id,
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn stop_reason(stop: &StopReason) -> &str {
    stop.as_str()
}

/// Writes token counts. The API counts tokens from the cache separately from other input.
fn usage(usage: TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    })
}

/// Writes the body of an error.
pub(in crate::providers) fn anthropic_error(error: &ModelError) -> Value {
    let kind = match (error.kind, error.status) {
        (_, Some(529)) => "overloaded_error",
        (ModelErrorKind::RateLimit, _) => "rate_limit_error",
        (ModelErrorKind::Auth, Some(403)) => "permission_error",
        (ModelErrorKind::Auth, _) => "authentication_error",
        (ModelErrorKind::ContextTooLong, Some(413)) => "request_too_large",
        (ModelErrorKind::BadRequest, Some(404)) => "not_found_error",
        (ModelErrorKind::BadRequest | ModelErrorKind::ContextTooLong | ModelErrorKind::Unanswered, _) => {
            "invalid_request_error"
        }
        (ModelErrorKind::Timeout, _) => "timeout_error",
        (
            ModelErrorKind::Network
            | ModelErrorKind::Server
            | ModelErrorKind::Decode
            | ModelErrorKind::Configuration,
            _,
        ) => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": error.message}})
}

/// Kind of the content block that is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Thinking,
    Text,
    ToolUse(usize),
}

/// Writes the events of a streamed reply.
pub(in crate::providers) struct AnthropicReplyWriter {
    head: ReplyHead,
    open: Option<OpenBlock>,
    /// Number of started blocks.
    blocks: usize,
}

impl AnthropicReplyWriter {
    pub(in crate::providers) fn new(head: ReplyHead) -> Self {
        AnthropicReplyWriter { head, open: None, blocks: 0 }
    }

    /// Ends the open block, and starts another one.
    fn open(&mut self, block: OpenBlock, content: Value, out: &mut Vec<u8>) {
        self.close(out);
        let event = json!({"type": "content_block_start", "index": self.blocks, "content_block": content});
        write_event(&event, out);
        (self.open, self.blocks) = (Some(block), self.blocks + 1);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            write_event(&json!({"type": "content_block_stop", "index": self.blocks - 1}), out);
        }
    }

    fn write(&self, delta: Value, out: &mut Vec<u8>) {
        let index = self.blocks.saturating_sub(1);
        write_event(&json!({"type": "content_block_delta", "index": index, "delta": delta}), out);
    }
}

impl ReplyWriter for AnthropicReplyWriter {
    fn start(&mut self, out: &mut Vec<u8>) {
        let input = TokenUsage { input_tokens: self.head.input_tokens, ..TokenUsage::default() };
        let message = message(&self.head, Vec::new(), None, usage(input));
        write_event(&json!({"type": "message_start", "message": message}), out);
    }

    fn delta(&mut self, delta: &ReplyDelta, out: &mut Vec<u8>) {
        match delta {
            ReplyDelta::Text { text } => {
                if self.open != Some(OpenBlock::Text) {
                    self.open(OpenBlock::Text, json!({"type": "text", "text": ""}), out);
                }
                self.write(json!({"type": "text_delta", "text": text}), out);
            }
            ReplyDelta::Reasoning { text } => {
                if self.open != Some(OpenBlock::Thinking) {
                    let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                    self.open(OpenBlock::Thinking, block, out);
                }
                self.write(json!({"type": "thinking_delta", "thinking": text}), out);
            }
            ReplyDelta::ToolCallStarted { index, id, name } => {
                let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                self.open(OpenBlock::ToolUse(*index), block, out);
            }
            ReplyDelta::ToolCallArguments { index, text } => {
                // Scripted replies write one call after the other, as this protocol requires.
                if self.open == Some(OpenBlock::ToolUse(*index)) {
                    self.write(json!({"type": "input_json_delta", "partial_json": text}), out);
                }
            }
        }
    }

    fn finish(&mut self, reply: &ModelReply, out: &mut Vec<u8>) {
        self.close(out);
        let stop = json!({"stop_reason": stop_reason(&reply.stop), "stop_sequence": null});
        write_event(&json!({"type": "message_delta", "delta": stop, "usage": usage(reply.usage)}), out);
        write_event(&json!({"type": "message_stop"}), out);
    }

    fn fail(&mut self, error: &ModelError, out: &mut Vec<u8>) {
        write_event(&anthropic_error(error), out);
    }
}
