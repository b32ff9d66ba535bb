//! File formats as data. Validation, JSON Schema and reference pages are generated from them.

use super::node::{DocumentNode, NodeValue};

/// A mapping with known keys.
#[derive(Debug)]
pub struct Shape {
    /// Name, unique among the shapes that refer to each other.
    pub name: &'static str,
    /// Description, in a sentence or two.
    pub doc: &'static str,
    /// Keys in documentation order.
    pub fields: &'static [Field],
}

/// One key of a [`Shape`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// Alternative spellings.
    pub aliases: &'static [&'static str],
    /// Other names: former ones, and those of other tools. They are rejected with a message that contains the key.
    pub other_names: &'static [&'static str],
    /// Kind of the value.
    pub kind: Kind,
    /// True if the key must be present.
    pub required: bool,
    /// Description, in a sentence or two.
    pub doc: &'static str,
    /// Default value as YAML. Computed defaults are described in `doc` instead.
    pub default: Option<&'static str>,
}

/// Kind of a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Null: the key alone carries the meaning.
    Null,
    /// `true` or `false`.
    Bool,
    /// `false`, where `true` would have no meaning.
    False,
    /// A string. Numbers and booleans are not accepted.
    Text,
    /// A string that is not empty.
    NonEmptyText,
    /// A whole number between two inclusive limits.
    Integer {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: i64,
    },
    /// Any number.
    Number,
    /// A regular expression. It is not compiled here because it may contain variables. An empty one is
    /// rejected, because it matches everything.
    Pattern,
    /// A duration such as `30s`, which is not empty. It is not parsed here because it may contain variables.
    Duration,
    /// A JSON path, which is not empty. It is not parsed here because it may contain variables.
    JsonPath,
    /// Any value.
    Json,
    /// A mapping with any content.
    JsonMap,
    /// Any expected value. A text that begins with `regex:` is a regular expression, also in lists and mappings.
    ExpectedJson,
    /// A JSON Schema as a mapping.
    JsonSchema,
    /// An HTTP URL, or a string with variables that becomes one.
    Url,
    /// One of several words.
    Choice(&'static [&'static str]),
    /// A list.
    List(&'static Kind),
    /// A list that is not empty.
    NonEmptyList(&'static Kind),
    /// A mapping with free keys.
    Map(&'static Kind),
    /// A mapping with known keys.
    Shape(&'static Shape),
    /// A mapping of one of several shapes, told apart by one of its keys.
    Tagged(&'static TaggedShapes),
    /// One of several kinds with different JSON types.
    OneOf(&'static [Kind]),
}

/// Several shapes distinguished by the value of one key, which each shape declares as a [`Kind::Choice`] of
/// its own words. If one of them does not require the key, a mapping without it has that shape.
#[derive(Debug)]
pub struct TaggedShapes {
    /// The key.
    pub key: &'static str,
    /// The shapes.
    pub shapes: &'static [&'static Shape],
    /// Shape of a mapping without the key. A mapping that has none of the keys of this shape is reported as
    /// lacking the key.
    pub untagged: Option<&'static Shape>,
}

impl TaggedShapes {
    /// Returns the shape of a mapping, or `None` if the key is missing or its value is unknown.
    pub fn shape_of(&self, node: &DocumentNode) -> Option<&'static Shape> {
        match node.get(self.key).map(|tag| &tag.value) {
            Some(NodeValue::String(word)) => {
                self.shapes.iter().copied().find(|shape| self.words(shape).contains(&word.as_str()))
            }
            Some(_) => None,
            None => self.default_shape(),
        }
    }

    /// Returns all words of the key.
    pub(super) fn all_words(&self) -> impl Iterator<Item = &'static str> {
        self.shapes.iter().flat_map(|shape| self.words(shape)).copied()
    }

    /// Returns one word for each shape.
    pub(super) fn main_words(&self) -> impl Iterator<Item = &'static str> {
        self.shapes.iter().filter_map(|shape| self.words(shape).first()).copied()
    }

    /// Returns the words that select a shape.
    pub fn words(&self, shape: &'static Shape) -> &'static [&'static str] {
        match shape.field(self.key).map(|field| field.kind) {
            Some(Kind::Choice(words)) => words,
            _ => &[],
        }
    }

    /// Returns all shapes.
    pub fn all(&self) -> impl Iterator<Item = &'static Shape> {
        self.untagged.into_iter().chain(self.shapes.iter().copied())
    }

    /// Returns the shape of a mapping without the key.
    pub(super) fn default_shape(&self) -> Option<&'static Shape> {
        let optional = |shape: &&Shape| shape.field(self.key).is_some_and(|field| !field.required);
        self.untagged.or_else(|| self.shapes.iter().copied().find(optional))
    }
}

impl Field {
    /// Creates a required key.
    pub const fn required(key: &'static str, kind: Kind, doc: &'static str) -> Self {
        Field { key, aliases: &[], other_names: &[], kind, required: true, doc, default: None }
    }

    /// Creates an optional key.
    pub const fn optional(key: &'static str, kind: Kind, doc: &'static str) -> Self {
        Field { key, aliases: &[], other_names: &[], kind, required: false, doc, default: None }
    }

    /// Adds alternative spellings.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Field { aliases, ..self }
    }

    /// Rejects other names of the key with a message that contains the key.
    pub const fn other_names(self, other_names: &'static [&'static str]) -> Self {
        Field { other_names, ..self }
    }

    /// Sets the default value, as YAML.
    pub const fn default(self, default: &'static str) -> Self {
        Field { default: Some(default), ..self }
    }

    /// Returns the key and its alternative spellings.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.key).chain(self.aliases.iter().copied())
    }
}

