//! What people say to agents: text, and what is attached to it; and messages that were said before.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hotseat_document::Place;
use serde_json::Value;

/// A file that is longer than this is not attached: nobody meant to send it.
const LONGEST: u64 = 64 * 1024 * 1024;

/// A part of what is said.
#[derive(Debug, Clone)]
pub enum Part {
    /// Words.
    Text(String),
    /// Something attached.
    Media(Media),
}

/// Something that is attached to a message.
#[derive(Debug, Clone)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// What it is called.
    pub name: Option<String>,
    /// Its media type, where that is known.
    pub mime: Option<String>,
    /// Where it comes from.
    pub source: MediaSource,
    /// Where it is written.
    pub place: Place,
}

/// What an attachment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
    /// Anything else.
    Document,
}

/// Where an attachment comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// A file, to be read before the conversation.
    File(String),
    /// An address that the agent fetches.
    Url(String),
    /// The thing itself, in base64.
    Data(String),
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Whoever set the agent up.
    System,
    /// Whoever developed it.
    Developer,
    /// The user.
    User,
    /// The agent.
    Assistant,
    /// A tool that it called.
    Tool,
}

/// A message that was said before the conversation begins.
#[derive(Debug, Clone)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: Vec<Part>,
    /// The name of whoever said it.
    pub name: Option<String>,
    /// The calls that an assistant made.
    pub tool_calls: Vec<MessageCall>,
    /// The call whose result a tool message is.
    pub tool_call_id: Option<String>,
}

/// A call in a message.
#[derive(Debug, Clone)]
pub struct MessageCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as JSON text.
    pub arguments: String,
}

impl Role {
    /// Their names in files and protocols.
    pub const NAMES: &'static [&'static str] = &["system", "developer", "user", "assistant", "tool"];

    /// The role of this name.
    pub fn named(name: &str) -> Option<Role> {
        let all = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];
        Role::NAMES.iter().position(|known| *known == name).map(|place| all[place])
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// The words among some parts, joined by line ends.
pub fn words(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Media(_) => None,
        })
        .collect();
    texts.join("\n")
}

/// The attachments among some parts.
pub fn media(parts: &[Part]) -> impl Iterator<Item = &Media> {
    parts.iter().filter_map(|part| match part {
        Part::Text(_) => None,
        Part::Media(media) => Some(media),
    })
}

impl Media {
    /// Reads the file that is meant, from the first of these folders that has it.
    ///
    /// # Errors
    /// When none has it, or it cannot be read.
    pub fn load(&mut self, folders: &[&Path]) -> Result<(), String> {
        let MediaSource::File(written) = &self.source else { return Ok(()) };
        let mut tried: Vec<PathBuf> = folders.iter().map(|folder| folder.join(written)).collect();
        tried.dedup();
        let Some(path) = tried.iter().find(|path| path.is_file()) else {
            let tried: Vec<String> = tried.iter().map(|path| path.display().to_string()).collect();
            return Err(format!("no such file: {written}; tried {}", tried.join(", ")));
        };
        let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        if std::fs::metadata(path).map_err(unreadable)?.len() > LONGEST {
            return Err(format!("{} is larger than 64 MiB", path.display()));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let name = || path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.name = self.name.take().or_else(name);
        self.mime = self.mime.take().or_else(|| mime_of(path, self.kind));
        self.source = MediaSource::Data(BASE64_STANDARD.encode(bytes));
        Ok(())
    }

    /// What it is called, for people.
    pub fn shown(&self) -> String {
        match (&self.name, &self.source) {
            (Some(name), _) => name.clone(),
            (None, MediaSource::File(path)) => path.rsplit('/').next().unwrap_or(path).to_string(),
            (None, MediaSource::Url(url)) => url.clone(),
            (None, MediaSource::Data(_)) => self.kind.name().to_string(),
        }
    }
}

impl MediaKind {
    /// Its name in files and protocols.
    pub fn name(self) -> &'static str {
        match self {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
            MediaKind::Video => "video",
            MediaKind::Document => "document",
        }
    }
}

/// The media type that the ending of a file name tells.
fn mime_of(path: &Path, kind: MediaKind) -> Option<String> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    let mime = match ending.as_str() {
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

/// One value on top of another: objects are merged, level by level; everything else is replaced.
pub fn merged(below: &Value, above: &Value) -> Value {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            let mut members = below.clone();
            for (key, value) in above {
                let value = below.get(key).map_or_else(|| value.clone(), |below| merged(below, value));
                members.insert(key.clone(), value);
            }
            Value::Object(members)
        }
        (_, above) => above.clone(),
    }
}
