//! The values of a script file, each with its place.

use serde_json::{Map, Number, Value};

use super::place::Place;

/// A value and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) content: Content,
    /// None for what was built in code.
    pub(super) place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    /// In the order in which it is written; no key twice.
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: Option<Place>,
    pub(super) value: Node,
}

impl Node {
    /// What the node is, as a fragment that follows "found".
    pub(super) fn in_words(&self) -> String {
        match &self.content {
            Content::Null => "nothing".to_owned(),
            Content::Bool(truth) => truth.to_string(),
            Content::Number(number) => format!("the number {number}"),
            Content::Text(text) if text.is_empty() => "an empty text".to_owned(),
            Content::Text(text) => format!("the text {:?}", shorten(text)),
            Content::List(nodes) if nodes.is_empty() => "an empty list".to_owned(),
            Content::List(_) => "a list".to_owned(),
            Content::Map(_) => "a mapping".to_owned(),
        }
    }

    /// How many nodes there are, this one included.
    pub(super) fn count(&self) -> usize {
        match &self.content {
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => 1,
            Content::List(nodes) => 1 + nodes.iter().map(Node::count).sum::<usize>(),
            Content::Map(entries) => 1 + entries.iter().map(|entry| entry.value.count()).sum::<usize>(),
        }
    }

    /// How many levels there are, this one included.
    pub(super) fn height(&self) -> usize {
        match &self.content {
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => 1,
            Content::List(nodes) => 1 + nodes.iter().map(Node::height).max().unwrap_or(0),
            Content::Map(entries) => 1 + entries.iter().map(|entry| entry.value.height()).max().unwrap_or(0),
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(truth) => Content::Bool(truth),
            Value::Number(number) => Content::Number(number),
            Value::String(text) => Content::Text(text),
            Value::Array(values) => Content::List(values.into_iter().map(Node::from).collect()),
            Value::Object(members) => Content::Map(
                members
                    .into_iter()
                    .map(|(key, value)| Entry { key, key_place: None, value: value.into() })
                    .collect(),
            ),
        };
        Node { content, place: None }
    }
}

impl From<Node> for Value {
    fn from(node: Node) -> Self {
        match node.content {
            Content::Null => Value::Null,
            Content::Bool(truth) => Value::Bool(truth),
            Content::Number(number) => Value::Number(number),
            Content::Text(text) => Value::String(text),
            Content::List(nodes) => Value::Array(nodes.into_iter().map(Value::from).collect()),
            Content::Map(entries) => {
                let members: Map<String, Value> =
                    entries.into_iter().map(|entry| (entry.key, entry.value.into())).collect();
                Value::Object(members)
            }
        }
    }
}

/// A text shortened to what fits into a sentence.
pub(crate) fn shorten(text: &str) -> std::borrow::Cow<'_, str> {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}
