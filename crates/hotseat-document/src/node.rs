//! The tree that a document becomes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Number;

use super::place::{Place, Source};

/// A value and the span of the text that spells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Byte offsets into the text of its [`Source`].
    pub span: Range<usize>,
    /// Whether the span is a scalar written without quotes, so that a message can say how to quote it.
    pub plain: bool,
}

/// What a [`Node`] holds: the types of JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Text.
    String(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order in which it was written. No key occurs twice.
    Map(Vec<Entry>),
}

/// One key of a mapping and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Node,
}

/// The key of a mapping and the span of the text that spells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The key as text.
    pub text: String,
    /// Byte offsets into the text of its [`Source`].
    pub span: Range<usize>,
}

impl Node {
    /// Where the node is written.
    pub fn place(&self, source: &Arc<Source>) -> Place {
        Place::new(source, self.span.clone())
    }

    /// The node as a JSON value, without its places.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(truth) => serde_json::Value::Bool(*truth),
            Value::Number(number) => serde_json::Value::Number(number.clone()),
            Value::String(text) => serde_json::Value::String(text.clone()),
            Value::List(nodes) => serde_json::Value::Array(nodes.iter().map(Node::to_json).collect()),
            Value::Map(entries) => serde_json::Value::Object(
                entries.iter().map(|entry| (entry.key.text.clone(), entry.value.to_json())).collect(),
            ),
        }
    }

    /// What the node is, as a fragment that follows "found".
    pub(super) fn in_words(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(truth) => truth.to_string(),
            Value::Number(number) => format!("the number {number}"),
            Value::String(text) if text.is_empty() => "an empty text".to_owned(),
            Value::String(text) => format!("the text {}", quote(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        }
    }

    /// How the same characters are written to be text, if the node is a plain scalar.
    pub(super) fn as_quoted(&self, source: &Source) -> Option<String> {
        if !self.plain || self.span.is_empty() {
            return None;
        }
        source.text.get(self.span.clone()).map(quote)
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => {
                entries.iter().find(|entry| entry.key.text == key).map(|entry| &entry.value)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::List(_) => None,
        }
    }
}

impl From<serde_json::Value> for Node {
    /// A value that stands in no file: its spans are empty.
    fn from(value: serde_json::Value) -> Self {
        let value = match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(truth) => Value::Bool(truth),
            serde_json::Value::Number(number) => Value::Number(number),
            serde_json::Value::String(text) => Value::String(text),
            serde_json::Value::Array(values) => Value::List(values.into_iter().map(Node::from).collect()),
            serde_json::Value::Object(members) => Value::Map(
                members
                    .into_iter()
                    .map(|(text, value)| Entry { key: Key { text, span: 0..0 }, value: Node::from(value) })
                    .collect(),
            ),
        };
        Node { value, span: 0..0, plain: false }
    }
}

impl Key {
    /// Where the key is written.
    pub fn place(&self, source: &Arc<Source>) -> Place {
        Place::new(source, self.span.clone())
    }
}

/// A text in double quotes, shortened to what fits into a sentence.
fn quote(text: &str) -> String {
    format!("{:?}", shorten(text))
}

/// A text shortened to what fits into a sentence.
pub fn shorten(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}
