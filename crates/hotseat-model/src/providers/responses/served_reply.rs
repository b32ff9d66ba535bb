//! Writes replies of Responses.

use serde_json::{Value, json};

use crate::providers::served::{ReplyHead, ReplyWriter, openai_error, write_event};
use crate::{ModelError, ModelReply, ModelToolCall, ReplyDelta, StopReason, TokenUsage};

/// Writes a complete reply.
pub(in crate::providers) fn responses_reply(head: &ReplyHead, reply: &ModelReply) -> Value {
    ended_response(head, output_items(head, reply), reply)
}

/// Writes the items of a reply.
fn output_items(head: &ReplyHead, reply: &ModelReply) -> Vec<Value> {
    let reasoning = (!reply.reasoning.is_empty()).then(|| reasoning_item(head, 0, &reply.reasoning));
    let said = usize::from(reasoning.is_some());
    let is_refusal = reply.stop == StopReason::Refusal;
    let has_text = !reply.text.is_empty() || reply.tool_calls.is_empty();
    let message = has_text.then(|| message_item(head, said, text_part(&reply.text, is_refusal)));
    let first_call = said + usize::from(message.is_some());
    let calls = reply.tool_calls.iter().enumerate();
    let calls = calls.map(|(index, call)| call_item(head, first_call + index, call));
    reasoning.into_iter().chain(message).chain(calls).collect()
}

/// Returns the id of the response that has sent an item with this id.
pub(in crate::providers) fn response_of_item(item: &str) -> Option<&str> {
    let (_, rest) = item.split_once('_')?;
    rest.rsplit_once('_').map(|(response, _)| response)
}

/// Writes the items of a reply again, as far as a request may refer to them.
pub(in crate::providers) fn sent_items(response: &str, reply: &ModelReply) -> Vec<Value> {
    let head = ReplyHead {
        id: response.to_owned(),
        created: 0,
        model: String::new(),
        include_usage: false,
        input_tokens: 0,
    };
    output_items(&head, reply)
}

/// Writes the response with all its items.
fn ended_response(head: &ReplyHead, output: Vec<Value>, reply: &ModelReply) -> Value {
    let reason = match reply.stop {
        StopReason::MaxTokens => Some("max_output_tokens"),
        _ => None,
    };
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    let mut response = response(head, status, output);
    response["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
    response["usage"] = usage(reply.usage);
    response
}

fn response(head: &ReplyHead, status: &str, output: Vec<Value>) -> Value {
    json!({
        "id": head.id,
        "object": "response",
        "created_at": head.created,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "max_output_tokens": null,
        "metadata": {},
        "model": head.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null},
        "service_tier": "default",
        "store": true,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": null,
        "user": null,
    })
}

fn usage(usage: TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}

/// Returns the id of an item. Responses of one conversation have different ids, and so have their items.
fn item_id(head: &ReplyHead, prefix: &str, index: usize) -> String {
    format!("{prefix}_{}_{index}", head.id)
}

fn text_part(text: &str, is_refusal: bool) -> Value {
    match is_refusal {
        true => json!({"type": "refusal", "refusal": text}),
        false => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
    }
}

fn message_item(head: &ReplyHead, index: usize, part: Value) -> Value {
    let id = item_id(head, "msg", index);
    json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]})
}

fn reasoning_item(head: &ReplyHead, index: usize, text: &str) -> Value {
    let summary = json!([{"type": "summary_text", "text": text}]);
    json!({"id": item_id(head, "rs", index), "type": "reasoning", "summary": summary})
}

fn call_item(head: &ReplyHead, index: usize, call: &ModelToolCall) -> Value {
    json!({
        "id": item_id(head, "fc", index),
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments_text(),
    })
}

/// The item that is being written.
enum OpenItem {
    Reasoning(String),
    Message(String),
    Call(Box<ModelToolCall>, String),
}

/// Writes the events of a streamed response.
pub(in crate::providers) struct ResponsesReplyWriter {
    head: ReplyHead,
    /// Number of the next event.
    sequence: u64,
    open: Option<OpenItem>,
    /// Items that are complete.
    output: Vec<Value>,
}

impl ResponsesReplyWriter {
    pub(in crate::providers) fn new(head: ReplyHead) -> Self {
        ResponsesReplyWriter { head, sequence: 0, open: None, output: Vec::new() }
    }

