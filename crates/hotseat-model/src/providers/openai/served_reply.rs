//! Writes replies of chat completions.

use serde_json::{Map, Value, json};

use super::body::tool_call;
use crate::providers::served::{ReplyHead, ReplyWriter, openai_error, write_data};
use crate::{ModelError, ModelReply, ReplyDelta, StopReason};

/// Writes a complete reply.
pub(in crate::providers) fn chat_reply(head: &ReplyHead, reply: &ModelReply) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let has_text = !reply.text.is_empty() || reply.tool_calls.is_empty();
    let (content, refusal) = match reply.stop {
        StopReason::Refusal => (Value::Null, reply.text.as_str().into()),
        _ if has_text => (reply.text.as_str().into(), Value::Null),
        _ => (Value::Null, Value::Null),
    };
    message.insert("content".to_owned(), content);
    message.insert("refusal".to_owned(), refusal);
    if !reply.reasoning.is_empty() {
        message.insert("reasoning_content".to_owned(), reply.reasoning.as_str().into());
    }
    if !reply.tool_calls.is_empty() {
        message.insert(
            "tool_calls".to_owned(),
            reply.tool_calls.iter().map(|call| tool_call(call, &call.id)).collect(),
        );
    }
    json!({
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason(&reply.stop),
        }],
        "usage": reply.usage.to_completion(),
    })
}

fn finish_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Refusal => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::Other(name) => name,
    }
}

/// Writes the chunks of a streamed reply.
pub(in crate::providers) struct ChatReplyWriter {
    head: ReplyHead,
}

impl ChatReplyWriter {
    pub(in crate::providers) fn new(head: ReplyHead) -> Self {
        ChatReplyWriter { head }
    }

    fn chunk(&self, choices: Value, usage: Value) -> Value {
        let head = &self.head;
        let mut chunk = json!({
            "id": head.id,
            "object": "chat.completion.chunk",
            "created": head.created,
            "model": head.model,
            "choices": choices,
        });
        if head.include_usage {
            chunk["usage"] = usage;
        }
        chunk
    }

    fn write(&self, delta: Value, finish: Option<&str>, out: &mut Vec<u8>) {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        write_data(&self.chunk(json!([choice]), Value::Null), out);
    }
}

impl ReplyWriter for ChatReplyWriter {
    fn start(&mut self, out: &mut Vec<u8>) {
        self.write(json!({"role": "assistant", "content": ""}), None, out);
    }

    fn delta(&mut self, delta: &ReplyDelta, out: &mut Vec<u8>) {
        let delta = match delta {
            ReplyDelta::Text { text } => json!({"content": text}),
            ReplyDelta::Reasoning { text } => json!({"reasoning_content": text}),
            ReplyDelta::ToolCallStarted { index, id, name } => {
                let function = json!({"name": name, "arguments": ""});
                json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
            }
            ReplyDelta::ToolCallArguments { index, text } => {
                json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
            }
        };
        self.write(delta, None, out);
    }

    fn finish(&mut self, reply: &ModelReply, out: &mut Vec<u8>) {
        // The text was sent before it was known to be a refusal.
        let reason = match reply.stop {
            StopReason::Refusal => "content_filter",
            _ => finish_reason(&reply.stop),
        };
        self.write(json!({}), Some(reason), out);
        if self.head.include_usage {
            write_data(&self.chunk(json!([]), reply.usage.to_completion()), out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn fail(&mut self, error: &ModelError, out: &mut Vec<u8>) {
        write_data(&json!({"error": openai_error(error, None)}), out);
    }
}
