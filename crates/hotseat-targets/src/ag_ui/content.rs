//! Messages with attachments and history in the format of AG-UI.

use serde_json::{Value, json};

use super::thread::object;
use super::wire::MessageObject as Written;
use crate::message::{
    ContentPart, ConversationMessage, MediaAttachment, MediaSource, joined_text, media_parts, unique_id,
};
use crate::target::template::call_json;

/// Returns content in parts.
pub fn content_parts(content: &[ContentPart]) -> Value {
    let parts = content.iter().map(|part| match part {
        ContentPart::Text(text) => json!({"type": "text", "text": text}),
        ContentPart::Media(media) => attachment_part(media),
    });
    Value::Array(parts.collect())
}

fn attachment_part(media: &MediaAttachment) -> Value {
    let mut source = match &media.source {
        MediaSource::Data(data) => json!({"type": "data", "value": data}),
        // Files are read before the conversation, so a file path cannot occur here.
        MediaSource::Url(url) | MediaSource::File(url) => json!({"type": "url", "value": url}),
    };
    if let Some(mime) = &media.mime {
        source["mimeType"] = json!(mime);
    }
    let mut part = json!({"type": media.kind.name(), "source": source});
    if let Some(name) = &media.name {
        part["metadata"] = json!({"filename": name});
    }
    part
}

/// Returns a message before the first turn.
pub fn message_json(message: &ConversationMessage) -> Written {
    let content = match media_parts(&message.content).next() {
        Some(_) => content_parts(&message.content),
        None => Value::String(joined_text(&message.content)),
    };
    let mut written = object(json!({
        "id": unique_id(),
        "role": message.role.name(),
        "content": content,
    }));
    if let Some(name) = &message.name {
        written.insert("name".to_string(), json!(name));
    }
    if let Some(id) = &message.tool_call_id {
        written.insert("toolCallId".to_string(), json!(id));
    }
    if !message.tool_calls.is_empty() {
        written.insert("toolCalls".to_string(), message.tool_calls.iter().map(call_json).collect());
    }
    written
}
