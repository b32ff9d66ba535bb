//! Messages with attachments and history in the format of chat completions.

use hotseat_trace::{AttemptFailure, FailureKind};
use serde_json::{Value, json};

use crate::message::{ContentPart, ConversationMessage, MediaAttachment, MediaKind, MediaSource};
use crate::target::template::chat_message_json;

/// Returns content in parts. Fails if an attachment is not supported by the protocol.
pub fn content_parts(content: &[ContentPart]) -> Result<Value, AttemptFailure> {
    let parts = content.iter().map(|part| match part {
        ContentPart::Text(text) => Ok(json!({"type": "text", "text": text})),
        ContentPart::Media(media) => attachment_part(media),
    });
    parts.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// Returns true if the protocol supports the attachment.
pub fn is_supported(media: &MediaAttachment) -> bool {
    match (media.kind, &media.source) {
        (MediaKind::Video, _) | (MediaKind::Audio | MediaKind::Document, MediaSource::Url(_)) => false,
        // Files are read before anything is sent.
        (MediaKind::Image, _)
        | (MediaKind::Audio | MediaKind::Document, MediaSource::Data(_) | MediaSource::File(_)) => true,
    }
}

fn attachment_part(media: &MediaAttachment) -> Result<Value, AttemptFailure> {
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
            let name = media.display_name();
            let data = format!("data:{mime};base64,{data}");
            Ok(json!({"type": "file", "file": {"filename": name, "file_data": data}}))
        }
        (MediaKind::Video, _)
        | (MediaKind::Audio | MediaKind::Document, MediaSource::Url(_))
        | (_, MediaSource::File(_)) => {
            let what = match &media.source {
                MediaSource::Url(_) => " by URL",
                MediaSource::Data(_) | MediaSource::File(_) => "",
            };
            let message =
                format!("{}{what} ({}) is not supported by chat completions", media.kind.name(), media.place);
            Err(AttemptFailure::new(FailureKind::TestError, message))
        }
    }
}

/// Returns a message before the first turn. Fails if an attachment is not supported by the protocol.
pub fn message_json(message: &ConversationMessage) -> Result<Value, AttemptFailure> {
    Ok(chat_message_json(message, content_parts(&message.content)?))
}
