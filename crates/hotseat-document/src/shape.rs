//! What may be written, as data: the checks, the JSON Schema and the reference page are all made from it.

use super::check::check;
use super::diagnostic::Diagnostics;
use super::node::{Node, Value};
use super::place::Source;
use super::yaml;

/// A mapping with known keys.
#[derive(Debug)]
pub struct Shape {
    /// Its name, unique among the shapes that refer to each other.
    pub name: &'static str,
    /// What it is, in a sentence or two.
    pub doc: &'static str,
    /// Its keys, in the order in which the documentation lists them.
    pub fields: &'static [Field],
}

/// One key of a [`Shape`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// Other spellings that are read as well.
    pub aliases: &'static [&'static str],
    /// What its value may be.
    pub kind: Kind,
    /// Whether the key has to be there.
    pub required: bool,
    /// What it means, in a sentence or two.
    pub doc: &'static str,
    /// The value that holds when the key is left out, as YAML. A default that has to be worked out is told in
    /// `doc` instead.
    pub default: Option<&'static str>,
}

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Nothing: the key alone says all there is to say.
    Null,
    /// `true` or `false`.
    Bool,
    /// `false`, where `true` would say nothing.
    False,
    /// Text. Numbers and truth values are not taken for text.
    Text,
    /// Text that is not empty.
    NonEmptyText,
    /// A whole number between two limits, both included.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// Any number.
    Number,
    /// A regular expression. It is not compiled here: it may hold variables. An empty one is refused, because it
    /// fits everything.
    Pattern,
    /// Anything.
    Json,
    /// A mapping that holds anything.
    JsonMap,
    /// A URL of HTTP, or a text with variables that will become one.
    Url,
    /// One of some words.
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
    Tagged(&'static Tagged),
    /// One of several, told apart by their JSON types. For each type there is at most one.
    OneOf(&'static [Kind]),
}

/// Several shapes that are told apart by the value of one key, which each of them has as a [`Kind::Choice`] of its own
/// words. Where one of them does not require the key, a mapping without it is of that shape.
#[derive(Debug)]
pub struct Tagged {
    /// The key.
    pub key: &'static str,
    /// The shapes.
    pub shapes: &'static [&'static Shape],
    /// A shape that does not have the key, and of which a mapping without it may be. One that has none of the keys of
    /// this shape was to have the key.
    pub untagged: Option<&'static Shape>,
}

impl Tagged {
    /// The shape of a mapping; none if the key is missing where it has to be, or has a value that no shape knows.
    pub fn shape_of(&self, node: &Node) -> Option<&'static Shape> {
        match node.get(self.key).map(|tag| &tag.value) {
            Some(Value::String(word)) => {
                self.shapes.iter().copied().find(|shape| self.words(shape).contains(&word.as_str()))
            }
            Some(_) => None,
            None => self.default_shape(),
        }
    }

    /// All words that the key may have.
    pub(super) fn all_words(&self) -> impl Iterator<Item = &'static str> {
        self.shapes.iter().flat_map(|shape| self.words(shape)).copied()
    }

    /// One word for each shape.
    pub(super) fn main_words(&self) -> impl Iterator<Item = &'static str> {
        self.shapes.iter().filter_map(|shape| self.words(shape).first()).copied()
    }

    /// The words by which a shape is told.
    pub(super) fn words(&self, shape: &'static Shape) -> &'static [&'static str] {
        match shape.field(self.key).map(|field| field.kind) {
            Some(Kind::Choice(words)) => words,
            _ => &[],
        }
    }

    /// All its shapes.
    pub fn all(&self) -> impl Iterator<Item = &'static Shape> {
        self.untagged.into_iter().chain(self.shapes.iter().copied())
    }

    fn default_shape(&self) -> Option<&'static Shape> {
        let optional = |shape: &&Shape| shape.field(self.key).is_some_and(|field| !field.required);
        self.untagged.or_else(|| self.shapes.iter().copied().find(optional))
    }

    fn problems(&self, path: &str, problems: &mut Vec<String>) {
        let words: Vec<_> = self.all_words().collect();
        let twice = |(number, word): (usize, &&str)| words[..number].contains(word);
        let wordless = self.shapes.iter().any(|shape| self.words(shape).is_empty());
        let optional =
            self.shapes.iter().filter(|shape| shape.field(self.key).is_some_and(|field| !field.required));
        if wordless || words.iter().enumerate().any(twice) || optional.count() > 1 {
            problems.push(format!("the shapes of `{path}` cannot be told apart"));
        }
    }
}

impl Field {
    /// A key that has to be there.
    pub const fn required(key: &'static str, kind: Kind, doc: &'static str) -> Self {
        Field { key, aliases: &[], kind, required: true, doc, default: None }
    }

    /// A key that may be left out.
    pub const fn optional(key: &'static str, kind: Kind, doc: &'static str) -> Self {
        Field { key, aliases: &[], kind, required: false, doc, default: None }
    }

    /// The same key with other spellings.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Field { aliases, ..self }
    }

    /// The same key with the value that holds when it is left out, as YAML.
    pub const fn default(self, default: &'static str) -> Self {
        Field { default: Some(default), ..self }
    }

    /// The default as JSON. None if there is none, or one that the kind of the field would refuse.
    pub fn default_json(&self) -> Option<serde_json::Value> {
        let source = Source::new(self.key, self.default?, 1);
        let node = yaml::parse(&source).ok()?;
        let mut mistakes = Diagnostics::new();
        check(&node, &self.kind, &source, &mut mistakes);
        mistakes.is_empty().then(|| node.to_json())
    }

    /// The key and its other spellings.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.key).chain(self.aliases.iter().copied())
    }
}

