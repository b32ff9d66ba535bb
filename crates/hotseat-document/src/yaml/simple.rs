//! Reads the common form of YAML: block mappings and lists, scalars and flow collections of one line.
//!
//! Most suites have this form, and reading it here takes a fraction of the time of the full parser. Anything
//! else is left to that parser, in particular everything wrong. So trees and errors do not depend on this file.

use super::scalar::{self, TagType};
use crate::duplicates::find_duplicates;
use crate::node::{DocumentNode, MapEntry, MapKey, NodeValue};

/// Maximum nesting depth of this form.
const MAX_SIMPLE_DEPTH: usize = 32;
/// Maximum length of a key of this form. Far longer keys have rules of their own.
const MAX_KEY_BYTES: usize = 100;

/// Parses a document, or returns `None` if it does not have the common form.
pub(super) fn parse_document(text: &str) -> Option<DocumentNode> {
    // Without an early end, all bytes are compared at once.
    let has_control = text.bytes().fold(false, |any, byte| any | ((byte < b' ') & (byte != b'\n')));
    if has_control || text.contains('\u{FEFF}') {
        return None;
    }
    let mut reader = SimpleReader { text, next_start: 0, ahead: None };
    reader.advance();
    if reader.ahead.is_some_and(|line| line.column == 0 && &text[line.start..line.end] == "---") {
        reader.advance();
    }
    let line = reader.ahead?;
    key_length(reader.rest(line))?;
    reader.advance();
    let node = reader.map(line, 0)?;
    reader.ahead.is_none().then_some(node)
}

/// Rest of a line, from the start of a node.
#[derive(Clone, Copy)]
struct LineRest {
    /// Offset of the node.
    start: usize,
    /// Column of the node, in bytes from 0. Only spaces and dashes are before it.
    column: usize,
    /// End of the line without trailing spaces.
    end: usize,
}

struct SimpleReader<'t> {
    text: &'t str,
    /// Offset of the line after `ahead`.
    next_start: usize,
    /// The next line, without empty lines and comments.
    ahead: Option<LineRest>,
}

impl<'t> SimpleReader<'t> {
    /// Moves to the next line with content.
    fn advance(&mut self) {
        let bytes = self.text.as_bytes();
        self.ahead = None;
        while self.ahead.is_none() && self.next_start < bytes.len() {
            let first = self.next_start;
            let break_at = memchr::memchr(b'\n', &bytes[first..]).map(|length| first + length);
            let mut end = break_at.unwrap_or(bytes.len());
            self.next_start = end + 1;
            let column = bytes[first..end].iter().take_while(|&&byte| byte == b' ').count();
            let start = first + column;
            if start == end || bytes[start] == b'#' {
                continue;
            }
            while bytes[end - 1] == b' ' {
                end -= 1;
            }
            self.ahead = Some(LineRest { start, column, end });
        }
    }

