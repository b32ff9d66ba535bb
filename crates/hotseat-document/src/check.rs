//! Validates a tree against a shape.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics, MAX_SHOWN_DIAGNOSTICS};
use super::excerpt::shorten;
use super::nearest::{nearest, suggestion};
use super::node::{DocumentNode, MapEntry, MapKey, NodeValue};
use super::place::SourceText;
use super::shape::{Field, JsonType, Kind, Shape, TaggedShapes};
use super::stream::{NO_BREAK_SPACE, NO_BREAK_SPACE_ADVICE};

/// Validates a node against a kind and reports every mismatch, not only the first.
pub fn check(node: &DocumentNode, kind: &Kind, source: &Arc<SourceText>, mistakes: &mut Diagnostics) {
    ShapeChecker { source, mistakes }.check(node, kind, MessageSubject::Document);
}

/// Returns the value of a whole number, including the spellings `1e3` and `1.0`.
pub(super) fn whole_number(number: &serde_json::Number) -> Option<i64> {
    // Above this bound, floating-point numbers skip whole numbers, so a value could stand for its neighbour.
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() <= MAX_EXACT_INTEGER).then_some(float as i64)
    })
}

/// Subject of an error message.
#[derive(Clone, Copy)]
enum MessageSubject<'a> {
    Document,
    Value(&'a str),
    EntryOf(&'a str),
    EntryOfDocument,
}

impl<'a> MessageSubject<'a> {
    fn entry(self) -> Self {
        match self {
            MessageSubject::Document | MessageSubject::EntryOfDocument => MessageSubject::EntryOfDocument,
            MessageSubject::Value(key) | MessageSubject::EntryOf(key) => MessageSubject::EntryOf(key),
        }
    }
}

impl fmt::Display for MessageSubject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageSubject::Document => f.write_str("this document"),
            MessageSubject::Value(key) => write!(f, "`{}`", shorten(key)),
            MessageSubject::EntryOf(key) => write!(f, "an entry of `{}`", shorten(key)),
            MessageSubject::EntryOfDocument => f.write_str("an entry of this list"),
        }
    }
}

struct ShapeChecker<'c> {
    source: &'c Arc<SourceText>,
    mistakes: &'c mut Diagnostics,
}

