//! From the parser's events to a tree.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::scalar::{self, Type, Unfit};
use super::words::{self, TOO_DEEP};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::duplicates::{duplicates, written_twice};
use crate::node::{Entry, Key, Node, Value};
use crate::place::{Place, Source};
use crate::stream::DEEPEST;

/// How much aliases may copy, in units of [`weight`]: some hundred thousand nodes.
const MOST_COPIED: usize = 16 * 1024 * 1024;

/// How many bytes may be read again because of tabs behind colons.
const MOST_REREAD: usize = 16 * 1024 * 1024;

pub(super) fn build(source: &Arc<Source>) -> Result<Node, Diagnostics> {
    if let Some(span) = unknown_directive(&source.text) {
        let mistake = Diagnostic::new("this directive is not known").at(Place::new(source, span));
        return Err(mistake.help("a text that begins with `%` is written in quotes").into());
    }
    let mut text = Cow::Borrowed(source.text.as_str());
    let mut reread = 0;
    loop {
        let mut builder = Builder::new(source);
        let Err(stop) = builder.read(&text) else { return builder.finish() };
        match builder.tabs_behind_colon(&stop) {
            // YAML allows tabs between a colon and its value, the parser does not. Spaces in their place move
            // nothing else.
            Some(tabs) if reread < MOST_REREAD => {
                reread += text.len();
                text.to_mut().replace_range(tabs.clone(), &" ".repeat(tabs.len()));
            }
            Some(_) | None => {
                let mistake = builder.describe(stop);
                builder.mistakes.push(mistake);
                return builder.finish();
            }
        }
    }
}

/// Why the rest of a document is not read.
enum Stop {
    Mistake(Diagnostic),
    Syntax(ScanError),
}

struct Builder<'s> {
    source: &'s Arc<Source>,
    offsets: Offsets<'s>,
    /// What can be reported together. What cannot is an `Err` and ends the parse.
    mistakes: Diagnostics,
    /// The lists and mappings that are not complete yet, outermost first.
    open: Vec<Open>,
    /// By the parser's numbers, which are never used twice. An anchor whose node is not complete is missing.
    anchors: HashMap<usize, Node>,
    copied: usize,
    root: Option<Node>,
}

struct Open {
    content: Content,
    start: usize,
    /// The end of the last node that is written inside.
    end: usize,
    anchor: usize,
}

enum Content {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, awaits: Awaits, merge: Option<Node> },
}

/// What comes next in a mapping.
enum Awaits {
    Key,
    Value(Key),
    MergeValue,
    /// The value of a key that was refused.
    LostValue,
}

impl<'s> Builder<'s> {
    fn new(source: &'s Arc<Source>) -> Self {
        Builder {
            source,
            offsets: Offsets::new(&source.text),
            mistakes: Diagnostics::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            copied: 0,
            root: None,
        }
    }

