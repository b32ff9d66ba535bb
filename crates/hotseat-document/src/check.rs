//! Whether a tree is what may be written.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics, MAX_SHOWN_DIAGNOSTICS};
use super::node::{Entry, Key, Node, Value, shorten};
use super::place::Source;
use super::shape::{Field, Kind, Shape, Tagged, Type};

/// Compares a node with what it may be, and reports everything that does not fit, not only the first.
pub fn check(node: &Node, kind: &Kind, source: &Arc<Source>, mistakes: &mut Diagnostics) {
    Checker { source, mistakes }.check(node, kind, Subject::Document);
}

/// A whole number, also one that is written as `1e3` or `1.0`.
pub(super) fn whole_number(number: &serde_json::Number) -> Option<i64> {
    // Above this not every whole number is a floating-point number, so one could stand for its neighbour.
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() <= LARGEST_EXACT).then_some(float as i64)
    })
}

/// What a message speaks about.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Document,
    Value(&'a str),
    EntryOf(&'a str),
    EntryOfDocument,
}

impl<'a> Subject<'a> {
    fn entry(self) -> Self {
        match self {
            Subject::Document | Subject::EntryOfDocument => Subject::EntryOfDocument,
            Subject::Value(key) | Subject::EntryOf(key) => Subject::EntryOf(key),
        }
    }
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Document => f.write_str("this document"),
            Subject::Value(key) => write!(f, "`{}`", shorten(key)),
            Subject::EntryOf(key) => write!(f, "an entry of `{}`", shorten(key)),
            Subject::EntryOfDocument => f.write_str("an entry of this list"),
        }
    }
}

struct Checker<'c> {
    source: &'c Arc<Source>,
    mistakes: &'c mut Diagnostics,
}

