//! From the text of a file to its values. JSON is read as the YAML that it is.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};
use serde_json::Number;

use super::place::{Mistakes, Place};
use super::tree::{Content, Entry, Node, shorten};

/// How deep a file may be nested: far from the end of the stack, and from the limit of JSON readers.
const DEEPEST: usize = 100;

/// How many nodes aliases may copy.
const MOST_COPIED: usize = 100_000;

/// Reads the one document of a file. None if that is not possible; then there is a mistake.
pub(super) fn parse(file: &Arc<str>, text: &str, mistakes: &mut Mistakes) -> Option<Node> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let text = without_surrogates(text);
    let mut builder =
        Builder { file, mistakes, open: Vec::new(), anchors: HashMap::new(), copied: 0, root: None };
    for event in Parser::new_from_str(&text) {
        match event {
            Ok((event, span)) => builder.event(event, span)?,
            Err(error) => {
                let place = builder.place(*error.marker());
                builder.mistakes.add(Some(&place), format!("this is not YAML: {}", error.info()));
                return None;
            }
        }
    }
    let start = Place { file: Arc::clone(file), line: 1, column: 1 };
    Some(builder.root.unwrap_or(Node { content: Content::Null, place: Some(start) }))
}

/// JSON writes characters outside the basic plane as two escapes, which YAML does not know. They are made one; only
/// columns behind them on the same line move.
fn without_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD")
        || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
    {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let pair = unit(rest).zip(rest.get(6..).and_then(unit));
        match pair.and_then(|(high, low)| {
            char::decode_utf16([high, low]).next()?.ok().filter(|c| c.len_utf16() == 2)
        }) {
            Some(character) => {
                out.push_str(&format!("\\U{:08X}", u32::from(character)));
                rest = &rest[12..];
            }
            None => {
                // A backslash and what it escapes: in JSON always one byte more.
                let (escape, behind) = rest.split_at(rest.len().min(2));
                out.push_str(escape);
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out.into()
}

/// The code unit of `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

struct Builder<'a> {
    file: &'a Arc<str>,
    mistakes: &'a mut Mistakes,
    /// The lists and mappings that are not complete yet, outermost first.
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    copied: usize,
    root: Option<Node>,
}

struct Open {
    collection: Collection,
    place: Place,
    anchor: usize,
}

enum Collection {
    List(Vec<Node>),
    /// With the key that waits for its value; it has no name if it was refused.
    Map(Vec<Entry>, Option<(Option<String>, Place)>),
}

impl Builder<'_> {
    fn place(&self, marker: Marker) -> Place {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Place { file: Arc::clone(self.file), line: number(marker.line()), column: number(marker.col() + 1) }
    }

    /// None where the rest of the file cannot be read.
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let place = self.place(span.start);
        match event {
            Event::Nothing | Event::StreamStart | Event::DocumentEnd | Event::StreamEnd => {}
            Event::DocumentStart(_) if self.root.is_some() => {
                self.mistakes.add(Some(&place), "a script is one document, and here a second one begins");
                return None;
            }
            Event::DocumentStart(_) => {}
            Event::Alias(anchor) => {
                let copy = self.alias(anchor, place)?;
                self.complete(copy, 0);
            }
            Event::Scalar(text, style, anchor, tag) => {
                let as_text = self.tag(tag.as_deref(), &place) || style != ScalarStyle::Plain;
                let content =
                    if as_text { Content::Text(text.into_owned()) } else { self.plain(&text, &place) };
                self.complete(Node { content, place: Some(place) }, anchor);
            }
            Event::SequenceStart(anchor, tag) => {
                self.tag(tag.as_deref(), &place);
                self.begin(Collection::List(Vec::new()), place, anchor)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.tag(tag.as_deref(), &place);
                self.begin(Collection::Map(Vec::new(), None), place, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let content = match open.collection {
                        Collection::List(nodes) => Content::List(nodes),
                        Collection::Map(entries, _) => Content::Map(entries),
                    };
                    self.complete(Node { content, place: Some(open.place) }, open.anchor);
                }
            }
        }
        Some(())
    }

    fn begin(&mut self, collection: Collection, place: Place, anchor: usize) -> Option<()> {
        if self.open.len() == DEEPEST {
            self.mistakes.add(Some(&place), format!("this is nested deeper than {DEEPEST} levels"));
            return None;
        }
        self.open.push(Open { collection, place, anchor });
        Some(())
    }

    fn alias(&mut self, anchor: usize, place: Place) -> Option<Node> {
        let Some(node) = self.anchors.get(&anchor) else {
            self.mistakes.add(Some(&place), "this alias stands inside of what it names");
            return None;
        };
        self.copied += node.count();
        if self.copied > MOST_COPIED || self.open.len() + node.height() > DEEPEST {
            self.mistakes.add(Some(&place), "the aliases of this file stand for too much");
            return None;
        }
        Some(Node { place: Some(place), ..node.clone() })
    }

    /// Puts a complete node where it belongs.
    fn complete(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        match &mut open.collection {
            Collection::List(nodes) => nodes.push(node),
            Collection::Map(entries, waiting) => match waiting.take() {
                Some((Some(key), place)) => entries.push(Entry { key, key_place: Some(place), value: node }),
                Some((None, _)) => {}
                None => {
                    let place = node.place.clone().unwrap_or_else(|| open.place.clone());
                    *waiting = Some((self.mistakes.key(node, entries, &place), place));
                }
            },
        }
    }

    /// Whether a tag makes a scalar text. Other tags mean nothing here.
    fn tag(&mut self, tag: Option<&Tag>, place: &Place) -> bool {
        let Some(tag) = tag else { return false };
        let is_text = tag.suffix == "str" && tag.is_yaml_core_schema();
        if !is_text {
            let name = format!("{}{}", tag.handle, tag.suffix);
            self.mistakes.add(Some(place), format!("the tag `{}` means nothing here", shorten(&name)));
        }
        is_text
    }

    /// What a scalar without quotes means: the core schema of YAML 1.2, so `yes` and `no` are text.
    fn plain(&mut self, text: &str, place: &Place) -> Content {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Content::Null,
            "true" | "True" | "TRUE" => return Content::Bool(true),
            "false" | "False" | "FALSE" => return Content::Bool(false),
            _ => {}
        }
        match number(text) {
            Ok(Some(number)) => Content::Number(number),
            Ok(None) => Content::Text(text.to_owned()),
            Err(message) => {
                self.mistakes.add(Some(place), message);
                Content::Null
            }
        }
    }
}

