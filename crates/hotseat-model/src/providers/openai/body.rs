//! Builds the request body of chat completions.

use serde_json::{Map, Value, json};

use crate::providers::connection::{ConnectorConfig, ProviderIds, merge_extra, results_first};
use crate::{
    ModelMessage, ModelRequest, ModelTool, ModelToolCall, ModelToolResult, ProviderParts, ResponseFormat,
};

/// Builds the body. `knows_new_limit` is true if the server supports `max_completion_tokens`.
pub(in crate::providers) fn request_body(
    connector: &ConnectorConfig,
    request: &ModelRequest,
    knows_new_limit: bool,
) -> Value {
    let mut body = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    put("model", Some(connector.model.as_str().into()));
    let system = request.system.as_ref().map(|system| json!({"role": "system", "content": system}));
    let ids = ProviderIds::new(&request.messages);
    let messages = results_first(&request.messages).into_iter().map(|sent| message(sent, &ids));
    put("messages", Some(system.into_iter().chain(messages).collect()));
    put("tools", (!request.tools.is_empty()).then(|| request.tools.iter().map(tool).collect()));
    put("response_format", request.response_format.as_ref().map(response_format));
    put("temperature", request.temperature.or(connector.temperature).map(Value::from));
    let limit = if knows_new_limit { "max_completion_tokens" } else { "max_tokens" };
    put(limit, request.max_tokens.or(connector.max_tokens).map(Value::from));
    put("stream", Some(connector.stream.into()));
    // Otherwise streams do not report token usage.
    put("stream_options", connector.stream.then(|| json!({"include_usage": true})));
    merge_extra(body, &connector.extra)
}

fn message(message: &ModelMessage, ids: &ProviderIds<'_>) -> Value {
    match message {
        ModelMessage::User { text } | ModelMessage::Notice { text } => {
            json!({"role": "user", "content": text})
        }
        ModelMessage::Assistant { text, tool_calls, .. } if tool_calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        ModelMessage::Assistant { text, tool_calls, provider_parts } => {
            let content = if text.is_empty() { Value::Null } else { text.as_str().into() };
            let calls: Vec<Value> =
                tool_calls.iter().map(|call| tool_call(call, ids.restore(&call.id))).collect();
            let mut message = json!({"role": "assistant", "content": content, "tool_calls": calls});
            if let Some(ProviderParts::ChatMembers(members)) = provider_parts {
                message.as_object_mut().expect("it is an object").extend(members.clone());
            }
            message
        }
        ModelMessage::Tool(result) => tool_result(result, ids),
    }
}

pub(super) fn tool_call(call: &ModelToolCall, id: &str) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments_text()});
    let mut value = json!({"id": id, "type": "function", "function": function});
    value.as_object_mut().expect("it is an object").extend(call.extra.clone());
    value
}

fn tool_result(result: &ModelToolResult, ids: &ProviderIds<'_>) -> Value {
    // The protocol has no error flag for tool results, so the text says it.
    let content =
        if result.is_error { format!("Error: {}", result.text()) } else { result.text().into_owned() };
    json!({"role": "tool", "tool_call_id": ids.restore(&result.call_id), "content": content})
}

fn tool(tool: &ModelTool) -> Value {
    let mut function = json!({"name": tool.name, "parameters": tool.input_schema});
    if !tool.description.is_empty() {
        function["description"] = tool.description.as_str().into();
    }
    json!({"type": "function", "function": function})
}

fn response_format(format: &ResponseFormat) -> Value {
    let schema = json!({"name": format.name, "schema": format.schema, "strict": format.strict});
    json!({"type": "json_schema", "json_schema": schema})
}