    fn read(&mut self, text: &str) -> Result<(), Stop> {
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(Stop::Syntax)?;
            self.event(event, span).map_err(Stop::Mistake)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Node, Diagnostics> {
        if self.mistakes.is_empty() {
            return Ok(self.root.unwrap_or(Node { value: Value::Null, span: 0..0, plain: false }));
        }
        self.mistakes.sort_by_place();
        Err(self.mistakes)
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        match event {
            Event::Nothing | Event::StreamStart | Event::DocumentEnd | Event::StreamEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                let at = self.span(span);
                Err(self.mistake("expected one document, and here a second one begins", at))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Scalar(text, style, anchor, tag) => {
                let properties = self.properties(&span, anchor != 0 || tag.is_some());
                let span = self.scalar_span(span, style, text.is_empty(), &properties);
                let plain = style == ScalarStyle::Plain;
                let wanted = scalar::type_of(tag.as_deref()).unwrap_or_else(|unfit| {
                    self.unfit(unfit, properties.tag);
                    Type::Text
                });
                let value = scalar::scalar(text.into_owned(), plain, wanted);
                let value = value.unwrap_or_else(|unfit| {
                    self.unfit(unfit, span.clone());
                    Value::String(String::new())
                });
                self.complete(Node { value, span, plain: plain && wanted == Type::Unsaid }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                let properties = self.properties(&span, anchor != 0 || tag.is_some());
                let start = self.list_start(span, &properties);
                self.expect_tag(tag.as_deref(), Type::List, properties);
                self.open(Content::List(Vec::new()), start, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                let properties = self.properties(&span, anchor != 0 || tag.is_some());
                let start = self.map_start(span, &properties);
                self.expect_tag(tag.as_deref(), Type::Map, properties);
                self.open(
                    Content::Map { entries: Vec::new(), awaits: Awaits::Key, merge: None },
                    start,
                    anchor,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
        }
    }

    fn open(&mut self, content: Content, start: usize, anchor: usize) -> Result<(), Diagnostic> {
        if self.open.len() == DEEPEST {
            return Err(self.mistake(TOO_DEEP, start..start));
        }
        self.open.push(Open { content, start, end: start, anchor });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), Diagnostic> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let text = self.source.text.as_str();
        let is_flow = match open.content {
            Content::List(_) => text[open.start..].starts_with('['),
            Content::Map { .. } => text[open.start..].starts_with('{'),
        };
        // Without brackets, the parser sees the end of a collection only where something else begins.
        let end =
            if is_flow { behind_bracket(text, self.offsets.byte(span.start.index())) } else { open.end };
        let value = match open.content {
            Content::List(nodes) => Value::List(nodes),
            Content::Map { entries, merge, .. } => Value::Map(self.complete_map(entries, merge)),
        };
        self.complete(Node { value, span: open.start..end, plain: false }, open.anchor)
    }

    /// Puts a complete node where it belongs, and keeps a copy of it if it has an anchor.
    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            self.charge(weight(&node), node.span.start)?;
            self.anchors.insert(anchor, node.clone());
        }
        self.add(node);
        Ok(())
    }

    fn add(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        open.end = open.end.max(node.span.end);
        match &mut open.content {
            Content::List(nodes) => nodes.push(node),
            Content::Map { entries, awaits, merge } => match std::mem::replace(awaits, Awaits::Key) {
                Awaits::Value(key) => entries.push(Entry { key, value: node }),
                Awaits::MergeValue => *merge = Some(node),
                Awaits::LostValue => {}
                Awaits::Key => match key(node, merge.is_some(), self.source) {
                    Ok(next) => *awaits = next,
                    Err(mistake) => {
                        self.mistakes.push(mistake);
                        *awaits = Awaits::LostValue;
                    }
                },
            },
        }
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        let span = self.span(span);
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(self.mistake("this alias stands inside of what it names", span));
        };
        let weight = weight(node);
        if self.open.len() + height(node) > DEEPEST {
            return Err(self.mistake(TOO_DEEP, span));
        }
        let mut node = node.clone();
        self.charge(weight, span.start)?;
        // What is wrong with the node as a whole is wrong where it is used; the inner places stay.
        node.span = span;
        node.plain = false;
        self.add(node);
        Ok(())
    }

    fn charge(&mut self, weight: usize, at: usize) -> Result<(), Diagnostic> {
        self.copied = self.copied.saturating_add(weight);
        if self.copied <= MOST_COPIED {
            return Ok(());
        }
        Err(self.mistake("the aliases of this document stand for too much text", at..at))
    }

    /// Reports keys that are written twice, and adds what is merged.
    fn complete_map(&mut self, mut entries: Vec<Entry>, merge: Option<Node>) -> Vec<Entry> {
        for [first, second] in duplicates(&entries) {
            let (first, second) = (&entries[first].key, &entries[second].key);
            self.mistakes.push(written_twice(first, second, self.source));
        }
        let Some(merged) = merge else { return entries };
        let mut maps = Vec::new();
        match merged.value {
            Value::Map(entries) => maps.push(entries),
            Value::List(nodes) => {
                for node in nodes {
                    match node.value {
                        Value::Map(entries) => maps.push(entries),
                        _ => self.not_mergeable(node.span),
                    }
                }
            }
            _ => self.not_mergeable(merged.span),
        }
        let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.text.clone()).collect();
        for entry in maps.into_iter().flatten() {
            if known.insert(entry.key.text.clone()) {
                entries.push(entry);
            }
        }
        entries
    }

    fn not_mergeable(&mut self, span: Range<usize>) {
        let mistake = self.mistake("`<<` merges a mapping or a list of mappings", span);
        self.mistakes.push(mistake.help("write the key in quotes if `<<` is meant as text"));
    }

    fn expect_tag(&mut self, tag: Option<&Tag>, expected: Type, properties: Properties) {
        match scalar::type_of(tag) {
            Ok(Type::Unsaid) => {}
            Ok(wanted) if wanted == expected => {}
            // A lone `!` on a list or a mapping says what is true anyway.
            Ok(Type::Text) if tag.is_some_and(|tag| tag.handle.is_empty()) => {}
            Ok(_) => {
                let mistake = self.mistake("this tag does not fit what follows it", properties.tag);
                self.mistakes.push(mistake);
            }
            Err(unfit) => self.unfit(unfit, properties.tag),
        }
    }