impl Mistakes {
    /// The text of a key, unless it is none or is there already.
    fn key(&mut self, node: Node, entries: &[Entry], place: &Place) -> Option<String> {
        let Content::Text(key) = node.content else {
            self.add(Some(place), format!("a key must be text, found {}", node.in_words()));
            return None;
        };
        if let Some(first) = entries.iter().find(|entry| entry.key == key) {
            let line = first.key_place.as_ref().map_or(0, |place| place.line);
            self.add(
                Some(place),
                format!("the key `{}` is written twice, first on line {line}", shorten(&key)),
            );
            return None;
        }
        Some(key)
    }
}

/// The number that a plain scalar spells, if it does; an error if JSON has no such number.
fn number(text: &str) -> Result<Option<Number>, String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("`{text}` is not a number that JSON knows"));
    }
    let radix = unsigned.strip_prefix("0x").map(|digits| (digits, 16));
    if let Some((digits, radix)) = radix.or(unsigned.strip_prefix("0o").map(|digits| (digits, 8)))
        && unsigned.len() == text.len()
        && let Ok(number) = u64::from_str_radix(digits, radix)
    {
        return Ok(Some(number.into()));
    }
    if !is_decimal(unsigned) {
        return Ok(None);
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = plain.parse::<u64>() {
        return Ok(Some(number.into()));
    }
    if let Ok(number) = plain.parse::<i64>() {
        return Ok(Some(number.into()));
    }
    let float = plain.parse::<f64>().ok().and_then(Number::from_f64);
    float.map(Some).ok_or_else(|| format!("the number {} is too large", shorten(text)))
}

/// Digits with at most one dot and one exponent, at least one digit before the exponent.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_fits
}
