//! Reading a tree that has been checked.
//!
//! Every getter returns an `Option`, so a decoder cannot panic; after [`check`](super::check()) a `None` means
//! that the key was left out.

use std::sync::Arc;

use serde_json::Number;

use super::check::whole_number;
use super::node::{Entry, Node, Value};
use super::place::{Place, Source};
use super::shape::{Kind, Shape, Tagged};

/// A node together with the source it is written in.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The node.
    pub node: &'a Node,
    /// The source it is written in.
    pub source: &'a Arc<Source>,
}

impl<'a> View<'a> {
    /// A view of a node.
    pub fn new(node: &'a Node, source: &'a Arc<Source>) -> Self {
        View { node, source }
    }

    /// Where it is written.
    pub fn place(self) -> Place {
        self.node.place(self.source)
    }

    /// Whether it is nothing.
    pub fn is_null(self) -> bool {
        self.node.value == Value::Null
    }

    /// The truth value.
    pub fn bool(self) -> Option<bool> {
        match self.node.value {
            Value::Bool(truth) => Some(truth),
            _ => None,
        }
    }

    /// The text.
    pub fn text(self) -> Option<&'a str> {
        match &self.node.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is a whole one.
    pub fn integer(self) -> Option<i64> {
        self.number().and_then(whole_number)
    }

    /// The number.
    pub fn number(self) -> Option<&'a Number> {
        match &self.node.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The entries, if it is a list.
    pub fn list(self) -> Option<impl ExactSizeIterator<Item = View<'a>>> {
        match &self.node.value {
            Value::List(nodes) => Some(nodes.iter().map(move |node| View::new(node, self.source))),
            _ => None,
        }
    }

    /// The entries if it is a list, otherwise itself: for what may be written as one or as several.
    pub fn one_or_many(self) -> impl Iterator<Item = View<'a>> {
        let nodes = match &self.node.value {
            Value::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(self.node),
        };
        nodes.iter().map(move |node| View::new(node, self.source))
    }

    /// The keys with their places, and the values, if it is a mapping.
    pub fn entries(self) -> Option<impl ExactSizeIterator<Item = (&'a str, Place, View<'a>)>> {
        match &self.node.value {
            Value::Map(entries) => Some(entries.iter().map(move |entry| {
                (entry.key.text.as_str(), entry.key.place(self.source), View::new(&entry.value, self.source))
            })),
            _ => None,
        }
    }

    /// The mapping, to be read by the keys of `shape`.
    pub fn map(self, shape: &'static Shape) -> Option<Map<'a>> {
        Map::of(self.node, self.source, shape)
    }

    /// The mapping, to be read by the keys of the shape that it says it has.
    pub fn tagged(self, tagged: &'static Tagged) -> Option<Map<'a>> {
        self.map(tagged.shape_of(self.node)?)
    }

    /// The value without its places.
    pub fn json(self) -> serde_json::Value {
        self.node.to_json()
    }
}

/// A mapping that is read by the keys of its shape. A key that was written in another spelling is found by its
/// main one.
///
/// Whoever asks for a key that the shape does not have is wrong about the shape: builds with debug assertions panic,
/// others find nothing.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a> {
    node: &'a Node,
    entries: &'a [Entry],
    source: &'a Arc<Source>,
    shape: &'static Shape,
}

impl<'a> Map<'a> {
    /// The mapping that a node is, if it is one.
    pub fn of(node: &'a Node, source: &'a Arc<Source>, shape: &'static Shape) -> Option<Self> {
        match &node.value {
            Value::Map(entries) => Some(Map { node, entries, source, shape }),
            _ => None,
        }
    }

    /// Where it is written.
    pub fn place(&self) -> Place {
        self.node.place(self.source)
    }

    /// The source it is written in.
    pub fn source(&self) -> &'a Arc<Source> {
        self.source
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        let field = self.shape.field(key);
        debug_assert!(field.is_some(), "`{}` has no key `{key}`", self.shape.name);
        let is_meant = |entry: &&Entry| {
            field.is_some_and(|field| field.spellings().any(|spelling| spelling == entry.key.text))
        };
        self.entries.iter().find(is_meant)
    }

    /// The mapping as the node that it is.
    pub fn as_node(&self) -> &'a Node {
        self.node
    }

    /// The mapping as a JSON value, without its places.
    pub fn to_json(&self) -> serde_json::Value {
        self.node.to_json()
    }

    /// The shape by whose keys it is read.
    pub fn shape(&self) -> &'static Shape {
        self.shape
    }

    /// Whether it has no key at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<View<'a>> {
        self.entry(key).map(|entry| View::new(&entry.value, self.source))
    }

    /// The value of a key, as a node.
    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Where a key is written.
    pub fn key_place(&self, key: &str) -> Option<Place> {
        self.entry(key).map(|entry| entry.key.place(self.source))
    }

    /// Where the value of a key is written.
    pub fn place_of(&self, key: &str) -> Option<Place> {
        self.get(key).map(View::place)
    }

    /// The truth value of a key.
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.bool()
    }

    /// The text of a key.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.text()
    }

    /// The whole number of a key.
    pub fn integer(&self, key: &str) -> Option<i64> {
        self.get(key)?.integer()
    }

    /// The number of a key.
    pub fn number(&self, key: &str) -> Option<&'a Number> {
        self.get(key)?.number()
    }

    /// The entries of the list of a key. None if the key was left out.
    pub fn list(&self, key: &str) -> Option<impl ExactSizeIterator<Item = View<'a>>> {
        self.get(key)?.list()
    }

    /// The mapping of a key, to be read by the keys of the shape that the field names.
    pub fn map(&self, key: &str) -> Option<Map<'a>> {
        let view = self.get(key)?;
        let shape = shape_of(&self.shape.field(key)?.kind, view.node)?;
        view.map(shape)
    }

    /// The value of a key as JSON, without its places.
    pub fn json(&self, key: &str) -> Option<serde_json::Value> {
        self.get(key).map(View::json)
    }
}

/// The shape that a mapping of this kind has.
fn shape_of(kind: &Kind, node: &Node) -> Option<&'static Shape> {
    match kind {
        Kind::Shape(shape) => Some(shape),
        Kind::Tagged(tagged) => tagged.shape_of(node),
        Kind::OneOf(kinds) => kinds.iter().find_map(|kind| shape_of(kind, node)),
        _ => None,
    }
}
