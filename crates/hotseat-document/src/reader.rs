//! Reads a validated tree.
//!
//! Every getter returns an `Option`, so a decoder cannot panic. After [`check`](super::check()), `None` means
//! that the key was omitted.

use std::sync::Arc;

use serde_json::Number;

use super::check::whole_number;
use super::node::{DocumentNode, MapEntry, NodeValue};
use super::place::{SourceSpan, SourceText};
use super::shape::{Kind, Shape, TaggedShapes};

/// A node and its source.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    /// The node.
    pub node: &'a DocumentNode,
    /// Source of the node.
    pub source: &'a Arc<SourceText>,
}

impl<'a> NodeView<'a> {
    /// Creates a view of a node.
    pub fn new(node: &'a DocumentNode, source: &'a Arc<SourceText>) -> Self {
        NodeView { node, source }
    }

    /// Returns the location of the node.
    pub fn place(self) -> SourceSpan {
        self.node.place(self.source)
    }

    /// Returns the text of the source that stands for the value. None for values without a source, and for names of values:
    /// variables and aliases.
    pub fn written(self) -> Option<&'a str> {
        let written = self.source.text.get(self.node.span.clone())?;
        let is_name = written.contains("${") || written.starts_with('*');
        (!written.is_empty() && !is_name).then_some(written)
    }

    /// Returns true if the value is null.
    pub fn is_null(self) -> bool {
        self.node.value == NodeValue::Null
    }

    /// Returns the boolean.
    pub fn bool(self) -> Option<bool> {
        match self.node.value {
            NodeValue::Bool(truth) => Some(truth),
            _ => None,
        }
    }

    /// Returns the string.
    pub fn text(self) -> Option<&'a str> {
        match &self.node.value {
            NodeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if it is a whole number.
    pub fn integer(self) -> Option<i64> {
        self.number().and_then(whole_number)
    }

    /// Returns the number.
    pub fn number(self) -> Option<&'a Number> {
        match &self.node.value {
            NodeValue::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the entries of a list.
    pub fn list(self) -> Option<impl ExactSizeIterator<Item = NodeView<'a>>> {
        match &self.node.value {
            NodeValue::List(nodes) => Some(nodes.iter().map(move |node| NodeView::new(node, self.source))),
            _ => None,
        }
    }

    /// Returns the entries of a list, or the node itself otherwise.
    pub fn one_or_many(self) -> impl Iterator<Item = NodeView<'a>> {
        let nodes = match &self.node.value {
            NodeValue::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(self.node),
        };
        nodes.iter().map(move |node| NodeView::new(node, self.source))
    }

    /// Returns keys, locations and values of a mapping.
    pub fn entries(self) -> Option<impl ExactSizeIterator<Item = (&'a str, SourceSpan, NodeView<'a>)>> {
        match &self.node.value {
            NodeValue::Map(entries) => Some(entries.iter().map(move |entry| {
                (
                    entry.key.text.as_str(),
                    entry.key.place(self.source),
                    NodeView::new(&entry.value, self.source),
                )
            })),
            _ => None,
        }
    }

    /// Returns the mapping, to be read by the keys of `shape`.
    pub fn map(self, shape: &'static Shape) -> Option<MapView<'a>> {
        MapView::from_node(self.node, self.source, shape)
    }

    /// Returns the mapping, to be read by the shape that its tag names.
    pub fn tagged(self, tagged: &'static TaggedShapes) -> Option<MapView<'a>> {
        self.map(tagged.shape_of(self.node)?)
    }

    /// Converts the node to JSON, dropping locations.
    pub fn json(self) -> serde_json::Value {
        self.node.to_json()
    }
}

/// A mapping read by the keys of its shape. A key in an alternative spelling is found by its main spelling.
///
/// Requesting another key than the main ones of the shape is a bug: builds with debug assertions panic,
/// others return `None`.
#[derive(Clone, Copy, Debug)]
pub struct MapView<'a> {
    node: &'a DocumentNode,
    entries: &'a [MapEntry],
    source: &'a Arc<SourceText>,
    shape: &'static Shape,
    /// The first entry with an alternative spelling, and its main key. Other keys are found without searching the
    /// shape.
    first_alias: Option<(&'static str, &'a MapEntry)>,
    has_more_aliases: bool,
}

impl<'a> MapView<'a> {
    /// Returns the mapping of a node, if it is one.
    pub fn from_node(
        node: &'a DocumentNode,
        source: &'a Arc<SourceText>,
        shape: &'static Shape,
    ) -> Option<Self> {
        match &node.value {
            NodeValue::Map(entries) => {
                let mut aliases = entries.iter().filter_map(|entry| {
                    let field = shape.field(&entry.key.text)?;
                    (field.key != entry.key.text).then_some((field.key, entry))
                });
                let (first_alias, has_more_aliases) = (aliases.next(), aliases.next().is_some());
                Some(MapView { node, entries, source, shape, first_alias, has_more_aliases })
            }
            _ => None,
        }
    }

    /// Returns the location of the mapping.
    pub fn place(&self) -> SourceSpan {
        self.node.place(self.source)
    }

