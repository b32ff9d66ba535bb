//! Builds a tree from the events of the YAML parser.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::scalar::{self, ScalarError, TagType};
use super::syntax_error::{self, TOO_DEEP};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::duplicates::{duplicate_key_error, find_duplicates};
use crate::node::{DocumentNode, MapEntry, MapKey, NodeValue};
use crate::place::{SourceSpan, SourceText};
use crate::stream::MAX_DEPTH;

/// Maximum amount copied by aliases, in units of [`weight`]: several hundred thousand nodes.
const MAX_COPIED_WEIGHT: usize = 16 * 1024 * 1024;

/// Maximum number of bytes parsed again because of tabs after colons.
const MAX_REPARSED_BYTES: usize = 16 * 1024 * 1024;

pub(super) fn parse_document(source: &Arc<SourceText>) -> Result<DocumentNode, Diagnostics> {
    if let Some(span) = unknown_directive(&source.text) {
        let mistake = Diagnostic::new("unknown directive").at(SourceSpan::new(source, span));
        return Err(mistake.help("write text that starts with `%` in quotes").into());
    }
    let mut text = Cow::Borrowed(source.text.as_str());
    let mut reread = 0;
    loop {
        let mut builder = YamlTreeBuilder::new(source);
        let Err(stop) = builder.read(&text) else { return builder.finish() };
        match builder.tabs_after_colon(&stop) {
            // YAML allows tabs between a colon and its value, the parser does not. Replacing them by spaces
            // moves nothing else.
            Some(tabs) if reread < MAX_REPARSED_BYTES => {
                reread += text.len();
                text.to_mut().replace_range(tabs.clone(), &" ".repeat(tabs.len()));
            }
            Some(_) | None => {
                let mistake = builder.describe(stop);
                builder.errors.push(mistake);
                return builder.finish();
            }
        }
    }
}

/// Reason why the rest of a document is not read.
enum ParseStop {
    Invalid(Diagnostic),
    Syntax(ScanError),
}

struct YamlTreeBuilder<'s> {
    source: &'s Arc<SourceText>,
    offsets: CharOffsets<'s>,
    /// Errors that do not end the parse; others are returned as `Err`.
    errors: Diagnostics,
    /// Open lists and mappings, outermost first.
    open: Vec<OpenCollection>,
    /// Anchored nodes by the parser's unique anchor numbers. An incomplete node has no entry.
    anchors: HashMap<usize, DocumentNode>,
    copied: usize,
    root: Option<DocumentNode>,
}

struct OpenCollection {
    content: CollectionContent,
    start: usize,
    /// End of the last nested node.
    end: usize,
    anchor: usize,
}

enum CollectionContent {
    List(Vec<DocumentNode>),
    Map { entries: Vec<MapEntry>, awaits: MapState, merge: Option<DocumentNode> },
}

/// Next part expected in a mapping.
enum MapState {
    Key,
    Value(MapKey),
    MergeValue,
    /// The value of a rejected key.
    LostValue,
}

impl<'s> YamlTreeBuilder<'s> {
    fn new(source: &'s Arc<SourceText>) -> Self {
        YamlTreeBuilder {
            source,
            offsets: CharOffsets::new(&source.text),
            errors: Diagnostics::new(),
            open: Vec::new(),
            anchors: HashMap::new(),
            copied: 0,
            root: None,
        }
    }