impl ShapeChecker<'_> {
    fn check(&mut self, node: &DocumentNode, kind: &Kind, subject: MessageSubject<'_>) {
        match (kind, &node.value) {
            (Kind::Json | Kind::ExpectedJson, _)
            | (Kind::Null, NodeValue::Null)
            | (Kind::Bool, NodeValue::Bool(_))
            | (Kind::False, NodeValue::Bool(false))
            | (Kind::Text, NodeValue::String(_))
            | (Kind::Number, NodeValue::Number(_))
            | (Kind::JsonMap | Kind::JsonSchema, NodeValue::Map(_)) => {}
            (Kind::NonEmptyText | Kind::Duration | Kind::JsonPath, NodeValue::String(text))
                if !text.trim().is_empty() => {}
            (Kind::Pattern, NodeValue::String(text)) if !text.is_empty() => {}
            (Kind::Url, NodeValue::String(text)) if may_be_url(text) => {}
            (Kind::Choice(words), NodeValue::String(text)) if words.contains(&text.as_str()) => {}
            (Kind::Integer { min, max }, NodeValue::Number(number))
                if whole_number(number).is_some_and(|number| (*min..=*max).contains(&number)) => {}
            (Kind::List(kind), NodeValue::List(nodes)) => self.check_list(nodes, kind, subject),
            (Kind::NonEmptyList(kind), NodeValue::List(nodes)) if !nodes.is_empty() => {
                self.check_list(nodes, kind, subject);
            }
            (Kind::Map(kind), NodeValue::Map(entries)) => {
                for entry in entries {
                    self.check(&entry.value, kind, MessageSubject::Value(&entry.key.text));
                }
            }
            (Kind::Shape(shape), NodeValue::Map(entries)) => self.check_shape(node, entries, shape, subject),
            (Kind::Tagged(tagged), NodeValue::Map(entries)) => match tagged.shape_of(node) {
                Some(shape) if !lacks_tag(entries, tagged) => {
                    self.check_shape(node, entries, shape, subject);
                }
                Some(_) | None => self.unknown_tag(node, entries, tagged, subject),
            },
            (Kind::OneOf(kinds), _) => match kinds.iter().find(|kind| kind.accepts_type_of(&node.value)) {
                // `true` where `false` or a mapping is accepted: report all accepted kinds.
                Some(Kind::False) if node.value == NodeValue::Bool(true) => {
                    self.report_mismatch(node, kind, subject)
                }
                Some(kind) => self.check(node, kind, subject),
                None => self.report_mismatch(node, kind, subject),
            },
            _ => self.report_mismatch(node, kind, subject),
        }
    }

    fn check_list(&mut self, nodes: &[DocumentNode], kind: &Kind, subject: MessageSubject<'_>) {
        for node in nodes {
            self.check(node, kind, subject.entry());
        }
    }

    fn check_shape(
        &mut self,
        node: &DocumentNode,
        entries: &[MapEntry],
        shape: &Shape,
        subject: MessageSubject<'_>,
    ) {
        let mut given: Vec<(&Field, &MapKey)> = Vec::with_capacity(entries.len());
        let mut meant: Vec<&str> = Vec::new();
        let absent = OnceCell::new();
        for MapEntry { key, value } in entries {
            let Some(field) = shape.field(&key.text) else {
                if let Some(named) = shape.field_named(&key.text) {
                    meant.push(named.key);
                    self.report_unknown_key(key, subject, format!("it is called `{}`", named.key));
                    continue;
                }
                // No suggestion is computed for errors that are not shown.
                let near = (self.mistakes.len() < MAX_SHOWN_DIAGNOSTICS)
                    .then(|| absent.get_or_init(|| absent_spellings(shape, entries)))
                    .and_then(|absent| nearest(&key.text, absent.iter().copied()));
                meant.extend(near);
                let help = near.map_or_else(|| list_known_keys(shape), suggestion);
                self.report_unknown_key(key, subject, help);
                continue;
            };
            if let Some((_, first)) = given.iter().find(|(known, _)| known.key == field.key) {
                self.report_duplicate_spelling(first, key);
            }
            given.push((field, key));
            self.check(value, &field.kind, MessageSubject::Value(&key.text));
        }
        for field in shape.fields.iter().filter(|field| field.required) {
            let is_given = given.iter().any(|(known, _)| known.key == field.key);
            // A misspelt key is reported as unknown, not also as missing.
            let is_meant = field.spellings().any(|spelling| meant.contains(&spelling));
            if !is_given && !is_meant {
                self.report_missing_key(node, field, subject);
            }
        }
    }

    /// Reports a mapping whose tag is missing or unknown.
    fn unknown_tag(
        &mut self,
        node: &DocumentNode,
        entries: &[MapEntry],
        tagged: &TaggedShapes,
        subject: MessageSubject<'_>,
    ) {
        let all: Vec<_> = tagged.main_words().map(|word| format!("`{word}`")).collect();
        let meant = |entry: &&MapEntry| nearest(&entry.key.text, [tagged.key]).is_some();
        match (node.get(tagged.key), entries.iter().find(meant)) {
            (None, Some(misspelt)) => {
                let message = format!("unknown key `{}` in {subject}", shorten(&misspelt.key.text));
                let help = suggestion(tagged.key);
                self.mistakes.push(Diagnostic::new(message).at(misspelt.key.place(self.source)).help(help));
            }
            (None, None) => {
                let mistake = Diagnostic::new(format!("{subject} has no `{}`", tagged.key));
                let help = list_fitting_tags(entries, tagged)
                    .or_else(|| tag_as_key_advice(entries, tagged))
                    .unwrap_or_else(|| list_tags(tagged));
                self.mistakes.push(mistake.at(node.place(self.source)).help(help));
            }
            (Some(tag), _) => {
                let message = format!("`{}` must be {}, found {}", tagged.key, one_of(&all), tag.describe());
                let mistake = Diagnostic::new(message).at(tag.place(self.source));
                let near = match &tag.value {
                    NodeValue::String(text) => nearest(text, tagged.all_words()),
                    _ => None,
                };
                let untagged = || tagged.untagged.map(|shape| untagged_advice(tagged.key, shape));
                let help = near.map(suggestion).or_else(untagged);
                self.mistakes.push(Diagnostic { help, ..mistake });
            }
        }
    }

    fn report_unknown_key(&mut self, key: &MapKey, subject: MessageSubject<'_>, help: String) {
        let written = shorten(&key.text);
        let message = match subject {
            MessageSubject::Document => format!("unknown key `{written}`"),
            MessageSubject::Value(_) | MessageSubject::EntryOf(_) | MessageSubject::EntryOfDocument => {
                format!("unknown key `{written}` in {subject}")
            }
        };
        let help = if key.text.contains(NO_BREAK_SPACE) { NO_BREAK_SPACE_ADVICE.to_owned() } else { help };
        self.mistakes.push(Diagnostic::new(message).at(key.place(self.source)).help(help));
    }

    fn report_duplicate_spelling(&mut self, first: &MapKey, second: &MapKey) {
        self.mistakes.push(
            Diagnostic::new(format!("`{}` and `{}` are two spellings of one key", first.text, second.text))
                .at(second.place(self.source))
                .with_related(first.place(self.source), "first")
                .help("keep one of them"),
        );
    }

    fn report_missing_key(&mut self, node: &DocumentNode, field: &Field, subject: MessageSubject<'_>) {
        let spellings = field.spellings().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" or ");
        self.mistakes.push(
            Diagnostic::new(format!("{subject} has no {spellings}"))
                .at(node.place(self.source))
                .help(format!("{spellings}: {}", field.doc)),
        );
    }

    fn report_mismatch(&mut self, node: &DocumentNode, kind: &Kind, subject: MessageSubject<'_>) {
        let found = match &node.value {
            NodeValue::List(nodes) if nodes.is_empty() => "an empty list".to_owned(),
            _ => node.describe(),
        };
        let message = format!("{subject} must be {}, found {found}", kind.describe());
        let mistake = Diagnostic::new(message).at(node.place(self.source));
        let help = nested_value_advice(node, kind, subject).or_else(|| self.advice(node, kind));
        self.mistakes.push(Diagnostic { help, ..mistake });
    }

    /// Returns advice if the cause of the mismatch can be guessed.
    fn advice(&self, node: &DocumentNode, kind: &Kind) -> Option<String> {
        match &node.value {
            NodeValue::Null => Some("give it a value, or leave the key out".to_owned()),
            NodeValue::Number(number) if matches!(kind, Kind::Duration) => {
                Some(format!("write `{number}s` to mean seconds, or `{number}ms` to mean milliseconds"))
            }
            NodeValue::Bool(_) | NodeValue::Number(_) if kind.accepts(JsonType::String) => {
                node.as_quoted(self.source).map(|quoted| format!("write {quoted} to mean text"))
            }
            NodeValue::String(text) if kind.accepts(JsonType::Bool) && is_truth_word(text) => {
                Some("write true or false, without quotes".to_owned())
            }
            NodeValue::String(text) if kind.accepts(JsonType::Number) && text.parse::<f64>().is_ok() => {
                Some("leave out the quotes to mean a number".to_owned())
            }
            NodeValue::String(text) => match kind {
                Kind::Choice(words) => nearest(text, words.iter().copied()).map(suggestion),
                Kind::Url => Some("a URL starts with `http://` or `https://`".to_owned()),
                Kind::Pattern => Some("an empty regular expression matches everything".to_owned()),
                _ => list_advice(kind),
            },
            NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Map(_) => list_advice(kind),
            NodeValue::List(_) => None,
        }
    }
}