impl Checker<'_> {
    fn check(&mut self, node: &Node, kind: &Kind, subject: Subject<'_>) {
        match (kind, &node.value) {
            (Kind::Json, _)
            | (Kind::Null, Value::Null)
            | (Kind::Bool, Value::Bool(_))
            | (Kind::False, Value::Bool(false))
            | (Kind::Text, Value::String(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::JsonMap, Value::Map(_)) => {}
            (Kind::NonEmptyText, Value::String(text)) if !text.trim().is_empty() => {}
            (Kind::Pattern, Value::String(text)) if !text.is_empty() => {}
            (Kind::Url, Value::String(text)) if is_url(text) => {}
            (Kind::Choice(words), Value::String(text)) if words.contains(&text.as_str()) => {}
            (Kind::Integer { min, max }, Value::Number(number))
                if whole_number(number).is_some_and(|number| (*min..=*max).contains(&number)) => {}
            (Kind::List(kind), Value::List(nodes)) => self.check_list(nodes, kind, subject),
            (Kind::NonEmptyList(kind), Value::List(nodes)) if !nodes.is_empty() => {
                self.check_list(nodes, kind, subject);
            }
            (Kind::Map(kind), Value::Map(entries)) => {
                for entry in entries {
                    self.check(&entry.value, kind, Subject::Value(&entry.key.text));
                }
            }
            (Kind::Shape(shape), Value::Map(entries)) => self.check_shape(node, entries, shape, subject),
            (Kind::Tagged(tagged), Value::Map(entries)) => match tagged.shape_of(node) {
                Some(shape) if !is_stranger(entries, tagged) => {
                    self.check_shape(node, entries, shape, subject);
                }
                Some(_) | None => self.untold(node, entries, tagged, subject),
            },
            (Kind::OneOf(kinds), _) => match kinds.iter().find(|kind| kind.accepts(type_of(node))) {
                // `true` where `false` or a mapping may stand: what fits is all of it.
                Some(Kind::False) if node.value == Value::Bool(true) => self.misfit(node, kind, subject),
                Some(kind) => self.check(node, kind, subject),
                None => self.misfit(node, kind, subject),
            },
            (
                Kind::Null
                | Kind::Bool
                | Kind::False
                | Kind::Text
                | Kind::NonEmptyText
                | Kind::Integer { .. }
                | Kind::Number
                | Kind::Pattern
                | Kind::JsonMap
                | Kind::Url
                | Kind::Choice(_)
                | Kind::List(_)
                | Kind::NonEmptyList(_)
                | Kind::Map(_)
                | Kind::Shape(_)
                | Kind::Tagged(_),
                _,
            ) => self.misfit(node, kind, subject),
        }
    }

    fn check_list(&mut self, nodes: &[Node], kind: &Kind, subject: Subject<'_>) {
        for node in nodes {
            self.check(node, kind, subject.entry());
        }
    }

    fn check_shape(&mut self, node: &Node, entries: &[Entry], shape: &Shape, subject: Subject<'_>) {
        let mut given: Vec<(&Field, &Key)> = Vec::with_capacity(entries.len());
        let mut meant: Vec<&str> = Vec::new();
        let absent = OnceCell::new();
        for Entry { key, value } in entries {
            let Some(field) = shape.field(&key.text) else {
                // What is not shown needs no suggestion.
                let near = (self.mistakes.len() < MAX_SHOWN_DIAGNOSTICS)
                    .then(|| absent.get_or_init(|| absent_spellings(shape, entries)))
                    .and_then(|absent| nearest(&key.text, absent.iter().copied()));
                meant.extend(near);
                self.unknown_key(key, near, shape, subject);
                continue;
            };
            if let Some((_, first)) = given.iter().find(|(known, _)| known.key == field.key) {
                self.given_twice(first, key);
            }
            given.push((field, key));
            self.check(value, &field.kind, Subject::Value(&key.text));
        }
        for field in shape.fields.iter().filter(|field| field.required) {
            let is_given = given.iter().any(|(known, _)| known.key == field.key);
            // A misspelt key is reported once, as that.
            let is_meant = field.spellings().any(|spelling| meant.contains(&spelling));
            if !is_given && !is_meant {
                self.missing_key(node, field, subject);
            }
        }
    }

    /// A mapping whose shape its key does not tell.
    fn untold(&mut self, node: &Node, entries: &[Entry], tagged: &Tagged, subject: Subject<'_>) {
        let all: Vec<_> = tagged.main_words().map(|word| format!("`{word}`")).collect();
        let meant = |entry: &&Entry| nearest(&entry.key.text, [tagged.key]).is_some();
        match (node.get(tagged.key), entries.iter().find(meant)) {
            (None, Some(misspelt)) => {
                let message = format!("unknown key `{}` in {subject}", shorten(&misspelt.key.text));
                let help = format!("did you mean `{}`?", tagged.key);
                self.mistakes.push(Diagnostic::new(message).at(misspelt.key.place(self.source)).help(help));
            }
            (None, None) => {
                let mistake = Diagnostic::new(format!("{subject} has no `{}`", tagged.key));
                let mut help = format!("`{}` is one of {}", tagged.key, all.join(", "));
                if let Some(shape) = tagged.untagged {
                    let keys: Vec<_> = shape.fields.iter().map(|field| format!("`{}`", field.key)).collect();
                    help.push_str(&format!("; a mapping without it has {}", keys.join(", ")));
                }
                self.mistakes.push(mistake.at(node.place(self.source)).help(help));
            }
            (Some(tag), _) => {
                let message =
                    format!("`{}` must be one of {}, found {}", tagged.key, all.join(", "), tag.in_words());
                let mistake = Diagnostic::new(message).at(tag.place(self.source));
                let near = match &tag.value {
                    Value::String(text) => nearest(text, tagged.all_words()),
                    _ => None,
                };
                let help = near.map(|near| format!("did you mean `{near}`?"));
                self.mistakes.push(Diagnostic { help, ..mistake });
            }
        }
    }

    fn unknown_key(&mut self, key: &Key, near: Option<&str>, shape: &Shape, subject: Subject<'_>) {
        let written = shorten(&key.text);
        let message = match subject {
            Subject::Document => format!("unknown key `{written}`"),
            Subject::Value(_) | Subject::EntryOf(_) | Subject::EntryOfDocument => {
                format!("unknown key `{written}` in {subject}")
            }
        };
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let keys: Vec<_> = shape.fields.iter().map(|field| format!("`{}`", field.key)).collect();
                match keys.as_slice() {
                    [] => "no key is known here".to_owned(),
                    keys => format!("known keys are {}", keys.join(", ")),
                }
            }
        };
        self.mistakes.push(Diagnostic::new(message).at(key.place(self.source)).help(help));
    }

    fn given_twice(&mut self, first: &Key, second: &Key) {
        self.mistakes.push(
            Diagnostic::new(format!("`{}` and `{}` are two spellings of one key", first.text, second.text))
                .at(second.place(self.source))
                .also(first.place(self.source), "first")
                .help("keep one of them"),
        );
    }

    fn missing_key(&mut self, node: &Node, field: &Field, subject: Subject<'_>) {
        let spellings = field.spellings().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" or ");
        self.mistakes.push(
            Diagnostic::new(format!("{subject} has no {spellings}"))
                .at(node.place(self.source))
                .help(format!("{spellings}: {}", field.doc)),
        );
    }

    fn misfit(&mut self, node: &Node, kind: &Kind, subject: Subject<'_>) {
        let found = match &node.value {
            Value::List(nodes) if nodes.is_empty() => "an empty list".to_owned(),
            _ => node.in_words(),
        };
        let message = format!("{subject} must be {}, found {found}", kind.in_words());
        let mistake = Diagnostic::new(message).at(node.place(self.source));
        self.mistakes.push(Diagnostic { help: self.advice(node, kind), ..mistake });
    }

    /// What to write instead, where the reason for the misfit can be guessed.
    fn advice(&self, node: &Node, kind: &Kind) -> Option<String> {
        match &node.value {
            Value::Null => Some("give it a value, or leave the key out".to_owned()),
            Value::Bool(_) | Value::Number(_) if kind.accepts(Type::String) => {
                node.as_quoted(self.source).map(|quoted| format!("write {quoted} to mean text"))
            }
            Value::String(text) if kind.accepts(Type::Bool) && is_truth_word(text) => {
                Some("write true or false, without quotes".to_owned())
            }
            Value::String(text) if kind.accepts(Type::Number) && text.parse::<f64>().is_ok() => {
                Some("leave out the quotes to mean a number".to_owned())
            }
            Value::String(text) => match kind {
                Kind::Choice(words) => {
                    nearest(text, words.iter().copied()).map(|near| format!("did you mean `{near}`?"))
                }
                Kind::Url => Some("a URL begins with `http://` or `https://`".to_owned()),
                Kind::Pattern => Some("an empty regular expression fits everything".to_owned()),
                _ => list_advice(kind),
            },
            Value::Bool(_) | Value::Number(_) | Value::Map(_) => list_advice(kind),
            Value::List(_) => None,
        }
    }
}

