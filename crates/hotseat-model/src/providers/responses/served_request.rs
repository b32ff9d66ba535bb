//! Reads requests of Responses.

use serde_json::{Map, Value};

use crate::ModelTool;
use crate::providers::served::{
    MessageCollector, RequestProblem, ServedRequest, content_text, list_member, named_tool, openai_format,
    text_member, tool_call,
};

/// Reads a request of Responses. Fails if the protocol does not allow it.
pub(in crate::providers) fn read_responses_request(
    body: &Map<String, Value>,
) -> Result<ServedRequest, RequestProblem> {
    let mut collector = MessageCollector::default();
    if let Some(instructions) = text_member(body, "instructions")? {
        collector.add_system(instructions.to_owned());
    }
    match body.get("input") {
        Some(Value::String(text)) => collector.add_user(text.clone()),
        _ => {
            for (index, item) in list_member(body, "input")?.iter().enumerate() {
                read_item(item, &format!("input[{index}]"), &mut collector)?;
            }
        }
    }
    let conversation = collector.finish();
    let previous = text_member(body, "previous_response_id")?.map(str::to_owned);
    if conversation.1.is_empty() && previous.is_none() {
        return Err(RequestProblem::at("input", "`input` must be a text or a list with at least one item"));
    }
    let format = body.get("text").map_or(&Value::Null, |text| &text["format"]);
    let format = openai_format(format, format);
    Ok(ServedRequest {
        previous,
        ..ServedRequest::read(body, conversation, read_tool, format, &["max_output_tokens"])?
    })
}

fn read_item(item: &Value, place: &str, collector: &mut MessageCollector) -> Result<(), RequestProblem> {
    let Some(map) = item.as_object() else {
        return Err(RequestProblem::at(place, "an item must be an object"));
    };
    match text_member(map, "type")? {
        None | Some("message") => {
            let text = content_text(map.get("content"));
            match text_member(map, "role")? {
                Some("system" | "developer") => collector.add_system(text),
                Some("user") => collector.add_user(text),
                Some("assistant") => collector.extend_assistant(&text, None),
                role => {
                    let role = role.unwrap_or_default();
                    let message =
                        format!("unknown role {role:?}; roles are system, developer, user and assistant");
                    return Err(RequestProblem::at(format!("{place}.role"), message));
                }
            }
        }
        Some("function_call" | "custom_tool_call") => {
            let arguments = map.get("arguments").or_else(|| map.get("input"));
            let call = tool_call(text_member(map, "call_id")?, text_member(map, "name")?, arguments)?;
            collector.extend_assistant("", Some(call));
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            let id = text_member(map, "call_id")?.unwrap_or_default();
            collector.add_result(id, &content_text(map.get("output")), false);
        }
        // The thoughts of the model are no part of the conversation.
        Some("reasoning") => {}
        Some(kind) => {
            let message = format!("items of type {kind:?} are not supported here");
            return Err(RequestProblem::at(format!("{place}.type"), message));
        }
    }
    Ok(())
}

/// Reads a function. Tools of the provider are named by their type.
fn read_tool(tool: &Value) -> Result<ModelTool, RequestProblem> {
    let name = tool["name"].as_str().or_else(|| tool["type"].as_str());
    named_tool(tool, name, "parameters", "a tool needs a name")
}
