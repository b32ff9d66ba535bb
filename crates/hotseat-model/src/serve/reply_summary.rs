//! Summaries of relayed answers: tokens, stop reason and tool calls, for the trace.

use serde_json::Value;

use crate::{ModelReply, ModelToolCall, StopReason};

/// Returns the usage, the stop reason and the names of the called tools of an answer in any protocol: a JSON document,
/// or a stream of events. Texts are not part of it.
pub(super) fn summarize(response: &Value) -> ModelReply {
    let mut reply = ModelReply::default();
    reply.usage.estimated = true;
    match response {
        Value::String(stream) => {
            let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
            for event in data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok()) {
                add(&mut reply, &event);
            }
        }
        document => add(&mut reply, document),
    }
    reply
}

/// Adds what a document or an event tells.
fn add(reply: &mut ModelReply, event: &Value) {
    for holder in [event, &event["message"], &event["response"]] {
        let usage = &holder["usage"];
        let input = usage["prompt_tokens"].as_u64().or(usage["input_tokens"].as_u64());
        let output = usage["completion_tokens"].as_u64().or(usage["output_tokens"].as_u64());
        if let Some(input) = input {
            reply.usage.input_tokens = input;
            reply.usage.estimated = false;
        }
        reply.usage.output_tokens = output.unwrap_or(reply.usage.output_tokens);
    }
    let choice = &event["choices"][0];
    let items = [
        &choice["message"]["tool_calls"],
        &choice["delta"]["tool_calls"],
        &event["content"],
        &event["output"],
    ];
    let items = items.into_iter().filter_map(Value::as_array).flatten();
    for item in items.chain([&event["content_block"], &event["item"]]) {
        let is_call = matches!(item["type"].as_str(), Some("tool_use" | "function_call"));
        let name = item["function"]["name"].as_str().or(item["name"].as_str().filter(|_| is_call));
        let is_new = event["type"] != "response.output_item.done";
        if let Some(name) = name.filter(|_| is_new) {
            let name = name.to_owned();
            reply.tool_calls.push(ModelToolCall { id: String::new(), name, arguments: Value::Null });
        }
    }
    let reasons = [&choice["finish_reason"], &event["stop_reason"], &event["delta"]["stop_reason"]];
    if let Some(reason) = reasons.into_iter().find_map(Value::as_str) {
        reply.stop = match reason {
            "stop" => StopReason::EndTurn,
            "tool_calls" => StopReason::ToolUse,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            other => StopReason::from(other.to_owned()),
        };
    } else if event["object"] == "response" || event["type"] == "response.completed" {
        reply.stop = if reply.tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::summarize;

    #[test]
    fn tokens_and_calls_of_all_protocols() {
        let chat = json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [{"function": {"name": "find"}}]}}], "usage": {"prompt_tokens": 30, "completion_tokens": 10}});
        let responses = json!({"object": "response", "output": [{"type": "function_call", "name": "find"}], "usage": {"input_tokens": 30, "output_tokens": 10}});
        let messages = json!({"type": "message", "content": [{"type": "tool_use", "name": "find"}], "stop_reason": "tool_use", "usage": {"input_tokens": 30, "output_tokens": 10}});
        let streamed = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":30,\"output_tokens\":1}}}\n\ndata: {\"content_block\":{\"type\":\"tool_use\",\"name\":\"find\"}}\n\ndata: {\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":10}}\n\n";
        for response in [chat, responses, messages, json!(streamed)] {
            let reply = summarize(&response);
            assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (30, 10), "{response}");
            assert!(!reply.usage.estimated);
            assert_eq!((reply.tool_calls.len(), reply.stop.as_str()), (1, "tool_use"), "{response}");
        }
        assert!(summarize(&json!("no events")).usage.estimated);
    }
}