/// Whether a mapping without its tag has no key, not even nearly, of the shape that has none either: then it was to have
/// one.
fn is_stranger(entries: &[Entry], tagged: &Tagged) -> bool {
    let Some(shape) = tagged.untagged.filter(|_| !entries.is_empty() && !has(entries, tagged.key)) else {
        return false;
    };
    let is_meant = |entry: &Entry| {
        shape.field(&entry.key.text).is_some()
            || nearest(&entry.key.text, shape.fields.iter().flat_map(Field::spellings)).is_some()
    };
    !entries.iter().any(is_meant)
}

fn list_advice(kind: &Kind) -> Option<String> {
    let only_list = kind.accepts(Type::List) && !kind.accepts(Type::Map);
    only_list.then(|| "write it as a list, between `[` and `]`".to_owned())
}

/// The spellings of the fields of a shape of which no entry is given in any spelling.
fn absent_spellings(shape: &Shape, entries: &[Entry]) -> Vec<&'static str> {
    let given: HashSet<&str> = entries.iter().map(|entry| &*entry.key.text).collect();
    let absent = |field: &&Field| !field.spellings().any(|spelling| given.contains(spelling));
    shape.fields.iter().filter(absent).flat_map(Field::spellings).collect()
}

fn has(entries: &[Entry], key: &str) -> bool {
    entries.iter().any(|entry| entry.key.text == key)
}

fn type_of(node: &Node) -> Type {
    match &node.value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::List(_) => Type::List,
        Value::Map(_) => Type::Map,
    }
}

/// What other formats, and older YAML, take for a truth value.
fn is_truth_word(text: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off", "y", "n"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Whether a text is a URL of HTTP, or may become one when its variables are filled in.
fn is_url(text: &str) -> bool {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return false;
    }
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    text.contains("${") || host.is_some_and(|host| !host.is_empty() && !host.starts_with(['/', '?', '#']))
}

/// The candidate that was probably meant, if one is near enough.
pub fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if written.len() > LONGEST {
        return None;
    }
    // `timeoutMs` and `timeout-ms` are `timeout_ms`.
    let fold = |text: &str| -> String {
        text.chars()
            .filter(|character| !matches!(character, '_' | '-'))
            .flat_map(char::to_lowercase)
            .collect()
    };
    let written = fold(written);
    let most = (written.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&written, &fold(candidate)), candidate))
        .filter(|&(distance, candidate)| distance <= most && distance < candidate.len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}
