//! The tree of a document.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Number;

use super::excerpt::shorten;
use super::place::{SourceSpan, SourceText};

/// A value and its span in the source text.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentNode {
    /// The value.
    pub value: NodeValue,
    /// Byte offsets into the text of its [`SourceText`].
    pub span: Range<usize>,
    /// True for an unquoted scalar, so that an error can suggest quoting it.
    pub plain: bool,
}

/// Value of a [`DocumentNode`], one of the JSON types.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// Null.
    Null,
    /// Boolean.
    Bool(bool),
    /// Number.
    Number(Number),
    /// String.
    String(String),
    /// List.
    List(Vec<DocumentNode>),
    /// Mapping in source order, without duplicate keys.
    Map(Vec<MapEntry>),
}

/// Key and value of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The key.
    pub key: MapKey,
    /// The value.
    pub value: DocumentNode,
}

/// Key of a mapping and its span in the source text.
#[derive(Clone, Debug, PartialEq)]
pub struct MapKey {
    /// The key.
    pub text: String,
    /// Byte offsets into the text of its [`SourceText`].
    pub span: Range<usize>,
}

impl DocumentNode {
    /// Returns the location of the node.
    pub fn place(&self, source: &Arc<SourceText>) -> SourceSpan {
        SourceSpan::new(source, self.span.clone())
    }

    /// Converts the node to JSON, dropping locations.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            NodeValue::Null => serde_json::Value::Null,
            NodeValue::Bool(truth) => serde_json::Value::Bool(*truth),
            NodeValue::Number(number) => serde_json::Value::Number(number.clone()),
            NodeValue::String(text) => serde_json::Value::String(text.clone()),
            NodeValue::List(nodes) => {
                serde_json::Value::Array(nodes.iter().map(DocumentNode::to_json).collect())
            }
            NodeValue::Map(entries) => serde_json::Value::Object(
                entries.iter().map(|entry| (entry.key.text.clone(), entry.value.to_json())).collect(),
            ),
        }
    }

    /// Describes the node, as a fragment that follows "found".
    pub(super) fn describe(&self) -> String {
        match &self.value {
            NodeValue::Null => "nothing".to_owned(),
            NodeValue::Bool(truth) => truth.to_string(),
            NodeValue::Number(number) => format!("the number {number}"),
            NodeValue::String(text) if text.is_empty() => "an empty text".to_owned(),
            NodeValue::String(text) => format!("the text {}", quote(text)),
            NodeValue::List(_) => "a list".to_owned(),
            NodeValue::Map(_) => "a mapping".to_owned(),
        }
    }

    /// Returns the source text in quotes, if the node is an unquoted scalar.
    pub(super) fn as_quoted(&self, source: &SourceText) -> Option<String> {
        if !self.plain || self.span.is_empty() {
            return None;
        }
        source.text.get(self.span.clone()).map(quote)
    }

    /// Returns the value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&DocumentNode> {
        match &self.value {
            NodeValue::Map(entries) => {
                entries.iter().find(|entry| entry.key.text == key).map(|entry| &entry.value)
            }
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::String(_)
            | NodeValue::List(_) => None,
        }
    }
}

impl From<serde_json::Value> for DocumentNode {
    /// Converts a value without a source; all spans are empty.
    fn from(value: serde_json::Value) -> Self {
        let value = match value {
            serde_json::Value::Null => NodeValue::Null,
            serde_json::Value::Bool(truth) => NodeValue::Bool(truth),
            serde_json::Value::Number(number) => NodeValue::Number(number),
            serde_json::Value::String(text) => NodeValue::String(text),
            serde_json::Value::Array(values) => {
                NodeValue::List(values.into_iter().map(DocumentNode::from).collect())
            }
            serde_json::Value::Object(members) => NodeValue::Map(
                members
                    .into_iter()
                    .map(|(text, value)| MapEntry {
                        key: MapKey { text, span: 0..0 },
                        value: DocumentNode::from(value),
                    })
                    .collect(),
            ),
        };
        DocumentNode { value, span: 0..0, plain: false }
    }
}

impl MapKey {
    /// Returns the location of the key.
    pub fn place(&self, source: &Arc<SourceText>) -> SourceSpan {
        SourceSpan::new(source, self.span.clone())
    }
}

/// Quotes and shortens a text to fit into a sentence.
fn quote(text: &str) -> String {
    format!("{:?}", shorten(text))
}