impl Shape {
    /// Returns the field of a key in any of its spellings.
    pub fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields
            .iter()
            .find(|field| field.key == key || (!field.aliases.is_empty() && field.aliases.contains(&key)))
    }

    /// Returns the field that has this key as one of its other names.
    pub(super) fn field_named(&self, key: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.other_names.contains(&key))
    }

    /// Returns this shape and all shapes it refers to, each once, in order of first mention.
    pub fn all(&'static self) -> Vec<&'static Shape> {
        let mut shapes = vec![self];
        let mut at = 0;
        while let Some(&shape) = shapes.get(at) {
            for field in shape.fields {
                field.kind.collect_shapes(&mut shapes);
            }
            at += 1;
        }
        shapes
    }
}

/// JSON types, which distinguish the alternatives of [`Kind::OneOf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonType {
    Null,
    Bool,
    Number,
    String,
    List,
    Map,
}

impl JsonType {
    pub(super) const ALL: [JsonType; 6] =
        [JsonType::Null, JsonType::Bool, JsonType::Number, JsonType::String, JsonType::List, JsonType::Map];

    /// Type of a value.
    pub(super) fn from_value(value: &NodeValue) -> JsonType {
        match value {
            NodeValue::Null => JsonType::Null,
            NodeValue::Bool(_) => JsonType::Bool,
            NodeValue::Number(_) => JsonType::Number,
            NodeValue::String(_) => JsonType::String,
            NodeValue::List(_) => JsonType::List,
            NodeValue::Map(_) => JsonType::Map,
        }
    }
}

impl Kind {
    /// Returns true if values of the type of this one may be accepted.
    pub fn accepts_type_of(&self, value: &NodeValue) -> bool {
        self.accepts(JsonType::from_value(value))
    }

    /// Returns true if a value of this type may be accepted.
    pub(super) fn accepts(&self, given: JsonType) -> bool {
        match self {
            Kind::Null => given == JsonType::Null,
            Kind::Bool | Kind::False => given == JsonType::Bool,
            Kind::Text
            | Kind::NonEmptyText
            | Kind::Pattern
            | Kind::Duration
            | Kind::JsonPath
            | Kind::Url
            | Kind::Choice(_) => given == JsonType::String,
            Kind::Integer { .. } | Kind::Number => given == JsonType::Number,
            Kind::Json | Kind::ExpectedJson => true,
            Kind::List(_) | Kind::NonEmptyList(_) => given == JsonType::List,
            Kind::JsonMap | Kind::JsonSchema | Kind::Map(_) | Kind::Shape(_) | Kind::Tagged(_) => {
                given == JsonType::Map
            }
            Kind::OneOf(kinds) => kinds.iter().any(|kind| kind.accepts(given)),
        }
    }

    /// Describes the accepted values, as a fragment that follows "must be".
    pub(super) fn describe(&self) -> String {
        match self {
            Kind::Null => "nothing".to_owned(),
            Kind::Bool => "true or false".to_owned(),
            Kind::False => "false".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::NonEmptyText | Kind::JsonPath => "a text that is not empty".to_owned(),
            Kind::Duration => "a duration such as `30s`".to_owned(),
            Kind::Integer { min: i64::MIN, max: i64::MAX } => "a whole number".to_owned(),
            Kind::Integer { min, max: i64::MAX } => format!("a whole number, {min} or more"),
            Kind::Integer { min: i64::MIN, max } => format!("a whole number, {max} or less"),
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Number => "a number".to_owned(),
            Kind::Pattern => "a regular expression".to_owned(),
            Kind::Json | Kind::ExpectedJson => "any value".to_owned(),
            Kind::JsonMap | Kind::JsonSchema | Kind::Map(_) | Kind::Shape(_) | Kind::Tagged(_) => {
                "a mapping".to_owned()
            }
            Kind::Url => "a URL".to_owned(),
            Kind::Choice(words) => join_with_or(words.iter().map(|word| format!("`{word}`")).collect()),
            Kind::List(_) => "a list".to_owned(),
            Kind::NonEmptyList(_) => "a list that is not empty".to_owned(),
            Kind::OneOf(kinds) => join_with_or(kinds.iter().map(Kind::describe).collect()),
        }
    }

    fn collect_shapes(&self, shapes: &mut Vec<&'static Shape>) {
        let mut collect = |shape: &'static Shape| {
            if !shapes.iter().any(|known| std::ptr::eq(*known, shape)) {
                shapes.push(shape);
            }
        };
        match *self {
            Kind::Shape(shape) => collect(shape),
            Kind::Tagged(tagged) => tagged.all().for_each(collect),
            _ => self.parts().iter().for_each(|kind| kind.collect_shapes(shapes)),
        }
    }

    /// Returns the kinds of the entries of a list or a mapping, or the alternatives.
    pub(super) fn parts(&self) -> &'static [Kind] {
        match *self {
            Kind::OneOf(kinds) => kinds,
            Kind::List(kind) | Kind::NonEmptyList(kind) | Kind::Map(kind) => std::slice::from_ref(kind),
            Kind::Null
            | Kind::Bool
            | Kind::False
            | Kind::Text
            | Kind::NonEmptyText
            | Kind::Integer { .. }
            | Kind::Number
            | Kind::Pattern
            | Kind::Duration
            | Kind::JsonPath
            | Kind::Json
            | Kind::JsonMap
            | Kind::ExpectedJson
            | Kind::JsonSchema
            | Kind::Url
            | Kind::Choice(_)
            | Kind::Shape(_)
            | Kind::Tagged(_) => &[],
        }
    }
}

/// Joins words: `a`, `a or b`, `a, b or c`.
fn join_with_or(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) }
}
