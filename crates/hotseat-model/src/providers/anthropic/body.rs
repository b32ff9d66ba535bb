//! Builds the request body of the messages API.

use serde_json::{Map, Value, json};

use crate::providers::connection::{ConnectorConfig, ProviderIds, merge_extra, results_first};
use crate::{ModelMessage, ModelRequest, ModelTool, ModelToolCall, ModelToolResult, ProviderParts};

/// Default maximum length of a reply in tokens. The protocol requires a value, and every model supports this
/// one.
const DEFAULT_MAX_TOKENS: u32 = 4096;

pub(in crate::providers) fn request_body(connector: &ConnectorConfig, request: &ModelRequest) -> Value {
    let mut body = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    put("model", Some(connector.model.as_str().into()));
    put("max_tokens", Some(request.max_tokens.or(connector.max_tokens).unwrap_or(DEFAULT_MAX_TOKENS).into()));
    put("system", request.system.as_deref().filter(|system| !system.is_empty()).map(Value::from));
    put("messages", Some(messages(&request.messages)));
    put("tools", (!request.tools.is_empty()).then(|| request.tools.iter().map(tool).collect()));
    // The schema is always enforced; the API has no weaker mode.
    put(
        "output_config",
        request
            .response_format
            .as_ref()
            .map(|format| json!({"format": {"type": "json_schema", "schema": format.schema}})),
    );
    put("temperature", request.temperature.or(connector.temperature).map(Value::from));
    put("stream", Some(connector.stream.into()));
    merge_extra(body, &connector.extra)
}

/// Converts the messages to alternating turns: consecutive messages of one role are merged.
fn messages(messages: &[ModelMessage]) -> Value {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut add = |role: &'static str, block: Value| match turns.last_mut() {
        Some((last, blocks)) if *last == role => blocks.push(block),
        _ => turns.push((role, vec![block])),
    };
    let ids = &ProviderIds::new(messages);
    for message in results_first(messages) {
        match message {
            ModelMessage::User { text } | ModelMessage::Notice { text } => add("user", text_block(text)),
            ModelMessage::Tool(result) => add("user", tool_result(result, ids)),
            ModelMessage::Assistant { text, tool_calls, provider_parts } => {
                if let Some(ProviderParts::ThinkingBlocks(blocks)) = provider_parts {
                    blocks.iter().for_each(|block| add("assistant", block.clone()));
                }
                // The API rejects empty text blocks.
                if !text.is_empty() {
                    add("assistant", text_block(text));
                }
                for call in tool_calls {
                    add("assistant", tool_use(call, ids));
                }
            }
        }
    }
    turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool_use(call: &ModelToolCall, ids: &ProviderIds<'_>) -> Value {
    // The API accepts objects only. If the model wrote something else, it sees that text.
    let input = match &call.arguments {
        Value::Object(_) => call.arguments.clone(),
        other => json!({"not_an_object": other}),
    };
    json!({"type": "tool_use", "id": ids.restore(&call.id), "name": call.name, "input": input})
}

fn tool_result(result: &ModelToolResult, ids: &ProviderIds<'_>) -> Value {
    let id = ids.restore(&result.call_id);
    let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": result.text()});
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}

fn tool(tool: &ModelTool) -> Value {
    let mut value = json!({"name": tool.name, "input_schema": tool.input_schema});
    if !tool.description.is_empty() {
        value["description"] = tool.description.as_str().into();
    }
    value
}
