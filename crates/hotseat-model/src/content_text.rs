//! Text in the content of messages of chat completions.

use hotseat_document::excerpt;
use serde_json::Value;

use crate::call_pieces::is_call_part;

/// Text of a content, and the first part that has none.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ContentText {
    /// Text for the user.
    pub text: String,
    /// Text of refusals.
    pub refusal: String,
    /// Type of the first part that is neither text nor reasoning, such as an image.
    pub skipped: Option<String>,
}

/// A content that cannot be read, with words that follow the name of its message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// A part is a call of a tool.
    #[error("has a part `{0}` in its `content`; calls belong into `tool_calls`")]
    Call(String),
    /// A part of a text has none.
    #[error("has a part without text in its `content`: {0}")]
    NoText(String),
    /// The content is neither a text nor a list of parts.
    #[error("has a `content` that is not text: {0}")]
    Invalid(String),
}

impl ContentText {
    /// Reads a content: a text, or a list of parts. Parts with reasoning are not said to the user.
    ///
    /// # Errors
    /// If a part is a call of a tool, or is text that cannot be read: no check would see it.
    pub fn read(content: &Value) -> Result<ContentText, ContentError> {
        let mut read = ContentText::default();
        match content {
            Value::Null => {}
            Value::String(text) => read.text.push_str(text),
            Value::Array(parts) => parts.iter().try_for_each(|part| read.add(part))?,
            other => return Err(ContentError::Invalid(shown(other))),
        }
        Ok(read)
    }

    fn add(&mut self, part: &Value) -> Result<(), ContentError> {
        let part_type = part["type"].as_str();
        if is_call_part(part) {
            return Err(ContentError::Call(excerpt(part_type.unwrap_or("tool call"), 60).into_owned()));
        }
        if part_type.is_some_and(is_reasoning_part) {
            return Ok(());
        }
        // Some clients of assistants write the text into an object.
        let texts = [part, &part["text"], &part["text"]["value"]];
        match (texts.into_iter().find_map(Value::as_str), part["refusal"].as_str(), part_type) {
            (Some(text), _, _) => self.text.push_str(text),
            (None, Some(refusal), _) => self.refusal.push_str(refusal),
            (None, None, Some("text" | "output_text" | "input_text" | "refusal") | None) => {
                let is_empty = part.is_null() || part.get("text").is_some_and(Value::is_null);
                return if is_empty { Ok(()) } else { Err(ContentError::NoText(shown(part))) };
            }
            (None, None, Some(other)) => {
                self.skipped.get_or_insert_with(|| other.to_string());
            }
        }
        Ok(())
    }
}

/// True if a content part of this type is not said to the user: `thinking`, `reasoning_text`, `thought` and others.
fn is_reasoning_part(part_type: &str) -> bool {
    ["reasoning", "thinking", "thought"].iter().any(|word| part_type.contains(word))
}

fn shown(value: &Value) -> String {
    excerpt(&value.to_string(), 200).into_owned()
}