impl Shape {
    /// The field that a key belongs to, by any of its spellings.
    pub fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.spellings().any(|spelling| spelling == key))
    }

    /// This shape and those it refers to, each once, in the order of their first mention.
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

    /// What is wrong with the shape itself and those it refers to, for a test beside their definition: names and
    /// keys that are used twice, alternatives that cannot be told apart, defaults that would not pass.
    pub fn problems(&'static self) -> Vec<String> {
        let shapes = self.all();
        let mut problems = Vec::new();
        for (number, shape) in shapes.iter().enumerate() {
            if shapes[..number].iter().any(|other| other.name == shape.name) {
                problems.push(format!("two shapes are named `{}`", shape.name));
            }
            let spellings: Vec<_> = shape.fields.iter().flat_map(Field::spellings).collect();
            for (number, spelling) in spellings.iter().enumerate() {
                if spellings[..number].contains(spelling) {
                    problems.push(format!("`{}` has the key `{spelling}` twice", shape.name));
                }
            }
            for field in shape.fields {
                let path = format!("{}.{}", shape.name, field.key);
                field.kind.problems(&path, &mut problems);
                if field.default.is_some() && field.default_json().is_none() {
                    problems.push(format!("the default of `{path}` would not pass"));
                }
            }
        }
        problems
    }
}

/// The types of JSON, by which the alternatives of [`Kind::OneOf`] are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Bool,
    Number,
    String,
    List,
    Map,
}

impl Type {
    const ALL: [Type; 6] = [Type::Null, Type::Bool, Type::Number, Type::String, Type::List, Type::Map];
}

impl Kind {
    /// Whether a value of this type may fit.
    pub(super) fn accepts(&self, given: Type) -> bool {
        match self {
            Kind::Null => given == Type::Null,
            Kind::Bool | Kind::False => given == Type::Bool,
            Kind::Text | Kind::NonEmptyText | Kind::Pattern | Kind::Url | Kind::Choice(_) => {
                given == Type::String
            }
            Kind::Integer { .. } | Kind::Number => given == Type::Number,
            Kind::Json => true,
            Kind::List(_) | Kind::NonEmptyList(_) => given == Type::List,
            Kind::JsonMap | Kind::Map(_) | Kind::Shape(_) | Kind::Tagged(_) => given == Type::Map,
            Kind::OneOf(kinds) => kinds.iter().any(|kind| kind.accepts(given)),
        }
    }

    /// What fits, as a fragment that follows "must be".
    pub(super) fn in_words(&self) -> String {
        match self {
            Kind::Null => "nothing".to_owned(),
            Kind::Bool => "true or false".to_owned(),
            Kind::False => "false".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::NonEmptyText => "a text that is not empty".to_owned(),
            Kind::Integer { min: i64::MIN, max: i64::MAX } => "a whole number".to_owned(),
            Kind::Integer { min, max: i64::MAX } => format!("a whole number, {min} or more"),
            Kind::Integer { min: i64::MIN, max } => format!("a whole number, {max} or less"),
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Number => "a number".to_owned(),
            Kind::Pattern => "a regular expression".to_owned(),
            Kind::Json => "any value".to_owned(),
            Kind::JsonMap | Kind::Map(_) | Kind::Shape(_) | Kind::Tagged(_) => "a mapping".to_owned(),
            Kind::Url => "a URL".to_owned(),
            Kind::Choice(words) => either(words.iter().map(|word| format!("`{word}`")).collect()),
            Kind::List(_) => "a list".to_owned(),
            Kind::NonEmptyList(_) => "a list that is not empty".to_owned(),
            Kind::OneOf(kinds) => either(kinds.iter().map(Kind::in_words).collect()),
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
            Kind::List(kind) | Kind::NonEmptyList(kind) | Kind::Map(kind) => kind.collect_shapes(shapes),
            Kind::OneOf(kinds) => kinds.iter().for_each(|kind| kind.collect_shapes(shapes)),
            Kind::Null
            | Kind::Bool
            | Kind::False
            | Kind::Text
            | Kind::NonEmptyText
            | Kind::Integer { .. }
            | Kind::Number
            | Kind::Pattern
            | Kind::Json
            | Kind::JsonMap
            | Kind::Url
            | Kind::Choice(_) => {}
        }
    }

    fn problems(&self, path: &str, problems: &mut Vec<String>) {
        match self {
            Kind::OneOf(kinds) => {
                let fitting = |given: Type| kinds.iter().filter(|kind| kind.accepts(given)).count();
                if Type::ALL.into_iter().any(|given| fitting(given) > 1) {
                    problems.push(format!("the alternatives of `{path}` cannot be told apart"));
                }
                kinds.iter().for_each(|kind| kind.problems(path, problems));
            }
            Kind::Tagged(tagged) => tagged.problems(path, problems),
            Kind::List(kind) | Kind::NonEmptyList(kind) | Kind::Map(kind) => kind.problems(path, problems),
            Kind::Integer { min, max } if min > max => problems.push(format!("no number fits `{path}`")),
            Kind::Choice([]) => problems.push(format!("no word fits `{path}`")),
            Kind::Null
            | Kind::Bool
            | Kind::False
            | Kind::Text
            | Kind::NonEmptyText
            | Kind::Integer { .. }
            | Kind::Number
            | Kind::Pattern
            | Kind::Json
            | Kind::JsonMap
            | Kind::Url
            | Kind::Choice(_)
            | Kind::Shape(_) => {}
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
fn either(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) }
}
