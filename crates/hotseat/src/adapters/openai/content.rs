//! Messages with attachments and history, as chat completions write them.

use hotseat_trace::{Failure, FailureKind};
use serde_json::{Value, json};

use crate::session::{Media, MediaKind, MediaSource, Message, Part, media, words};

/// Content in parts.
///
/// # Errors
/// When something is attached that this interface has no form for.
pub fn parts(content: &[Part]) -> Result<Value, Failure> {
    let parts = content.iter().map(|part| match part {
        Part::Text(text) => Ok(json!({"type": "text", "text": text})),
        Part::Media(media) => attached(media),
    });
    parts.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// Whether this interface has a form for something that is attached.
pub fn has_form(media: &Media) -> bool {
    match (media.kind, &media.source) {
        (MediaKind::Video, _) | (MediaKind::Audio | MediaKind::Document, MediaSource::Url(_)) => false,
        // Files are read before anything is sent.
        (MediaKind::Image, _)
        | (MediaKind::Audio | MediaKind::Document, MediaSource::Data(_) | MediaSource::File(_)) => true,
    }
}

fn attached(media: &Media) -> Result<Value, Failure> {
    let mime = media.mime.as_deref().unwrap_or("application/octet-stream");
    match (media.kind, &media.source) {
        (MediaKind::Image, MediaSource::Url(url)) => {
            Ok(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        (MediaKind::Image, MediaSource::Data(data)) => {
            Ok(json!({"type": "image_url", "image_url": {"url": format!("data:{mime};base64,{data}")}}))
        }
        (MediaKind::Audio, MediaSource::Data(data)) => {
            let format = match mime {
                "audio/mpeg" => "mp3",
                "audio/mp4" => "m4a",
                other => other.rsplit('/').next().unwrap_or(other),
            };
            Ok(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
        }
        (MediaKind::Document, MediaSource::Data(data)) => {
            let name = media.shown();
            let data = format!("data:{mime};base64,{data}");
            Ok(json!({"type": "file", "file": {"filename": name, "file_data": data}}))
        }
        (MediaKind::Video, _)
        | (MediaKind::Audio | MediaKind::Document, MediaSource::Url(_))
        | (_, MediaSource::File(_)) => {
            let what = match &media.source {
                MediaSource::Url(_) => "the address of ",
                MediaSource::Data(_) | MediaSource::File(_) => "",
            };
            let message =
                format!("{what}{} ({}) cannot be sent over chat completions", media.kind.name(), media.place);
            Err(Failure::new(FailureKind::TestError, message))
        }
    }
}

/// A message that was said before the first turn.
///
/// # Errors
/// When something is attached that this interface has no form for.
pub fn message(message: &Message) -> Result<Value, Failure> {
    let said = words(&message.content);
    let content = match media(&message.content).next() {
        Some(_) => parts(&message.content)?,
        None if said.is_empty() && !message.tool_calls.is_empty() => Value::Null,
        None => Value::String(said),
    };
    let mut written = json!({"role": message.role.name(), "content": content});
    if let Some(name) = &message.name {
        written["name"] = json!(name);
    }
    if let Some(id) = &message.tool_call_id {
        written["tool_call_id"] = json!(id);
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        written["tool_calls"] = calls.collect();
    }
    Ok(written)
}