    /// Returns the source.
    pub fn source(&self) -> &'a Arc<SourceText> {
        self.source
    }

    fn entry(&self, key: &str) -> Option<&'a MapEntry> {
        debug_assert!(
            self.shape.field(key).is_some_and(|field| field.key == key),
            "`{}` has no key `{key}`",
            self.shape.name
        );
        let is_meant = |entry: &&MapEntry| entry.key.text == key;
        let is_alias =
            |entry: &&MapEntry| self.shape.field(&entry.key.text).is_some_and(|field| field.key == key);
        match self.first_alias {
            Some((meant, entry)) if meant == key => Some(entry),
            Some(_) if self.has_more_aliases => self.entries.iter().find(is_alias),
            Some(_) | None => self.entries.iter().find(is_meant),
        }
    }

    /// Returns the mapping as a node.
    pub fn as_node(&self) -> &'a DocumentNode {
        self.node
    }

    /// Converts the mapping to JSON, dropping locations.
    pub fn to_json(&self) -> serde_json::Value {
        self.node.to_json()
    }

    /// Returns the shape.
    pub fn shape(&self) -> &'static Shape {
        self.shape
    }

    /// Returns true if the mapping has no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if the key is present.
    pub fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<NodeView<'a>> {
        self.entry(key).map(|entry| NodeView::new(&entry.value, self.source))
    }

    /// Returns the node of a key.
    pub fn node(&self, key: &str) -> Option<&'a DocumentNode> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the location of a key.
    pub fn key_place(&self, key: &str) -> Option<SourceSpan> {
        self.entry(key).map(|entry| entry.key.place(self.source))
    }

    /// Returns the location of the value of a key.
    pub fn place_of(&self, key: &str) -> Option<SourceSpan> {
        self.get(key).map(NodeView::place)
    }

    /// Returns the location of the value of a key, or of the mapping if the key was omitted.
    pub fn place_near(&self, key: &str) -> SourceSpan {
        self.place_of(key).unwrap_or_else(|| self.place())
    }

    /// Returns the boolean of a key.
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.bool()
    }

    /// Returns the string of a key.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.text()
    }

    /// Returns the whole number of a key.
    pub fn integer(&self, key: &str) -> Option<i64> {
        self.get(key)?.integer()
    }

    /// Returns the whole number of a key, if it is a size or count.
    pub fn size(&self, key: &str) -> Option<usize> {
        self.integer(key).and_then(|number| usize::try_from(number).ok())
    }

    /// Returns the number of a key.
    pub fn number(&self, key: &str) -> Option<&'a Number> {
        self.get(key)?.number()
    }

    /// Returns the entries of the list of a key, or `None` if the key was omitted.
    pub fn list(&self, key: &str) -> Option<impl ExactSizeIterator<Item = NodeView<'a>>> {
        self.get(key)?.list()
    }

    /// Returns the entries of the list of a key; none if the key was omitted.
    pub fn items(&self, key: &str) -> impl Iterator<Item = NodeView<'a>> + use<'a> {
        self.get(key).and_then(NodeView::list).into_iter().flatten()
    }

    /// Returns the strings in the list of a key.
    pub fn texts(&self, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.items(key).filter_map(NodeView::text)
    }

    /// Returns the entries of the list of a key, or its value if it is no list; none if the key was omitted.
    pub fn one_or_many(&self, key: &str) -> impl Iterator<Item = NodeView<'a>> + use<'a> {
        self.get(key).into_iter().flat_map(NodeView::one_or_many)
    }

    /// Returns keys, locations and values of the mapping of a key; none if the key was omitted.
    pub fn entries(&self, key: &str) -> impl Iterator<Item = (&'a str, SourceSpan, NodeView<'a>)> + use<'a> {
        self.get(key).and_then(NodeView::entries).into_iter().flatten()
    }

    /// Returns keys and strings of the mapping of a key.
    pub fn text_entries(&self, key: &str) -> impl Iterator<Item = (String, String)> + use<'a> {
        self.entries(key).filter_map(|(key, _, value)| Some((key.to_string(), value.text()?.to_string())))
    }

    /// Returns the mappings in the list of a key, to be read by the keys of `shape`.
    pub fn maps(&self, key: &str, shape: &'static Shape) -> impl Iterator<Item = MapView<'a>> + use<'a> {
        self.items(key).filter_map(move |item| item.map(shape))
    }

    /// Returns the mapping of a key, to be read by the shape of its field.
    pub fn map(&self, key: &str) -> Option<MapView<'a>> {
        let view = self.get(key)?;
        let shape = shape_of(&self.shape.field(key)?.kind, view.node)?;
        view.map(shape)
    }

    /// Converts the mapping of a key to JSON members, dropping locations; none if the key was omitted.
    pub fn members(&self, key: &str) -> serde_json::Map<String, serde_json::Value> {
        match self.json(key) {
            Some(serde_json::Value::Object(members)) => members,
            _ => serde_json::Map::new(),
        }
    }

    /// Converts the value of a key to JSON, dropping locations.
    pub fn json(&self, key: &str) -> Option<serde_json::Value> {
        self.get(key).map(NodeView::json)
    }
}

/// Returns the shape of a mapping of this kind.
fn shape_of(kind: &Kind, node: &DocumentNode) -> Option<&'static Shape> {
    match kind {
        Kind::Shape(shape) => Some(shape),
        Kind::Tagged(tagged) => tagged.shape_of(node),
        Kind::OneOf(kinds) => kinds.iter().find_map(|kind| shape_of(kind, node)),
        _ => None,
    }
}
