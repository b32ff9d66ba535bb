//! Messages and what is attached to them, as people write them.

use serde_json::Value;

use super::shape::{ATTACHMENT, IMAGE_ADDRESS, MESSAGE, MESSAGE_CALL, PART};
use super::variables::mistake;
use crate::session::{Media, MediaKind, MediaSource, Message, MessageCall, Part, Role};
use hotseat_document::{Diagnostics, Map, View};

/// Reads what is said: text, or parts.
pub(super) fn parts(view: View<'_>, mistakes: &mut Diagnostics) -> Vec<Part> {
    match view.text() {
        Some(text) => vec![Part::Text(text.to_string())],
        None => {
            let parts = view.list().into_iter().flatten().filter_map(|part| part.tagged(&PART));
            parts.filter_map(|map| part(&map, mistakes)).collect()
        }
    }
}

/// Reads the attachments of a turn.
pub(super) fn attachments(map: &Map<'_>, mistakes: &mut Diagnostics) -> Vec<Part> {
    let attached = map.list("attachments").into_iter().flatten().filter_map(|view| view.tagged(&ATTACHMENT));
    attached.filter_map(|map| part(&map, mistakes)).collect()
}

fn part(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Part> {
    let (kind, address) = match map.text("type")? {
        "text" => return Some(Part::Text(map.text("text")?.to_string())),
        "image_url" => {
            let view = map.get("image_url")?;
            let inner = view.map(&IMAGE_ADDRESS);
            (MediaKind::Image, inner.and_then(|inner| inner.get("url")).unwrap_or(view))
        }
        "image" => (MediaKind::Image, map.get("source")?),
        "audio" => (MediaKind::Audio, map.get("source")?),
        "video" => (MediaKind::Video, map.get("source")?),
        _ => (MediaKind::Document, map.get("source")?),
    };
    let is_image_url = map.text("type") == Some("image_url");
    let named = |key: &str| if is_image_url { None } else { map.text(key).map(str::to_string) };
    let (source, mime) = match source(address.text()?) {
        Ok(source) => source,
        Err(words) => {
            mistakes.push(
                mistake(Some(address.place()), words)
                    .help("write `file://PATH`, `https://…`, or `data:TYPE;base64,…`"),
            );
            return None;
        }
    };
    Some(Part::Media(Media {
        kind,
        name: named("name"),
        mime: named("mimeType").or(mime),
        source,
        place: address.place(),
    }))
}

/// Where an attachment comes from, and its media type if that says it.
fn source(written: &str) -> Result<(MediaSource, Option<String>), String> {
    if let Some(path) = written.strip_prefix("file://") {
        return match path {
            "" => Err("`file://` names no file".to_string()),
            path => Ok((MediaSource::File(path.to_string()), None)),
        };
    }
    if written.starts_with("http://") || written.starts_with("https://") {
        return Ok((MediaSource::Url(written.to_string()), None));
    }
    let Some(data) = written.strip_prefix("data:") else {
        return Err("this is not the address of something attached".to_string());
    };
    let Some((mime, encoded)) = data.split_once(";base64,") else {
        return Err("what stands behind `data:` is not in base64".to_string());
    };
    Ok((MediaSource::Data(encoded.to_string()), Some(mime.to_string()).filter(|mime| !mime.is_empty())))
}

/// Reads messages.
pub(super) fn messages<'a>(
    views: impl Iterator<Item = View<'a>>,
    mistakes: &mut Diagnostics,
) -> Vec<Message> {
    let maps = views.filter_map(|view| view.map(&MESSAGE)).enumerate();
    maps.map(|(index, map)| message(index, &map, mistakes)).collect()
}

fn message(index: usize, map: &Map<'_>, mistakes: &mut Diagnostics) -> Message {
    let role = map.text("role").and_then(Role::named).unwrap_or(Role::User);
    let calls = map.list("tool_calls").into_iter().flatten().filter_map(|view| view.map(&MESSAGE_CALL));
    let tool_calls: Vec<MessageCall> = calls.filter_map(|call| message_call(&call, mistakes)).collect();
    if !map.has("content") && tool_calls.is_empty() {
        mistakes.push(mistake(Some(map.place()), format!("message {index} has no `content`")));
    }
    if map.has("tool_calls") && role != Role::Assistant {
        let message = format!("message {index} has `tool_calls`, and only an assistant calls tools");
        mistakes.push(mistake(map.key_place("tool_calls"), message));
    }
    match (role, map.has("tool_call_id")) {
        (Role::Tool, false) => {
            let message = format!("message {index} is the result of a tool, and has no `tool_call_id`");
            mistakes.push(mistake(Some(map.place()), message));
        }
        (Role::System | Role::Developer | Role::User | Role::Assistant, true) => {
            let message =
                format!("message {index} has a `tool_call_id`, and only the result of a tool has one");
            mistakes.push(mistake(map.key_place("tool_call_id"), message));
        }
        (Role::Tool, true) | (_, false) => {}
    }
    Message {
        role,
        content: map.get("content").map(|content| parts(content, mistakes)).unwrap_or_default(),
        name: map.text("name").map(str::to_string),
        tool_calls,
        tool_call_id: map.text("tool_call_id").map(str::to_string),
    }
}

fn message_call(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<MessageCall> {
    let inner = map.map("function");
    let written = inner.as_ref().unwrap_or(map);
    let Some(name) = written.text("name") else {
        mistakes.push(mistake(Some(map.place()), "this call has no `name`"));
        return None;
    };
    if inner.is_some() && (map.has("name") || map.has("arguments")) {
        mistakes
            .push(mistake(Some(map.place()), "this call is described twice, by `function` and beside it"));
    }
    let arguments = match written.json("arguments") {
        None => "{}".to_string(),
        Some(Value::String(text)) => {
            if serde_json::from_str::<Value>(&text).is_err() {
                mistakes.push(mistake(written.place_of("arguments"), "these arguments are not JSON"));
            }
            text
        }
        Some(arguments) => arguments.to_string(),
    };
    Some(MessageCall { id: map.text("id")?.to_string(), name: name.to_string(), arguments })
}