    fn write(&mut self, mut event: Value, out: &mut Vec<u8>) {
        event["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        write_event(&event, out);
    }

    /// Writes an event of the open item.
    fn write_in_item(&mut self, kind: &str, prefix: &str, members: Value, out: &mut Vec<u8>) {
        let index = self.output.len();
        let mut event = json!({
            "type": kind,
            "item_id": item_id(&self.head, prefix, index),
            "output_index": index,
        });
        if let (Value::Object(event), Value::Object(members)) = (&mut event, members) {
            event.extend(members);
        }
        self.write(event, out);
    }

    fn write_item(&mut self, kind: &str, item: &Value, out: &mut Vec<u8>) {
        self.write(json!({"type": kind, "output_index": self.output.len(), "item": item}), out);
    }

    /// Starts an item after the end of the open one.
    fn open(&mut self, item: OpenItem, out: &mut Vec<u8>) {
        self.close(out);
        let index = self.output.len();
        let mut started = match &item {
            OpenItem::Reasoning(_) => reasoning_item(&self.head, index, ""),
            OpenItem::Message(_) => message_item(&self.head, index, Value::Null),
            OpenItem::Call(call, _) => call_item(&self.head, index, call),
        };
        match &item {
            OpenItem::Reasoning(_) => started["summary"] = json!([]),
            OpenItem::Message(_) => started["content"] = json!([]),
            OpenItem::Call(..) => started["arguments"] = "".into(),
        }
        if !matches!(item, OpenItem::Reasoning(_)) {
            started["status"] = "in_progress".into();
        }
        self.write_item("response.output_item.added", &started, out);
        match item {
            OpenItem::Reasoning(_) => {
                let part = json!({"summary_index": 0, "part": {"type": "summary_text", "text": ""}});
                self.write_in_item("response.reasoning_summary_part.added", "rs", part, out);
            }
            OpenItem::Message(_) => {
                let part = json!({"content_index": 0, "part": text_part("", false)});
                self.write_in_item("response.content_part.added", "msg", part, out);
            }
            OpenItem::Call(..) => {}
        }
        self.open = Some(item);
    }

    /// Ends the open item.
    fn close(&mut self, out: &mut Vec<u8>) {
        let index = self.output.len();
        let item = match self.open.take() {
            None => return,
            Some(OpenItem::Reasoning(text)) => {
                let done = json!({"summary_index": 0, "text": text});
                self.write_in_item("response.reasoning_summary_text.done", "rs", done, out);
                let part = json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
                self.write_in_item("response.reasoning_summary_part.done", "rs", part, out);
                reasoning_item(&self.head, index, &text)
            }
            Some(OpenItem::Message(text)) => {
                let done = json!({"content_index": 0, "text": text, "logprobs": []});
                self.write_in_item("response.output_text.done", "msg", done, out);
                let part = json!({"content_index": 0, "part": text_part(&text, false)});
                self.write_in_item("response.content_part.done", "msg", part, out);
                message_item(&self.head, index, text_part(&text, false))
            }
            Some(OpenItem::Call(call, arguments)) => {
                let done = json!({"name": call.name, "arguments": arguments});
                self.write_in_item("response.function_call_arguments.done", "fc", done, out);
                let mut item = call_item(&self.head, index, &call);
                item["arguments"] = arguments.into();
                item
            }
        };
        self.write_item("response.output_item.done", &item, out);
        self.output.push(item);
    }

    fn add_text(&mut self, text: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenItem::Message(_))) {
            self.open(OpenItem::Message(String::new()), out);
        }
        let delta = json!({"content_index": 0, "delta": text, "logprobs": []});
        self.write_in_item("response.output_text.delta", "msg", delta, out);
        if let Some(OpenItem::Message(said)) = &mut self.open {
            said.push_str(text);
        }
    }
}

impl ReplyWriter for ResponsesReplyWriter {
    fn start(&mut self, out: &mut Vec<u8>) {
        for kind in ["response.created", "response.in_progress"] {
            let response = response(&self.head, "in_progress", Vec::new());
            self.write(json!({"type": kind, "response": response}), out);
        }
    }

    fn delta(&mut self, delta: &ReplyDelta, out: &mut Vec<u8>) {
        match delta {
            ReplyDelta::Text { text } => self.add_text(text, out),
            ReplyDelta::Reasoning { text } => {
                if !matches!(self.open, Some(OpenItem::Reasoning(_))) {
                    self.open(OpenItem::Reasoning(String::new()), out);
                }
                let delta = json!({"summary_index": 0, "delta": text});
                self.write_in_item("response.reasoning_summary_text.delta", "rs", delta, out);
                if let Some(OpenItem::Reasoning(thought)) = &mut self.open {
                    thought.push_str(text);
                }
            }
            ReplyDelta::ToolCallStarted { index: _, id, name } => {
                let call = ModelToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: json!({}),
                    ..ModelToolCall::default()
                };
                self.open(OpenItem::Call(Box::new(call), String::new()), out);
            }
            // Scripted replies write one call after the other.
            ReplyDelta::ToolCallArguments { index: _, text } => {
                let delta = json!({"delta": text});
                self.write_in_item("response.function_call_arguments.delta", "fc", delta, out);
                if let Some(OpenItem::Call(_, arguments)) = &mut self.open {
                    arguments.push_str(text);
                }
            }
        }
    }

    fn finish(&mut self, reply: &ModelReply, out: &mut Vec<u8>) {
        if self.open.is_none() && self.output.is_empty() {
            self.open(OpenItem::Message(String::new()), out);
        }
        self.close(out);
        let output = std::mem::take(&mut self.output);
        let response = ended_response(&self.head, output, reply);
        let status = response["status"].as_str().unwrap_or_default();
        self.write(json!({"type": format!("response.{status}"), "response": response}), out);
    }

    fn fail(&mut self, error: &ModelError, out: &mut Vec<u8>) {
        let written = openai_error(error, None);
        let mut response = response(&self.head, "failed", std::mem::take(&mut self.output));
        response["error"] = json!({"code": "server_error", "message": error.message});
        let event = json!({
            "type": "error",
            "code": written["code"],
            "message": error.message,
            "param": null,
        });
        self.write(event, out);
        self.write(json!({"type": "response.failed", "response": response}), out);
    }
}