    fn rest(&self, line: LineRest) -> &'t str {
        &self.text[line.start..line.end]
    }

    /// Returns the line ahead if it continues a collection in this column.
    fn take_entry(&mut self, column: usize, is_entry: impl Fn(&str) -> bool) -> Option<LineRest> {
        let line = self.ahead.filter(|line| line.column == column && is_entry(self.rest(*line)))?;
        self.advance();
        Some(line)
    }

    /// Reads a node that starts at `line`, which has been taken.
    fn block(&mut self, line: LineRest, depth: usize) -> Option<DocumentNode> {
        let rest = self.rest(line);
        if depth > MAX_SIMPLE_DEPTH {
            None
        } else if is_list_entry(rest) {
            self.list(line, depth)
        } else if key_length(rest).is_some() {
            self.map(line, depth)
        } else {
            self.inline(line.start, line.end, depth)
        }
    }

    fn map(&mut self, first: LineRest, depth: usize) -> Option<DocumentNode> {
        let mut entries: Vec<MapEntry> = Vec::new();
        let (mut line, mut end) = (first, first.start);
        loop {
            let length = key_length(self.rest(line))?;
            let key = self.plain(line.start, line.start + length)?;
            let NodeValue::String(text) = key.value else { return None };
            let value_start = self.skip_spaces(line.start + length + 1, line.end);
            let value = match value_start < line.end {
                true => self.inline(value_start, line.end, depth + 1)?,
                false => {
                    let below = self.ahead?;
                    let is_list_beside = below.column == first.column && is_list_beside_key(self.rest(below));
                    if below.column <= first.column && !is_list_beside {
                        return None;
                    }
                    self.advance();
                    self.block(below, depth + 1)?
                }
            };
            end = end.max(value.span.end);
            entries.push(MapEntry { key: MapKey { text, span: key.span }, value });
            match self.take_entry(first.column, |rest| key_length(rest).is_some()) {
                Some(next) => line = next,
                None => break,
            }
        }
        self.finish(first, end, map_value(entries)?)
    }

    fn list(&mut self, first: LineRest, depth: usize) -> Option<DocumentNode> {
        let mut nodes: Vec<DocumentNode> = Vec::new();
        let (mut line, mut end) = (first, first.start);
        loop {
            let start = self.skip_spaces(line.start + 1, line.end);
            let entry = match start < line.end {
                true => LineRest { start, column: line.column + start - line.start, end: line.end },
                false => {
                    let below = self.ahead.filter(|below| below.column > first.column)?;
                    self.advance();
                    below
                }
            };
            let node = self.block(entry, depth + 1)?;
            end = end.max(node.span.end);
            nodes.push(node);
            match self.take_entry(first.column, is_list_entry) {
                Some(next) => line = next,
                None => break,
            }
        }
        self.finish(first, end, NodeValue::List(nodes))
    }

    /// Completes a block collection. A deeper line after it continues a scalar, or is wrong.
    fn finish(&self, first: LineRest, end: usize, value: NodeValue) -> Option<DocumentNode> {
        let is_complete = self.ahead.is_none_or(|line| line.column <= first.column);
        is_complete.then_some(DocumentNode { value, span: first.start..end, plain: false })
    }

    /// Reads a scalar or a flow collection that takes the rest of a line.
    fn inline(&self, start: usize, end: usize, depth: usize) -> Option<DocumentNode> {
        if !matches!(self.text.as_bytes()[start], b'"' | b'\'' | b'{' | b'[') {
            let text = &self.text[start..end];
            let is_end = |pair: &[u8]| matches!(pair, b": " | b" #");
            let ends_early = text.as_bytes().windows(2).any(is_end) || text.ends_with(':');
            return if ends_early { None } else { self.plain(start, end) };
        }
        self.flow(start, end, depth).filter(|node| node.span.end == end)
    }

    /// Reads a node in a flow collection.
    fn flow(&self, start: usize, end: usize, depth: usize) -> Option<DocumentNode> {
        match *self.text.as_bytes().get(start)? {
            b'"' | b'\'' => {
                let (text, length) = quoted(&self.text[start..end])?;
                let value = NodeValue::String(text);
                Some(DocumentNode { value, span: start..start + length, plain: false })
            }
            b'{' | b'[' if depth > MAX_SIMPLE_DEPTH => None,
            b'{' => self.flow_map(start, end, depth + 1),
            b'[' => self.flow_list(start, end, depth + 1),
            _ => {
                let text = &self.text[start..end];
                let length = text.find([',', ']', '}', '[', '{', ':', '#'])?;
                self.plain(start, start + text[..length].trim_end_matches(' ').len())
            }
        }
    }

    fn flow_map(&self, start: usize, end: usize, depth: usize) -> Option<DocumentNode> {
        let mut entries: Vec<MapEntry> = Vec::new();
        let mut at = start;
        loop {
            let key_start = self.skip_spaces(at + 1, end);
            let key_end = key_start + key_length(&self.text[key_start..end])?;
            let key = self.plain(key_start, key_end)?;
            let NodeValue::String(text) = key.value else { return None };
            let value = self.flow(self.skip_spaces(key_end + 1, end), end, depth)?;
            at = self.skip_spaces(value.span.end, end);
            entries.push(MapEntry { key: MapKey { text, span: key.span }, value });
            match *self.text.as_bytes()[..end].get(at)? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        Some(DocumentNode { value: map_value(entries)?, span: start..at + 1, plain: false })
    }

    fn flow_list(&self, start: usize, end: usize, depth: usize) -> Option<DocumentNode> {
        let mut nodes = Vec::new();
        let mut at = start;
        loop {
            let node = self.flow(self.skip_spaces(at + 1, end), end, depth)?;
            at = self.skip_spaces(node.span.end, end);
            nodes.push(node);
            match *self.text.as_bytes()[..end].get(at)? {
                b',' => {}
                b']' => break,
                _ => return None,
            }
        }
        Some(DocumentNode { value: NodeValue::List(nodes), span: start..at + 1, plain: false })
    }

    /// Reads an unquoted scalar.
    fn plain(&self, start: usize, end: usize) -> Option<DocumentNode> {
        let text = &self.text[start..end];
        let is_start = match *text.as_bytes() {
            [] => false,
            [b'-', next, ..] => next.is_ascii_alphanumeric(),
            [first, ..] => {
                first >= 0x80 || first.is_ascii_alphanumeric() || b"^$/\\(+._=~;<".contains(&first)
            }
        };
        let value =
            is_start.then(|| scalar::resolve_scalar(text.to_owned(), true, TagType::Untagged))?.ok()?;
        Some(DocumentNode { value, span: start..end, plain: true })
    }

    fn skip_spaces(&self, at: usize, end: usize) -> usize {
        let bytes = &self.text.as_bytes()[..end];
        bytes.iter().skip(at).position(|&byte| byte != b' ').map_or(end, |length| at + length)
    }
}

