//! Reads requests of the messages API.

use serde_json::{Map, Value};

use crate::ResponseFormat;
use crate::providers::served::{
    MessageCollector, RequestProblem, ServedRequest, content_text, list_member, named_tool, text_member,
    tool_call,
};

/// Reads a request of the messages API. Fails if the protocol does not allow it.
pub(in crate::providers) fn read_anthropic_request(
    body: &Map<String, Value>,
) -> Result<ServedRequest, RequestProblem> {
    let mut collector = MessageCollector::default();
    let system = content_text(body.get("system"));
    if !system.is_empty() {
        collector.add_system(system);
    }
    let messages = list_member(body, "messages")?;
    if messages.is_empty() {
        return Err(RequestProblem::at("messages", "messages: at least one message is required"));
    }
    for (index, message) in messages.iter().enumerate() {
        read_message(message, &format!("messages.{index}"), &mut collector)?;
    }
    let format = body.get("output_config").map_or(&Value::Null, |config| &config["format"]);
    let format = if format.is_null() { body.get("output_format").unwrap_or(&Value::Null) } else { format };
    let format = (format["type"] == "json_schema").then(|| ResponseFormat {
        name: String::new(),
        schema: format["schema"].clone(),
        strict: true,
    });
    let read_tool =
        |tool: &Value| named_tool(tool, tool["name"].as_str(), "input_schema", "tools: a tool needs a name");
    ServedRequest::read(body, collector.finish(), read_tool, format, &["max_tokens"])
}

fn read_message(
    message: &Value,
    place: &str,
    collector: &mut MessageCollector,
) -> Result<(), RequestProblem> {
    let Some(map) = message.as_object() else {
        return Err(RequestProblem::at(place, format!("{place}: a message must be an object")));
    };
    let content = map.get("content");
    let blocks = content.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_kind = |block: &&Value, kind: &str| block["type"] == kind;
    match text_member(map, "role")? {
        Some("user") => {
            let results: Vec<&Value> = blocks.iter().filter(|block| is_kind(block, "tool_result")).collect();
            for result in &results {
                let id = result["tool_use_id"].as_str().unwrap_or_default();
                let text = content_text(result.get("content"));
                collector.add_result(id, &text, result["is_error"] == true);
            }
            let others: Vec<Value> =
                blocks.iter().filter(|block| !is_kind(block, "tool_result")).cloned().collect();
            if results.is_empty() || !others.is_empty() {
                let others = if blocks.is_empty() { content.cloned() } else { Some(Value::Array(others)) };
                collector.add_user(content_text(others.as_ref()));
            }
        }
        Some("assistant") => {
            let texts: Vec<Value> = blocks.iter().filter(|block| is_kind(block, "text")).cloned().collect();
            let texts = if blocks.is_empty() { content.cloned() } else { Some(Value::Array(texts)) };
            let calls = blocks.iter().filter(|block| is_kind(block, "tool_use"));
            let calls = calls
                .map(|call| tool_call(call["id"].as_str(), call["name"].as_str(), call.get("input")))
                .collect::<Result<_, _>>()?;
            collector.add_assistant(content_text(texts.as_ref()), calls);
        }
        Some("system") => collector.add_system(content_text(content)),
        role => {
            let role = role.unwrap_or_default();
            let message = format!("{place}.role: unknown role {role:?}; roles are user and assistant");
            return Err(RequestProblem::at(format!("{place}.role"), message));
        }
    }
    Ok(())
}