/// Returns true if the tag of a mapping was forgotten: its keys fit only a shape with a tag, or none of them, not
/// even a misspelt one, is of the shape that has none.
fn lacks_tag(entries: &[MapEntry], tagged: &TaggedShapes) -> bool {
    let Some(shape) = tagged.default_shape().filter(|_| !entries.is_empty() && !has_key(entries, tagged.key))
    else {
        return false;
    };
    let is_known = |entry: &MapEntry| shape.field(&entry.key.text).is_some();
    let is_meant = |entry: &MapEntry| {
        is_known(entry) || nearest(&entry.key.text, shape.fields.iter().flat_map(Field::spellings)).is_some()
    };
    let fits_another = || !entries.iter().all(is_known) && list_fitting_tags(entries, tagged).is_some();
    (tagged.untagged.is_some() && !entries.iter().any(is_meant)) || fits_another()
}

/// Returns the spelling of a nested value by its path, where a pattern or a number is expected: the names before
/// the value form a path there.
fn nested_value_advice(node: &DocumentNode, kind: &Kind, subject: MessageSubject<'_>) -> Option<String> {
    let (Kind::OneOf(kinds), MessageSubject::Value(name)) = (kind, subject) else { return None };
    let by_path = kinds.iter().any(|kind| matches!(kind, Kind::Pattern))
        && kinds.iter().any(|kind| matches!(kind, Kind::Number));
    let part = match &node.value {
        NodeValue::Map(entries) => entries.first().map(|entry| entry.key.text.as_str()),
        NodeValue::List(nodes) => nodes.first().map(|_| "0"),
        _ => None,
    };
    let path = format!("{name}.{}", part.filter(|_| by_path)?);
    Some(format!("select a nested value by its path: `{}: …`", shorten(&path)))
}

fn list_advice(kind: &Kind) -> Option<String> {
    let only_list = kind.accepts(JsonType::List) && !kind.accepts(JsonType::Map);
    only_list.then(|| "write it as a list, between `[` and `]`".to_owned())
}