    fn read(&mut self, text: &str) -> Result<(), ParseStop> {
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(ParseStop::Syntax)?;
            self.event(event, span).map_err(ParseStop::Invalid)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<DocumentNode, Diagnostics> {
        if self.errors.is_empty() {
            return Ok(self.root.unwrap_or(DocumentNode {
                value: NodeValue::Null,
                span: 0..0,
                plain: false,
            }));
        }
        self.errors.sort_by_place();
        Err(self.errors)
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        match event {
            Event::Nothing | Event::StreamStart | Event::DocumentEnd | Event::StreamEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                let at = self.span(span);
                Err(self.error("expected one document, but a second one starts here", at))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Scalar(text, style, anchor, tag) => {
                let properties = self.properties(&span, anchor != 0 || tag.is_some());
                let span = self.scalar_span(span, style, text.is_empty(), &properties);
                let plain = style == ScalarStyle::Plain;
                let wanted = scalar::type_of(tag.as_deref()).unwrap_or_else(|unfit| {
                    self.report_invalid_scalar(unfit, properties.tag);
                    TagType::Text
                });
                let value = scalar::resolve_scalar(text.into_owned(), plain, wanted);
                let value = value.unwrap_or_else(|unfit| {
                    self.report_invalid_scalar(unfit, span.clone());
                    NodeValue::String(String::new())
                });
                self.complete(
                    DocumentNode { value, span, plain: plain && wanted == TagType::Untagged },
                    anchor,
                )
            }
            Event::SequenceStart(anchor, tag) => {
                let properties = self.properties(&span, anchor != 0 || tag.is_some());
                let start = self.list_start(span, &properties);
                self.expect_tag(tag.as_deref(), TagType::List, properties);
                self.open(CollectionContent::List(Vec::new()), start, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                let properties = self.properties(&span, anchor != 0 || tag.is_some());
                let start = self.map_start(span, &properties);
                self.expect_tag(tag.as_deref(), TagType::Map, properties);
                self.open(
                    CollectionContent::Map { entries: Vec::new(), awaits: MapState::Key, merge: None },
                    start,
                    anchor,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
        }
    }

    fn open(&mut self, content: CollectionContent, start: usize, anchor: usize) -> Result<(), Diagnostic> {
        if self.open.len() == MAX_DEPTH {
            return Err(self.error(TOO_DEEP, start..start));
        }
        self.open.push(OpenCollection { content, start, end: start, anchor });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), Diagnostic> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let text = self.source.text.as_str();
        let is_flow = match open.content {
            CollectionContent::List(_) => text[open.start..].starts_with('['),
            CollectionContent::Map { .. } => text[open.start..].starts_with('{'),
        };
        // For block collections the parser reports the end only at the next token.
        let end =
            if is_flow { closing_bracket_end(text, self.offsets.byte(span.start.index())) } else { open.end };
        let value = match open.content {
            CollectionContent::List(nodes) => NodeValue::List(nodes),
            CollectionContent::Map { entries, merge, .. } => {
                NodeValue::Map(self.complete_map(entries, merge))
            }
        };
        self.complete(DocumentNode { value, span: open.start..end, plain: false }, open.anchor)
    }

    /// Adds a complete node to its parent, and stores a copy if it has an anchor.
    fn complete(&mut self, node: DocumentNode, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            self.charge(weight(&node), node.span.start)?;
            self.anchors.insert(anchor, node.clone());
        }
        self.add(node);
        Ok(())
    }

    fn add(&mut self, node: DocumentNode) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        open.end = open.end.max(node.span.end);
        match &mut open.content {
            CollectionContent::List(nodes) => nodes.push(node),
            CollectionContent::Map { entries, awaits, merge } => {
                match std::mem::replace(awaits, MapState::Key) {
                    MapState::Value(key) => entries.push(MapEntry { key, value: node }),
                    MapState::MergeValue => *merge = Some(node),
                    MapState::LostValue => {}
                    MapState::Key => match state_after_key(node, merge.is_some(), self.source) {
                        Ok(next) => *awaits = next,
                        Err(mistake) => {
                            self.errors.push(mistake);
                            *awaits = MapState::LostValue;
                        }
                    },
                }
            }
        }
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        let span = self.span(span);
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(self.error("this alias is inside the node that it refers to", span));
        };
        let weight = weight(node);
        if self.open.len() + height(node) > MAX_DEPTH {
            return Err(self.error(TOO_DEEP, span));
        }
        let mut node = node.clone();
        self.charge(weight, span.start)?;
        // Errors about the whole node point at the alias; inner locations stay.
        node.span = span;
        node.plain = false;
        self.add(node);
        Ok(())
    }

