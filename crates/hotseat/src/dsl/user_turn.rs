//! One user turn of a Rust test, built with the keys of case files.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::caller_location::CallerLocation;

/// One user turn.
pub(super) struct UserTurnBuilder {
    /// The turn in the format of case files.
    pub members: Map<String, Value>,
    pub at: CallerLocation,
}

impl UserTurnBuilder {
    pub(super) fn new(text: String, at: CallerLocation) -> UserTurnBuilder {
        let mut turn = Map::new();
        turn.insert("user".to_string(), text.into());
        UserTurnBuilder { members: turn, at }
    }

    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.members.insert(key.to_string(), value);
    }

    pub(super) fn set_timeout(&mut self, limit: Duration) {
        self.set("timeout_ms", milliseconds(limit));
    }

    /// Appends to the list under a key.
    pub(super) fn push(&mut self, key: &str, value: Value) {
        match self.members.get_mut(key) {
            Some(Value::Array(entries)) => entries.push(value),
            _ => self.set(key, json!([value])),
        }
    }

    /// Expects an error whose `part` (message or code) matches a pattern.
    pub(super) fn expect_error(&mut self, part: &str, pattern: String) {
        match self.members.get_mut("expect_error") {
            Some(Value::Object(parts)) => drop(parts.insert(part.to_string(), pattern.into())),
            _ => self.set("expect_error", json!({ part: pattern })),
        }
    }
}

/// Converts a time limit to the format of case files.
pub(super) fn milliseconds(duration: Duration) -> Value {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).into()
}

/// A file attached to a user message; see [`SayFuture::attach`](super::SayFuture::attach). The source is a path,
/// `file://PATH`, an HTTP address or a `data:` URL. Paths are relative to the package directory.
///
/// ```no_run
/// # use hotseat::dsl::prelude::*;
/// # fn a(g: &mut Group) {
/// g.it("reads a receipt", async |t| {
///     let receipt = Attachment::image("tests/receipt.png").named("receipt of May");
///     t.user.says("What did this cost?").attach(receipt).await;
/// });
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Attachment(Map<String, Value>);

impl Attachment {
    /// Attaches an image.
    pub fn image(source: impl Into<String>) -> Attachment {
        Attachment::new("image", source.into())
    }

    /// Attaches an audio file.
    pub fn audio(source: impl Into<String>) -> Attachment {
        Attachment::new("audio", source.into())
    }

    /// Attaches a video.
    pub fn video(source: impl Into<String>) -> Attachment {
        Attachment::new("video", source.into())
    }

    /// Attaches a document.
    pub fn document(source: impl Into<String>) -> Attachment {
        Attachment::new("document", source.into())
    }

    /// Sets the display name; the default is the file name.
    pub fn named(self, name: impl Into<String>) -> Attachment {
        self.with("name", name.into())
    }

    /// Sets the media type; the default is derived from the file extension.
    pub fn mime_type(self, media_type: impl Into<String>) -> Attachment {
        self.with("mimeType", media_type.into())
    }

    fn new(kind: &str, source: String) -> Attachment {
        let scheme = source.split_once(':').map_or("", |(scheme, _)| scheme);
        let is_address =
            ["file", "data", "http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let source = if is_address { source } else { format!("file://{source}") };
        Attachment(Map::new()).with("type", kind.to_string()).with("source", source)
    }

    fn with(mut self, key: &str, value: String) -> Attachment {
        self.0.insert(key.to_string(), value.into());
        self
    }

    pub(super) fn into_json(self) -> Value {
        self.0.into()
    }
}
