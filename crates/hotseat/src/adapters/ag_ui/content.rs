//! Messages with attachments and history, as the protocol writes them.

use serde_json::{Value, json};

use super::thread::object;
use super::wire::Message as Written;
use crate::session::{Media, MediaSource, Message, Part, media, words};

/// Content in parts.
pub fn parts(content: &[Part]) -> Value {
    let parts = content.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Media(media) => attached(media),
    });
    Value::Array(parts.collect())
}

fn attached(media: &Media) -> Value {
    let mut source = match &media.source {
        MediaSource::Data(data) => json!({"type": "data", "value": data}),
        // A file is read before the conversation begins; what is left would be a name that means nothing elsewhere.
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

/// A message that was said before the first turn.
pub fn message(message: &Message) -> Written {
    let content = match media(&message.content).next() {
        Some(_) => parts(&message.content),
        None => Value::String(words(&message.content)),
    };
    let mut written = object(json!({
        "id": uuid::Uuid::new_v4().to_string(),
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
        let calls = message.tool_calls.iter().map(|call| {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        written.insert("toolCalls".to_string(), Value::Array(calls.collect()));
    }
    written
}
