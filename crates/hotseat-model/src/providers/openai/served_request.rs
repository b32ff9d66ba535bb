//! Reads requests of chat completions.

use serde_json::{Map, Value};

use crate::providers::served::{
    MessageCollector, RequestProblem, ServedRequest, content_text, list_member, named_tool, openai_format,
    text_member, tool_call,
};
use crate::{ModelTool, ModelToolCall};

/// Reads a request of chat completions. Fails if the protocol does not allow it.
pub(in crate::providers) fn read_chat_request(
    body: &Map<String, Value>,
) -> Result<ServedRequest, RequestProblem> {
    if body.get("n").and_then(Value::as_u64).is_some_and(|count| count != 1) {
        return Err(RequestProblem::at("n", "`n` must be 1: this server writes one reply"));
    }
    let mut collector = MessageCollector::default();
    let messages = list_member(body, "messages")?;
    if messages.is_empty() {
        return Err(RequestProblem::at("messages", "`messages` must be a list with at least one message"));
    }
    for (index, message) in messages.iter().enumerate() {
        read_message(message, &format!("messages[{index}]"), &mut collector)?;
    }
    let format = body.get("response_format").unwrap_or(&Value::Null);
    let format = openai_format(format, &format["json_schema"]);
    let max_tokens = ["max_completion_tokens", "max_tokens"];
    Ok(ServedRequest {
        include_usage: body.get("stream_options").is_some_and(|options| options["include_usage"] == true),
        ..ServedRequest::read(body, collector.finish(), read_tool, format, &max_tokens)?
    })
}

fn read_message(
    message: &Value,
    place: &str,
    collector: &mut MessageCollector,
) -> Result<(), RequestProblem> {
    let Some(map) = message.as_object() else {
        return Err(RequestProblem::at(place, "a message must be an object"));
    };
    let text = content_text(map.get("content"));
    match text_member(map, "role")? {
        Some("system" | "developer") => collector.add_system(text),
        Some("user") => collector.add_user(text),
        Some("assistant") => {
            let refusal = text_member(map, "refusal")?.unwrap_or_default();
            let calls: Vec<ModelToolCall> =
                list_member(map, "tool_calls")?.iter().map(read_call).collect::<Result<_, _>>()?;
            collector.add_assistant(text + refusal, calls);
        }
        Some("tool") => {
            let id = text_member(map, "tool_call_id")?.unwrap_or_default();
            collector.add_result(id, &text, false);
        }
        role => {
            let role = role.unwrap_or_default();
            let message =
                format!("unknown role {role:?}; roles are system, developer, user, assistant and tool");
            return Err(RequestProblem::at(format!("{place}.role"), message));
        }
    }
    Ok(())
}

/// Reads a call of a function, or of a custom tool whose input is a text.
fn read_call(call: &Value) -> Result<ModelToolCall, RequestProblem> {
    let id = call["id"].as_str();
    match call.get("custom") {
        Some(custom) => tool_call(id, custom["name"].as_str(), custom.get("input")),
        None => {
            let function = &call["function"];
            tool_call(id, function["name"].as_str(), function.get("arguments"))
        }
    }
}

fn read_tool(tool: &Value) -> Result<ModelTool, RequestProblem> {
    let definition = tool.get("function").or_else(|| tool.get("custom")).unwrap_or(tool);
    named_tool(definition, definition["name"].as_str(), "parameters", "a tool needs a name")
}