    fn unfit(&mut self, unfit: Unfit, span: Range<usize>) {
        let mistake = self.mistake(unfit.message, span);
        self.mistakes.push(Diagnostic { help: unfit.help, ..mistake });
    }

    /// The tabs between a colon and its value that the parser stopped at.
    fn tabs_behind_colon(&mut self, stop: &Stop) -> Option<Range<usize>> {
        let Stop::Syntax(error) = stop else { return None };
        let end = self.offsets.byte(error.marker().index());
        let start = self.source.text[..end].trim_end_matches('\t').len();
        (error.info() == words::TABS_BEHIND_COLON && start < end).then_some(start..end)
    }

    fn describe(&mut self, stop: Stop) -> Diagnostic {
        let error = match stop {
            Stop::Mistake(mistake) => return mistake,
            Stop::Syntax(error) => error,
        };
        let offset = self.offsets.byte(error.marker().index());
        let said = words::syntax_error(error.info(), &self.source.text, offset);
        let mistake = self.mistake(said.message, said.span);
        Diagnostic { help: said.help.map(str::to_owned), ..mistake }
    }

    fn mistake(&self, message: impl Into<String>, span: Range<usize>) -> Diagnostic {
        Diagnostic::new(message).at(Place::new(self.source, span))
    }

    fn span(&mut self, span: Span) -> Range<usize> {
        let start = self.offsets.byte(span.start.index());
        start..self.offsets.byte(span.end.index()).max(start)
    }

    /// What stands before the content of a node.
    fn properties(&mut self, span: &Span, has_properties: bool) -> Properties {
        let start = self.offsets.byte(span.start.index());
        if has_properties {
            Properties::read(&self.source.text, start)
        } else {
            Properties { tag: start..start, content: Some(start) }
        }
    }

    fn map_start(&mut self, span: Span, properties: &Properties) -> usize {
        properties.content.unwrap_or_else(|| self.offsets.byte(span.start.index()))
    }

    /// Where a list begins. Where its entries are not indented, the parser begins it behind the first dash.
    fn list_start(&mut self, span: Span, properties: &Properties) -> usize {
        let start = self.map_start(span, properties);
        let text = self.source.text.as_str();
        if text[start..].starts_with(['[', '-']) {
            return start;
        }
        let before = text[..start].trim_end_matches([' ', '\t']);
        if before.ends_with('-') { before.len() - 1 } else { start }
    }

    /// The span of a scalar, from its first to its last character. The parser's own span begins with the tag and
    /// anchor, and ends behind the spaces and the comment that follow.
    fn scalar_span(
        &mut self,
        span: Span,
        style: ScalarStyle,
        is_empty: bool,
        properties: &Properties,
    ) -> Range<usize> {
        let span = self.span(span);
        let text = &self.source.text;
        let start = properties.content.unwrap_or(span.start).clamp(span.start, span.end);
        let length = match style {
            // What is not written has the span of its neighbour.
            ScalarStyle::Plain if is_empty => return span.start..span.start,
            ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => {
                text[start..span.end].trim_end_matches(is_space).len()
            }
            ScalarStyle::SingleQuoted => single_quoted_length(&text[start..span.end]),
            ScalarStyle::DoubleQuoted => double_quoted_length(&text[start..span.end]),
        };
        start..start + length
    }
}

/// A directive that is neither `%YAML` nor `%TAG`. The parser passes over it, so a misspelt one would go unseen.
fn unknown_directive(text: &str) -> Option<Range<usize>> {
    let mut start = 0;
    for line in text.split_inclusive(['\n', '\r']) {
        let name = line.split(is_space).next().unwrap_or_default();
        match line.trim_start_matches(is_space).as_bytes().first() {
            Some(b'%') if matches!(name, "%YAML" | "%TAG") => {}
            Some(b'%') if line.starts_with('%') => return Some(start..start + name.len()),
            Some(b'#') | None => {}
            Some(_) if name == "..." => {}
            Some(_) => return None,
        }
        start += line.len();
    }
    None
}

