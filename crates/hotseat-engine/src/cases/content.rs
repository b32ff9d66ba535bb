//! Decodes messages and attachments.

use serde_json::Value;

use super::shape::{ATTACHMENT, IMAGE_ADDRESS, MESSAGE, MESSAGE_CALL, PART};
use hotseat_document::json::{JsonReadError, read_value};
use hotseat_document::{Diagnostic, Diagnostics, MapView, NodeView};
use hotseat_targets::message::{
    ContentPart, ConversationMessage, MediaAttachment, MediaKind, MediaSource, MessageCall, MessageRole,
    is_base64,
};

/// Decodes message content: text, or parts.
pub(super) fn read_parts(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Vec<ContentPart> {
    match view.text() {
        Some(text) => vec![ContentPart::Text(text.to_string())],
        None => {
            let parts = view.list().into_iter().flatten().filter_map(|part| part.tagged(&PART));
            parts.filter_map(|map| read_part(&map, diagnostics)).collect()
        }
    }
}

/// Decodes the attachments of a turn.
pub(super) fn read_attachments(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Vec<ContentPart> {
    let attached = map.items("attachments").filter_map(|view| view.tagged(&ATTACHMENT));
    attached.filter_map(|map| read_part(&map, diagnostics)).collect()
}

fn read_part(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<ContentPart> {
    let (kind, address) = match map.text("type")? {
        "text" => return Some(ContentPart::Text(map.text("text")?.to_string())),
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
    let (source, mime) = match parse_source(address.text()?) {
        Ok(source) => source,
        Err(words) => {
            diagnostics.push(
                Diagnostic::new(words)
                    .at(address.place())
                    .help("use `file://PATH`, `https://…`, or `data:TYPE;base64,…`"),
            );
            return None;
        }
    };
    Some(ContentPart::Media(MediaAttachment {
        kind,
        name: named("name"),
        mime: named("mimeType").or(mime),
        source,
        place: address.place(),
    }))
}

/// An invalid source of an attachment.
#[derive(Debug, thiserror::Error)]
enum MediaSourceError {
    #[error("`file://` needs a path")]
    NoPath,
    #[error("invalid address of an attachment")]
    NoAddress,
    #[error("the content of `data:` is not base64")]
    NoBase64,
}

/// Parses the source of an attachment, and its media type if included.
fn parse_source(written: &str) -> Result<(MediaSource, Option<String>), MediaSourceError> {
    let (scheme, rest) = written.split_once(':').ok_or(MediaSourceError::NoAddress)?;
    match (scheme.to_ascii_lowercase().as_str(), rest.strip_prefix("//")) {
        ("file", Some("")) => Err(MediaSourceError::NoPath),
        ("file", Some(path)) => Ok((MediaSource::File(path.to_string()), None)),
        ("http" | "https", Some(_)) => Ok((MediaSource::Url(written.to_string()), None)),
        ("data", _) => {
            // The value of a variable is not known yet.
            let is_valid = |encoded: &str| encoded.contains("${") || is_base64(encoded);
            let content = rest.split_once(";base64,").filter(|(_, encoded)| is_valid(encoded));
            let (mime, encoded) = content.ok_or(MediaSourceError::NoBase64)?;
            Ok((
                MediaSource::Data(encoded.to_string()),
                Some(mime.to_string()).filter(|mime| !mime.is_empty()),
            ))
        }
        _ => Err(MediaSourceError::NoAddress),
    }
}

/// Decodes messages.
pub(super) fn read_messages<'a>(
    views: impl Iterator<Item = NodeView<'a>>,
    diagnostics: &mut Diagnostics,
) -> Vec<ConversationMessage> {
    let maps = views.filter_map(|view| view.map(&MESSAGE)).enumerate();
    maps.map(|(index, map)| read_message(index, &map, diagnostics)).collect()
}

fn read_message(index: usize, map: &MapView<'_>, diagnostics: &mut Diagnostics) -> ConversationMessage {
    let role = map.text("role").and_then(MessageRole::from_name).unwrap_or(MessageRole::User);
    let calls = map.maps("tool_calls", &MESSAGE_CALL);
    let tool_calls: Vec<_> = calls.filter_map(|call| read_message_call(&call, diagnostics)).collect();
    // Providers return null for what is not there.
    let written = ["content", "refusal"].map(|key| map.get(key).filter(|view| !view.json().is_null()));
    if written.iter().all(Option::is_none) && tool_calls.is_empty() {
        diagnostics.report(map.place(), format!("message {index} has no `content`"));
    }
    for key in ["tool_calls", "refusal"] {
        if map.has(key) && role != MessageRole::Assistant {
            let message = format!("message {index} has `{key}`, which only assistant messages may have");
            diagnostics.report(map.key_place(key), message);
        }
    }
    match (role, map.has("tool_call_id")) {
        (MessageRole::Tool, false) => {
            let message = format!("message {index} is a tool result without `tool_call_id`");
            diagnostics.report(map.place(), message);
        }
        (MessageRole::System | MessageRole::Developer | MessageRole::User | MessageRole::Assistant, true) => {
            let message = format!("message {index} has a `tool_call_id`, which only tool messages may have");
            diagnostics.report(map.key_place("tool_call_id"), message);
        }
        (MessageRole::Tool, true) | (_, false) => {}
    }
    ConversationMessage {
        role,
        content: written.into_iter().flatten().flat_map(|part| read_parts(part, diagnostics)).collect(),
        name: map.text("name").map(str::to_string),
        tool_calls,
        tool_call_id: map.text("tool_call_id").map(str::to_string),
    }
}

fn read_message_call(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<MessageCall> {
    let inner = map.map("function");
    let written = inner.as_ref().unwrap_or(map);
    let Some(name) = written.text("name") else {
        diagnostics.report(map.place(), "this call has no `name`");
        return None;
    };
    if inner.is_some() && (map.has("name") || map.has("arguments")) {
        diagnostics.report(map.place(), "this call is defined twice, by `function` and next to it");
    }
    let arguments = match written.json("arguments") {
        None => "{}".to_string(),
        Some(Value::String(text)) => {
            if let Err(error) = read_value(&text).map_err(JsonReadError::from) {
                diagnostics
                    .report(written.place_of("arguments"), format!("the text of these arguments {error}"));
            }
            text
        }
        Some(arguments) => arguments.to_string(),
    };
    Some(MessageCall { id: map.text("id")?.to_string(), name: name.to_string(), arguments })
}