    fn charge(&mut self, weight: usize, at: usize) -> Result<(), Diagnostic> {
        self.copied = self.copied.saturating_add(weight);
        if self.copied <= MAX_COPIED_WEIGHT {
            return Ok(());
        }
        Err(self.error("the aliases of this document expand to too much text", at..at))
    }

    /// Reports duplicate keys and applies the merge key.
    fn complete_map(&mut self, mut entries: Vec<MapEntry>, merge: Option<DocumentNode>) -> Vec<MapEntry> {
        for [first, second] in find_duplicates(&entries) {
            let (first, second) = (&entries[first].key, &entries[second].key);
            self.errors.push(duplicate_key_error(first, second, self.source));
        }
        let Some(merged) = merge else { return entries };
        let mut maps = Vec::new();
        match merged.value {
            NodeValue::Map(entries) => maps.push(entries),
            NodeValue::List(nodes) => {
                for node in nodes {
                    match node.value {
                        NodeValue::Map(entries) => maps.push(entries),
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
        let mistake = self.error("`<<` merges a mapping or a list of mappings", span);
        self.errors.push(mistake.help("write the key in quotes if `<<` is meant as text"));
    }

    fn expect_tag(&mut self, tag: Option<&Tag>, expected: TagType, properties: NodeProperties) {
        match scalar::type_of(tag) {
            Ok(TagType::Untagged) => {}
            Ok(wanted) if wanted == expected => {}
            // A lone `!` on a list or mapping changes nothing.
            Ok(TagType::Text) if tag.is_some_and(|tag| tag.handle.is_empty()) => {}
            Ok(_) => {
                let mistake = self.error("this tag does not match the node after it", properties.tag);
                self.errors.push(mistake);
            }
            Err(unfit) => self.report_invalid_scalar(unfit, properties.tag),
        }
    }

    fn report_invalid_scalar(&mut self, unfit: ScalarError, span: Range<usize>) {
        let mistake = self.error(unfit.message, span);
        self.errors.push(Diagnostic { help: unfit.help, ..mistake });
    }

    /// Returns the tabs after a colon at which the parser stopped.
    fn tabs_after_colon(&mut self, stop: &ParseStop) -> Option<Range<usize>> {
        let ParseStop::Syntax(error) = stop else { return None };
        let end = self.offsets.byte(error.marker().index());
        let start = self.source.text[..end].trim_end_matches('\t').len();
        (error.info() == syntax_error::TAB_AFTER_COLON && start < end).then_some(start..end)
    }

    fn describe(&mut self, stop: ParseStop) -> Diagnostic {
        let error = match stop {
            ParseStop::Invalid(mistake) => return mistake,
            ParseStop::Syntax(error) => error,
        };
        let offset = self.offsets.byte(error.marker().index());
        let said = syntax_error::syntax_error(error.info(), &self.source.text, offset);
        let mistake = self.error(said.message, said.span);
        Diagnostic { help: said.help.map(str::to_owned), ..mistake }
    }

    fn error(&self, message: impl ToString, span: Range<usize>) -> Diagnostic {
        Diagnostic::new(message).at(SourceSpan::new(self.source, span))
    }

    fn span(&mut self, span: Span) -> Range<usize> {
        let start = self.offsets.byte(span.start.index());
        start..self.offsets.byte(span.end.index()).max(start)
    }

    /// Reads tag and anchor before the content of a node.
    fn properties(&mut self, span: &Span, has_properties: bool) -> NodeProperties {
        let start = self.offsets.byte(span.start.index());
        if has_properties {
            NodeProperties::read(&self.source.text, start)
        } else {
            NodeProperties { tag: start..start, content: Some(start) }
        }
    }

    fn map_start(&mut self, span: Span, properties: &NodeProperties) -> usize {
        properties.content.unwrap_or_else(|| self.offsets.byte(span.start.index()))
    }

    /// Returns the start of a list. For unindented entries the parser starts after the first dash.
    fn list_start(&mut self, span: Span, properties: &NodeProperties) -> usize {
        let start = self.map_start(span, properties);
        let text = self.source.text.as_str();
        if text[start..].starts_with(['[', '-']) {
            return start;
        }
        let before = text[..start].trim_end_matches([' ', '\t']);
        if before.ends_with('-') { before.len() - 1 } else { start }
    }

    /// Returns the span of a scalar from its first to its last character. The parser's span starts at tag and
    /// anchor, and includes trailing spaces and comments.
    fn scalar_span(
        &mut self,
        span: Span,
        style: ScalarStyle,
        is_empty: bool,
        properties: &NodeProperties,
    ) -> Range<usize> {
        let span = self.span(span);
        let text = &self.source.text;
        let start = properties.content.unwrap_or(span.start).clamp(span.start, span.end);
        let length = match style {
            // An empty node has the span of its neighbour.
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

/// Finds a directive other than `%YAML` and `%TAG`. The parser ignores it, so a misspelt one would go
/// unnoticed.
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

/// Returns the map state after a key.
fn state_after_key(
    node: DocumentNode,
    has_merge: bool,
    source: &Arc<SourceText>,
) -> Result<MapState, Diagnostic> {
    match node.value {
        NodeValue::String(text) if text == "<<" && node.plain => {
            if !has_merge {
                return Ok(MapState::MergeValue);
            }
            let mistake = Diagnostic::new("`<<` is written twice").at(SourceSpan::new(source, node.span));
            Err(mistake.help("merge several mappings with `<<: [*first, *second]`"))
        }
        NodeValue::String(text) => Ok(MapState::Value(MapKey { text, span: node.span })),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::List(_)
        | NodeValue::Map(_) => {
            let mistake = Diagnostic::new(format!("a key must be text, found {}", node.describe()));
            let help = node.as_quoted(source).map(|quoted| format!("write {quoted} to mean text"));
            Err(Diagnostic { help, ..mistake.at(node.place(source)) })
        }
    }
}

/// Returns the approximate size of a copy of a node, in bytes.
fn weight(node: &DocumentNode) -> usize {
    const NODE_BYTES: usize = 64;
    NODE_BYTES
        + match &node.value {
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => 0,
            NodeValue::String(text) => text.len(),
            NodeValue::List(nodes) => nodes.iter().map(weight).sum(),
            NodeValue::Map(entries) => {
                entries.iter().map(|entry| NODE_BYTES + entry.key.text.len() + weight(&entry.value)).sum()
            }
        }
}

/// Returns the nesting depth of a node, including itself.
fn height(node: &DocumentNode) -> usize {
    match &node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => 0,
        NodeValue::List(nodes) => 1 + nodes.iter().map(height).max().unwrap_or(0),
        NodeValue::Map(entries) => 1 + entries.iter().map(|entry| height(&entry.value)).max().unwrap_or(0),
    }
}

/// Tag and anchor before a node.
struct NodeProperties {
    tag: Range<usize>,
    /// Start of the node itself, if the text does not end before.
    content: Option<usize>,
}

impl NodeProperties {
    fn read(text: &str, start: usize) -> Self {
        let mut properties = NodeProperties { tag: start..start, content: None };
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

/// Returns the end of the closing bracket of a collection, skipping a comma, spaces and comments.
fn closing_bracket_end(text: &str, mut at: usize) -> usize {
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

/// Returns true for YAML white space. Other Unicode spaces are text.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// Returns the length of the leading single-quoted scalar.
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

/// Returns the length of the leading double-quoted scalar.
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

/// Converts the parser's character positions to byte offsets.
///
/// Consecutive positions are close together, so walking from the last one is cheap.
struct CharOffsets<'s> {
    text: &'s str,
    is_ascii: bool,
    character: usize,
    byte: usize,
}

impl<'s> CharOffsets<'s> {
    fn new(text: &'s str) -> Self {
        CharOffsets { text, is_ascii: text.is_ascii(), character: 0, byte: 0 }
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
