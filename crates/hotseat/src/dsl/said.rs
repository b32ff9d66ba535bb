//! What the user says in a turn, in the keys of case files.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::place::At;
use super::settings::milliseconds;

/// What the user says.
pub(super) struct Said {
    /// The turn as a case file has it.
    pub turn: Map<String, Value>,
    pub at: At,
}

impl Said {
    pub(super) fn new(text: String, at: At) -> Said {
        let mut turn = Map::new();
        turn.insert("user".to_string(), text.into());
        Said { turn, at }
    }

    pub(super) fn with(&mut self, key: &str, value: Value) {
        self.turn.insert(key.to_string(), value);
    }

    pub(super) fn within(&mut self, limit: Duration) {
        self.with("timeout_ms", milliseconds(limit));
    }

    /// Adds to the list under a key.
    pub(super) fn add(&mut self, key: &str, value: Value) {
        match self.turn.get_mut(key) {
            Some(Value::Array(entries)) => entries.push(value),
            _ => self.with(key, json!([value])),
        }
    }

    /// Expects an error of which a part fits a pattern.
    pub(super) fn expect_error(&mut self, part: &str, pattern: String) {
        match self.turn.get_mut("expect_error") {
            Some(Value::Object(parts)) => drop(parts.insert(part.to_string(), pattern.into())),
            _ => self.with("expect_error", json!({ part: pattern })),
        }
    }
}

/// Something that is attached to what the user says; see [`Says::attach`](super::Says::attach). Its source is `file://PATH`
/// or a path alone, an address of HTTP, or `data:`. Paths start from the folder of the package.
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
pub struct Attachment(Map<String, Value>);

impl Attachment {
    /// A picture.
    pub fn image(source: impl Into<String>) -> Attachment {
        Attachment::new("image", source.into())
    }

    /// Sound.
    pub fn audio(source: impl Into<String>) -> Attachment {
        Attachment::new("audio", source.into())
    }

    /// Moving pictures.
    pub fn video(source: impl Into<String>) -> Attachment {
        Attachment::new("video", source.into())
    }

    /// A document.
    pub fn document(source: impl Into<String>) -> Attachment {
        Attachment::new("document", source.into())
    }

    /// What it is called, where that is not the name of the file.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Attachment {
        self.with("name", name.into())
    }

    /// Its media type, where that is not what the ending of the file says.
    #[must_use]
    pub fn mime_type(self, media_type: impl Into<String>) -> Attachment {
        self.with("mimeType", media_type.into())
    }

    fn new(kind: &str, source: String) -> Attachment {
        let is_address =
            ["file:", "data:", "http:", "https:"].iter().any(|scheme| source.starts_with(scheme));
        let source = if is_address { source } else { format!("file://{source}") };
        Attachment(Map::new()).with("type", kind.to_string()).with("source", source)
    }

    fn with(mut self, key: &str, value: String) -> Attachment {
        self.0.insert(key.to_string(), value.into());
        self
    }

    pub(super) fn written(self) -> Value {
        self.0.into()
    }
}
