//! Content of messages: text, attachments, and messages before the first turn.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use hotseat_document::SourceSpan;
use hotseat_trace::named;
use serde_json::Value;

/// Maximum size of an attached file.
const MAX_ATTACHMENT_BYTES: u64 = 64 * 1024 * 1024;

/// A part of a message.
#[derive(Debug, Clone)]
pub enum ContentPart {
    /// Text.
    Text(String),
    /// An attachment.
    Media(MediaAttachment),
}

/// An attachment of a message.
#[derive(Debug, Clone)]
pub struct MediaAttachment {
    /// Its kind.
    pub kind: MediaKind,
    /// Its name.
    pub name: Option<String>,
    /// Its media type, if known.
    pub mime: Option<String>,
    /// Its source.
    pub source: MediaSource,
    /// Position in the source file.
    pub place: SourceSpan,
}

named! {
    /// Kind of an attachment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MediaKind {
        /// Image.
        Image = "image",
        /// Audio.
        Audio = "audio",
        /// Video.
        Video = "video",
        /// Any other file.
        Document = "document",
    }
}

/// Source of an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// A file that is read before the conversation.
    File(String),
    /// A URL that the agent fetches.
    Url(String),
    /// The content itself, in base64.
    Data(String),
}

named! {
    /// Author of a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MessageRole {
        /// System prompt.
        System = "system",
        /// Developer prompt.
        Developer = "developer",
        /// The user.
        User = "user",
        /// The agent.
        Assistant = "assistant",
        /// A tool result.
        Tool = "tool",
    }
}

/// A message of a conversation, for example one before the first turn.
#[derive(Debug, Clone)]
pub struct ConversationMessage {
    /// Its author.
    pub role: MessageRole,
    /// Its content.
    pub content: Vec<ContentPart>,
    /// Name of the author.
    pub name: Option<String>,
    /// Tool calls of an assistant message.
    pub tool_calls: Vec<MessageCall>,
    /// Id of the call that a tool message answers.
    pub tool_call_id: Option<String>,
}

/// A tool call in a message.
#[derive(Debug, Clone)]
pub struct MessageCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as JSON text.
    pub arguments: String,
}

/// True if a text is base64 as in `data:` addresses, with or without padding.
pub fn is_base64(text: &str) -> bool {
    const FORGIVING: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    FORGIVING.decode(text).is_ok()
}

/// Joins the text parts by line feeds.
pub fn joined_text(parts: &[ContentPart]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            ContentPart::Text(text) => Some(text.as_str()),
            ContentPart::Media(_) => None,
        })
        .collect();
    texts.join("\n")
}

/// Returns the attachments.
pub fn media_parts(parts: &[ContentPart]) -> impl Iterator<Item = &MediaAttachment> {
    parts.iter().filter_map(|part| match part {
        ContentPart::Text(_) => None,
        ContentPart::Media(media) => Some(media),
    })
}

/// An attachment that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum AttachmentError {
    #[error("no such file: {file}; tried {}", .tried.join(", "))]
    Missing { file: String, tried: Vec<String> },
    #[error("{} is a folder; an attachment is a file", .0.display())]
    Folder(PathBuf),
    #[error("{} is a device or a pipe; an attachment is a file", .0.display())]
    Special(PathBuf),
    #[error("{} is larger than 64 MiB", .0.display())]
    TooLarge(PathBuf),
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
}

impl MediaAttachment {
    /// Reads the attached file from the first folder that contains it. Fails if no folder contains it, or it
    /// cannot be read.
    pub fn load(&mut self, folders: &[&Path]) -> Result<(), AttachmentError> {
        let MediaSource::File(written) = &self.source else { return Ok(()) };
        let Some(path) = &self.file_in(folders) else {
            let mut tried: Vec<PathBuf> = folders.iter().map(|folder| folder.join(written)).collect();
            tried.dedup();
            match tried.iter().find(|path| path.exists()) {
                Some(path) if path.is_dir() => return Err(AttachmentError::Folder(path.clone())),
                Some(path) => return Err(AttachmentError::Special(path.clone())),
                None => {}
            }
            let tried = tried.iter().map(|path| path.display().to_string()).collect();
            return Err(AttachmentError::Missing { file: written.clone(), tried });
        };
        let unreadable = |source| AttachmentError::Unreadable { path: path.clone(), source };
        if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_ATTACHMENT_BYTES {
            return Err(AttachmentError::TooLarge(path.clone()));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let name = || path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.name = self.name.take().or_else(name);
        self.mime = self.mime.take().or_else(|| guess_mime(path, self.kind));
        self.source = MediaSource::Data(BASE64_STANDARD.encode(bytes));
        Ok(())
    }

    /// Returns the attached file in the first folder that contains it.
    pub fn file_in(&self, folders: &[&Path]) -> Option<PathBuf> {
        let MediaSource::File(written) = &self.source else { return None };
        folders.iter().map(|folder| folder.join(written)).find(|path| path.is_file())
    }

    /// Returns its display name.
    pub fn display_name(&self) -> String {
        match (&self.name, &self.source) {
            (Some(name), _) => name.clone(),
            (None, MediaSource::File(path)) => path.rsplit('/').next().unwrap_or(path).to_string(),
            (None, MediaSource::Url(url)) => url.clone(),
            (None, MediaSource::Data(_)) => self.kind.name().to_string(),
        }
    }
}

/// Guesses the media type from the file extension.
fn guess_mime(path: &Path, kind: MediaKind) -> Option<String> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let mime = match extension.as_str() {
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "svg" => "image/svg+xml",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "flac" => "audio/flac",
        "ogg" if kind == MediaKind::Video => "video/ogg",
        "ogg" => "audio/ogg",
        "m4a" => "audio/mp4",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "mov" => "video/quicktime",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "md" => "text/markdown",
        "xml" => "application/xml",
        "zip" => "application/zip",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        _ => return (kind == MediaKind::Document).then(|| "text/plain".to_string()),
    };
    Some(mime.to_string())
}

/// Merges two JSON values: objects recursively, any other value of `above` replaces the one of `below`.
pub fn merge_json(below: &Value, above: &Value) -> Value {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            let mut members = below.clone();
            for (key, value) in above {
                let value = below.get(key).map_or_else(|| value.clone(), |below| merge_json(below, value));
                members.insert(key.clone(), value);
            }
            Value::Object(members)
        }
        (_, above) => above.clone(),
    }
}