/// What a key makes a mapping wait for.
fn key(node: Node, has_merge: bool, source: &Arc<Source>) -> Result<Awaits, Diagnostic> {
    match node.value {
        Value::String(text) if text == "<<" && node.plain => {
            if !has_merge {
                return Ok(Awaits::MergeValue);
            }
            let mistake = Diagnostic::new("`<<` is written twice").at(Place::new(source, node.span));
            Err(mistake.help("merge several mappings with `<<: [*first, *second]`"))
        }
        Value::String(text) => Ok(Awaits::Value(Key { text, span: node.span })),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
            let mistake = Diagnostic::new(format!("a key must be text, found {}", node.in_words()));
            let help = node.as_quoted(source).map(|quoted| format!("write {quoted} to mean text"));
            Err(Diagnostic { help, ..mistake.at(node.place(source)) })
        }
    }
}

/// About how many bytes a copy of a node takes.
fn weight(node: &Node) -> usize {
    const EACH: usize = 64;
    EACH + match &node.value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::List(nodes) => nodes.iter().map(weight).sum(),
        Value::Map(entries) => {
            entries.iter().map(|entry| EACH + entry.key.text.len() + weight(&entry.value)).sum()
        }
    }
}

/// How many lists and mappings a node holds within each other, itself included.
fn height(node: &Node) -> usize {
    match &node.value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::List(nodes) => 1 + nodes.iter().map(height).max().unwrap_or(0),
        Value::Map(entries) => 1 + entries.iter().map(|entry| height(&entry.value)).max().unwrap_or(0),
    }
}

/// The tag and the anchor before a node.
struct Properties {
    tag: Range<usize>,
    /// Where the node itself begins, if it does before the text ends.
    content: Option<usize>,
}

impl Properties {
    fn read(text: &str, start: usize) -> Self {
        let mut properties = Properties { tag: start..start, content: None };
        let mut at = start;
        loop {
            let rest = text[at..].trim_start_matches(is_space);
            at = text.len() - rest.len();
            let end = |stop: fn(char) -> bool| rest.find(stop).map_or(text.len(), |length| at + length);
            let next = match rest.as_bytes().first() {
                Some(b'&') => end(is_space),
                Some(b'!') => {
                    let next = end(is_space);
                    properties.tag = at..next;
                    next
                }
                Some(b'#') => end(|character| matches!(character, '\n' | '\r')),
                Some(_) => {
                    properties.content = Some(at);
                    return properties;
                }
                None => return properties,
            };
            at = next;
        }
    }
}

/// The end of the bracket that closes a collection, from what stands before it: a comma, spaces, comments.
fn behind_bracket(text: &str, mut at: usize) -> usize {
    loop {
        let rest = text[at..].trim_start_matches(|character| character == ',' || is_space(character));
        at = text.len() - rest.len();
        match rest.chars().next() {
            Some('#') => at += rest.find(['\n', '\r']).unwrap_or(rest.len()),
            Some(bracket) => return at + bracket.len_utf8(),
            None => return at,
        }
    }
}

/// What YAML takes for space. Other Unicode spaces are text.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// The length of the single-quoted scalar that a text begins with.
fn single_quoted_length(text: &str) -> usize {
    let mut quotes = text.bytes().enumerate().skip(1).filter(|&(_, byte)| byte == b'\'').map(|(at, _)| at);
    while let Some(at) = quotes.next() {
        if text.as_bytes().get(at + 1) != Some(&b'\'') {
            return at + 1;
        }
        quotes.next();
    }
    text.trim_end_matches(is_space).len()
}

/// The length of the double-quoted scalar that a text begins with.
fn double_quoted_length(text: &str) -> usize {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return at + 1,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    text.trim_end_matches(is_space).len()
}

/// Turns the parser's positions, which count characters, into byte offsets.
///
/// The parser asks for positions that lie close together, so walking from the last one is cheap.
struct Offsets<'s> {
    text: &'s str,
    is_ascii: bool,
    character: usize,
    byte: usize,
}

impl<'s> Offsets<'s> {
    fn new(text: &'s str) -> Self {
        Offsets { text, is_ascii: text.is_ascii(), character: 0, byte: 0 }
    }

    fn byte(&mut self, character: usize) -> usize {
        if self.is_ascii {
            return character.min(self.text.len());
        }
        let forward = character.saturating_sub(self.character);
        for passed in self.text[self.byte..].chars().take(forward) {
            self.byte += passed.len_utf8();
            self.character += 1;
        }
        let backward = self.character.saturating_sub(character);
        for passed in self.text[..self.byte].chars().rev().take(backward) {
            self.byte -= passed.len_utf8();
            self.character -= 1;
        }
        self.byte
    }
}