/// True if a line is an entry of a list.
fn is_list_entry(rest: &str) -> bool {
    rest == "-" || rest.starts_with("- ")
}

/// True if a line starts a list in the column of its key. The full parser locates some of these lists at their
/// first entry: those with a dash there, or with an entry on the next line.
fn is_list_beside_key(rest: &str) -> bool {
    rest.strip_prefix("- ").is_some_and(|entry| !entry.trim_start_matches(' ').starts_with('-'))
}

/// Returns the length of a key that a colon follows, if the text starts with one.
fn key_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = bytes.iter().position(|&byte| !is_part(byte))?;
    let is_key = (1..=MAX_KEY_BYTES).contains(&length)
        && (bytes[0].is_ascii_alphabetic() || bytes[0] == b'_')
        && bytes[length] == b':'
        && bytes.get(length + 1).is_none_or(|&byte| byte == b' ');
    is_key.then_some(length)
}

/// Returns the value of a mapping, unless a key is repeated.
fn map_value(entries: Vec<MapEntry>) -> Option<NodeValue> {
    find_duplicates(&entries).is_empty().then_some(NodeValue::Map(entries))
}

/// Reads a leading quoted scalar. Returns its text and its length with quotes.
fn quoted(text: &str) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let quote = bytes[0];
    let mut content = String::new();
    let mut from = 1;
    loop {
        let at = from + memchr::memchr2(quote, b'\\', &bytes[from..])?;
        let next = bytes.get(at + 1).copied();
        if from == 1 && bytes[at] == quote && (quote == b'"' || next != Some(b'\'')) {
            return Some((text[1..at].to_owned(), at + 1));
        }
        content.push_str(&text[from..at]);
        match (bytes[at], next) {
            // A single quote is escaped by another one, and a backslash means itself beside it.
            (b'\'', Some(b'\'')) => content.push('\''),
            (b'\\', _) if quote == b'\'' => {
                content.push('\\');
                from = at + 1;
                continue;
            }
            (b'\\', Some(b'"')) => content.push('"'),
            (b'\\', Some(b'\\')) => content.push('\\'),
            (b'\\', Some(b'n')) => content.push('\n'),
            (b'\\', Some(b't')) => content.push('\t'),
            (b'\\', _) => return None,
            _ => return Some((content, at + 1)),
        }
        from = at + 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::build;
    use super::*;
    use crate::place::SourceText;

    const CASE: &str = "---
# A comment.
name: order 17
tags: [slow, \"a b\", 2]
turns:
  - user: \"Where is \\\"it\\\"?\\n\"
    assert:
      tools:
        require:
          - name: lookup
            args_match: { id: ^A-17$, quantity: \"2\" , nested: {a: [1, two]} }
      text:

        must_match: 'it''s \\? 1.5'
  -
    user: Grüße aus Köln, http://a.b/c?d=e#f
limits:
- 5
- true
- - a
  - b: null
    c: ~x
";

    fn full(text: &str) -> Result<DocumentNode, String> {
        build::parse_document(&SourceText::new("a.yaml", text, 1)).map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn reads_common_documents() {
        for text in [CASE, "a: 1", "a:\n- b\n- c\nd: e\n", "a:\n  b"] {
            assert_eq!(parse_document(text).ok_or("not simple".to_string()), full(text), "{text}");
        }
    }

    #[test]
    fn leaves_the_rest_to_the_full_parser() {
        for text in [
            "",
            "a:",
            "a: |\n  b",
            "a: b\n  c",
            "a: b # c",
            "a: &x b",
            "a: {b: c,\n  d: e}",
            "a: [x: y]",
            "a: b: c",
            "a: 1\na: 2",
            "a: \"\\x41\"",
            "a: b\r\n",
            "a:\tb",
            "? a\n: b",
            "a: {b}",
            "a: [b,]",
            "- a",
            "a\n",
            "a: 1\n b: 2",
            "a:\n    b: 1\n  c: 2",
            "<<: {a: b}",
            "true: 1",
            "a: !!str 1",
            "a: .inf",
            "a: 'b",
            "a: [b",
            "a: b\n---\nc: d",
        ] {
            assert_eq!(parse_document(text), None, "{text}");
        }
    }

    /// Pieces of lines: content after an indentation.
    const PIECES: [&str; 48] = [
        "a:",
        "b:",
        "c: 1",
        "d: x y",
        "- ",
        "-",
        "- a: 1",
        "- - z",
        "- [",
        "]",
        "{",
        "}",
        "e: {f: 1, g: [h, 2]}",
        "k: 'x''y'",
        "l: \"q\\\"r\"",
        "# note",
        "",
        " ",
        "m: n # o",
        "p: q: r",
        "s: -1",
        "t: - u",
        "v: ~",
        "w: null",
        "x: \"a",
        "y: a'b",
        "z: [a b, c]",
        "a.b: {}",
        "a-b: []",
        "...",
        "---",
        "key with spaces: 1",
        "\"q\": 1",
        "text",
        "- text",
        "- 'q': 1",
        "- {a: b}",
        "n: [a, ]",
        "o: [a:b]",
        "o: {a: b c}",
        "p: http://x",
        "q: a: ",
        "r: |",
        "s: >-",
        "u: *x",
        "v: é ü",
        "w: %a",
        "x: a:",
    ];

    fn any_text() -> impl Strategy<Value = String> {
        let line = (0_usize..4, prop::sample::select(&PIECES[..]), 0_usize..2).prop_map(
            |(indent, piece, spaces)| format!("{}{piece}{}\n", "  ".repeat(indent), " ".repeat(spaces)),
        );
        prop::collection::vec(line, 1..7).prop_map(|lines| lines.concat())
    }

    /// A common document with some lines of another indentation, and some characters replaced.
    fn any_changed_case() -> impl Strategy<Value = String> {
        let changes =
            prop::collection::vec((0..CASE.len(), prop::sample::select(&b" \n-:#'\"{}[],\\a1&|"[..])), 0..4);
        changes.prop_map(|changes| {
            let mut bytes = CASE.as_bytes().to_vec();
            changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 20_000, ..ProptestConfig::default() })]

        #[test]
        fn agrees_with_the_full_parser(text in prop_oneof![any_text(), any_changed_case()]) {
            if let Some(node) = parse_document(&text) {
                prop_assert_eq!(Ok(node), full(&text), "{}", &text);
            }
        }
    }
}