fn list_known_keys(shape: &Shape) -> String {
    let keys: Vec<_> = shape.fields.iter().map(|field| format!("`{}`", field.key)).collect();
    match keys.as_slice() {
        [] => "no keys are allowed here".to_owned(),
        [key] => format!("the only known key is {key}"),
        keys => format!("known keys are {}", keys.join(", ")),
    }
}

/// Returns all spellings of the fields that no entry gives.
fn absent_spellings(shape: &Shape, entries: &[MapEntry]) -> Vec<&'static str> {
    let given: HashSet<&str> = entries.iter().map(|entry| &*entry.key.text).collect();
    let absent = |field: &&Field| !field.spellings().any(|spelling| given.contains(spelling));
    shape.fields.iter().filter(absent).flat_map(Field::spellings).collect()
}

/// Returns the words of the tag with which the mapping would be complete.
fn list_fitting_tags(entries: &[MapEntry], tagged: &TaggedShapes) -> Option<String> {
    let fits = |shape: &&&Shape| {
        let is_known = |entry: &MapEntry| {
            let field = shape.field(&entry.key.text);
            field.is_some_and(|field| field.kind.accepts_type_of(&entry.value.value))
        };
        let is_given = |field: &Field| field.spellings().any(|key| has_key(entries, key));
        let mut required = shape.fields.iter().filter(|field| field.required && field.key != tagged.key);
        entries.iter().all(is_known) && required.all(is_given)
    };
    let words = tagged.shapes.iter().filter(fits).filter_map(|shape| tagged.words(shape).first());
    let words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    (!words.is_empty()).then(|| format!("with these keys, `{}` is {}", tagged.key, one_of(&words)))
}

/// Returns the right form of a mapping whose first key is a word of the tag, such as `contains: hello`. Keys of
/// all shapes, such as `negate`, may stand before it.
fn tag_as_key_advice(entries: &[MapEntry], tagged: &TaggedShapes) -> Option<String> {
    let is_common = |key: &str| tagged.shapes.iter().all(|shape| shape.field(key).is_some());
    let first = entries.iter().map(|entry| &entry.key.text).find(|key| !is_common(key))?;
    let word = tagged.all_words().find(|word| word == first)?;
    let shape = tagged.shapes.iter().find(|shape| tagged.words(shape).contains(&word))?;
    let required = shape.fields.iter().filter(|field| field.required && field.key != tagged.key);
    let keys: String = required.map(|field| format!(", {}: …", field.key)).collect();
    let keys = if keys.is_empty() { ", …" } else { &keys };
    Some(format!("write `{{ {}: {word}{keys} }}`", tagged.key))
}

/// Describes the allowed words: `a`, or one of `a`, `b`.
fn one_of(words: &[String]) -> String {
    match words {
        [word] => word.clone(),
        words => format!("one of {}", words.join(", ")),
    }
}

fn list_tags(tagged: &TaggedShapes) -> String {
    let words: Vec<_> = tagged.main_words().map(|word| format!("`{word}`")).collect();
    let mut text = format!("`{}` is {}", tagged.key, one_of(&words));
    if let Some(shape) = tagged.untagged {
        let keys: Vec<_> = shape.fields.iter().map(|field| format!("`{}`", field.key)).collect();
        text.push_str(&format!("; a mapping without it has {}", keys.join(", ")));
    }
    text
}

/// Returns what a mapping without the key is.
fn untagged_advice(key: &str, shape: &Shape) -> String {
    let keys: Vec<_> = shape.fields.iter().map(|field| format!("`{}`", field.key)).collect();
    let doc = shape.doc.split_once(". ").map_or(shape.doc.trim_end_matches('.'), |(first, _)| first);
    format!("without `{key}`: {}{} ({})", doc[..1].to_lowercase(), &doc[1..], keys.join(", "))
}

fn has_key(entries: &[MapEntry], key: &str) -> bool {
    entries.iter().any(|entry| entry.key.text == key)
}

/// Returns true for boolean words of other formats and older YAML versions.
fn is_truth_word(text: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off", "y", "n"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Returns true for an HTTP URL, or a text that may become one when its variables are filled in.
fn may_be_url(text: &str) -> bool {
    is_http_url(text) || (text.contains("${") && !text.contains(char::is_whitespace))
}

/// Returns true for an absolute URL of the scheme `http` or `https`, in any case, with a host.
pub fn is_http_url(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        && !host.is_empty()
        && !host.starts_with(['/', '?', '#', ':'])
        && !text.contains(char::is_whitespace)
}
