//! Parses the text of one JSON value into a tree.

use std::sync::Arc;

use super::text::LoneSurrogates;
use super::{number, text};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::duplicates::{duplicate_key_error, find_duplicates};
use crate::excerpt::shorten;
use crate::node::{DocumentNode, MapEntry, MapKey, NodeValue};
use crate::place::{SourceSpan, SourceText};
use crate::stream::MAX_DEPTH;

pub(super) fn parse_document(
    source: &Arc<SourceText>,
    lone_surrogates: LoneSurrogates,
) -> Result<DocumentNode, Diagnostics> {
    let errors = Diagnostics::new();
    let mut builder = JsonParser { source, text: &source.text, lone_surrogates, at: 0, token_end: 0, errors };
    match builder.document() {
        Ok(node) if builder.errors.is_empty() => Ok(node),
        Ok(_) => Err(builder.into_errors()),
        Err(mistake) => {
            builder.errors.push(mistake);
            Err(builder.into_errors())
        }
    }
}

struct JsonParser<'s> {
    source: &'s Arc<SourceText>,
    text: &'s str,
    lone_surrogates: LoneSurrogates,
    /// Offset of the next character.
    at: usize,
    /// End of the last token.
    token_end: usize,
    /// Errors that do not end the parse; others are returned as `Err`.
    errors: Diagnostics,
}

impl JsonParser<'_> {
    fn into_errors(mut self) -> Diagnostics {
        self.errors.sort_by_place();
        self.errors
    }

    fn document(&mut self) -> Result<DocumentNode, Diagnostic> {
        self.skip_blank()?;
        if self.at == self.text.len() {
            return Ok(DocumentNode { value: NodeValue::Null, span: 0..0, plain: false });
        }
        let node = self.value(0)?;
        self.skip_blank()?;
        if self.at < self.text.len() {
            let (found, span) = self.describe_found();
            return Err(self.error(format!("expected the end of the value, found {found}"), span));
        }
        Ok(node)
    }

    fn value(&mut self, depth: usize) -> Result<DocumentNode, Diagnostic> {
        let start = self.at;
        let (value, plain) = match self.peek() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => {
                let message = format!("this is nested more than {MAX_DEPTH} levels deep");
                return Err(self.error(message, start..start + 1));
            }
            Some(b'{') => (self.map(depth + 1)?, false),
            Some(b'[') => (self.list(depth + 1)?, false),
            Some(b'"') => (NodeValue::String(self.string()?), false),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => {
                let word = self.word();
                let number = number::parse_number(&self.text[word.clone()]).map_err(|(message, help)| {
                    let mistake = self.error(message, word.clone());
                    Diagnostic { help, ..mistake }
                })?;
                self.token_to(word.end);
                (NodeValue::Number(number), true)
            }
            _ => (self.literal()?, true),
        };
        Ok(DocumentNode { value, span: start..self.token_end, plain })
    }

    fn literal(&mut self) -> Result<NodeValue, Diagnostic> {
        let word = self.word();
        let value = match &self.text[word.clone()] {
            "null" => NodeValue::Null,
            "true" => NodeValue::Bool(true),
            "false" => NodeValue::Bool(false),
            other => {
                let advice = match other {
                    _ if other.eq_ignore_ascii_case("true") || other.eq_ignore_ascii_case("false") => {
                        Some("`true` and `false` are written in lower case".to_owned())
                    }
                    "None" | "undefined" | "nil" | "NULL" | "Null" => Some("write `null`".to_owned()),
                    _ if other.starts_with(char::is_alphabetic) => {
                        Some(format!("write {:?} to mean text", shorten(other)))
                    }
                    _ => None,
                };
                let (found, span) = self.describe_found();
                let mistake = self.error(format!("expected a value, found {found}"), span);
                return Err(Diagnostic { help: advice.or(mistake.help.clone()), ..mistake });
            }
        };
        self.token_to(word.end);
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<NodeValue, Diagnostic> {
        let open = self.at;
        self.token_to(open + 1);
        let mut nodes = Vec::new();
        loop {
            self.skip_blank()?;
            if nodes.is_empty() && self.take(b']') {
                return Ok(NodeValue::List(nodes));
            }
            self.expect_entry(open, b']', "a value")?;
            nodes.push(self.value(depth)?);
            self.skip_blank()?;
            if self.take(b']') {
                return Ok(NodeValue::List(nodes));
            }
            self.expect_comma(open, ']')?;
        }
    }

    fn map(&mut self, depth: usize) -> Result<NodeValue, Diagnostic> {
        let open = self.at;
        self.token_to(open + 1);
        let mut entries: Vec<MapEntry> = Vec::new();
        loop {
            self.skip_blank()?;
            if entries.is_empty() && self.take(b'}') {
                break;
            }
            self.expect_entry(open, b'}', "a key")?;
            let start = self.at;
            if self.peek() != Some(b'"') {
                let (found, span) = self.describe_found();
                let mistake = self.error(format!("expected a key, found {found}"), span);
                return Err(mistake.help("keys are written in double quotes"));
            }
            let key = MapKey { text: self.string()?, span: start..self.token_end };
            self.skip_blank()?;
            if !self.take(b':') {
                let key = shorten(&key.text);
                return Err(self.missing_token(format!("`:` is missing after the key `{key}`"), open));
            }
            self.skip_blank()?;
            if matches!(self.peek(), None | Some(b',' | b'}' | b']')) {
                let key = shorten(&key.text);
                return Err(self.missing_token(format!("the key `{key}` has no value"), open));
            }
            let value = self.value(depth)?;
            entries.push(MapEntry { key, value });
            self.skip_blank()?;
            if self.take(b'}') {
                break;
            }
            self.expect_comma(open, '}')?;
        }
        for [first, second] in find_duplicates(&entries) {
            self.errors.push(duplicate_key_error(&entries[first].key, &entries[second].key, self.source));
        }
        Ok(NodeValue::Map(entries))
    }

    /// Checks that another entry may start here: neither end of input nor a closing bracket after a comma.
    fn expect_entry(&mut self, open: usize, close: u8, what: &str) -> Result<(), Diagnostic> {
        match self.peek() {
            None => Err(self.missing_token(format!("`{}` is missing", char::from(close)), open)),
            Some(byte) if byte == close => {
                let comma = self.token_end - 1..self.token_end;
                let mistake = self.error(format!("after this comma {what} is missing"), comma);
                Err(mistake.help("remove the comma after the last entry"))
            }
            Some(_) => Ok(()),
        }
    }

    fn expect_comma(&mut self, open: usize, close: char) -> Result<(), Diagnostic> {
        match self.take(b',') {
            true => Ok(()),
            false => Err(self.missing_token(format!("`,` or `{close}` is missing"), open)),
        }
    }

    /// Error for a missing token, located after the last token, or at the unexpected token on the same line.
    /// Names the opening bracket.
    fn missing_token(&self, message: String, open: usize) -> Diagnostic {
        let on_this_line = !self.text[self.token_end..self.at].contains('\n') && self.at < self.text.len();
        let place = match on_this_line {
            true => self.describe_found().1,
            false => self.token_end..self.token_end,
        };
        let mistake = self.error(message, place);
        match self.source.line_at(open) == self.source.line_at(self.token_end) {
            true => mistake,
            false => mistake.with_related(SourceSpan::new(self.source, open..open + 1), "opened here"),
        }
    }

    fn string(&mut self) -> Result<String, Diagnostic> {
        let start = self.at;
        let Some(length) = text::string_length(&self.text[start..]) else {
            let line = self.source.line_span(start);
            let mistake =
                self.error("this string has no closing quote".to_owned(), start..line.end.max(start + 1));
            return Err(mistake.help("write a line break in a string as `\\n`"));
        };
        let inner = start + 1..start + length - 1;
        let text = text::unescape(&self.text[inner.clone()], self.lone_surrogates).map_err(|broken| {
            let span = inner.start + broken.span.start..inner.start + broken.span.end;
            let mistake = self.error(broken.message.to_owned(), span);
            Diagnostic { help: broken.help.map(str::to_owned), ..mistake }
        })?;
        self.token_to(start + length);
        Ok(text)
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), Diagnostic> {
        loop {
            let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            self.at += self.text.as_bytes()[self.at..].iter().take_while(is_space).count();
            // Comments and byte order marks are rare.
            if !matches!(self.peek(), Some(b'/' | 0xEF)) {
                return Ok(());
            }
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    return Err(self.error("this comment has no end".to_owned(), self.at..self.at + 2));
                };
                self.at += 2 + end + 2;
            } else if rest.starts_with('\u{FEFF}') {
                self.at += '\u{FEFF}'.len_utf8();
            } else {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.token_to(self.at + 1);
        }
        there
    }

    fn token_to(&mut self, end: usize) {
        (self.at, self.token_end) = (end, end);
    }

    /// Returns the span up to the next white space or punctuation.
    fn word(&self) -> std::ops::Range<usize> {
        let is_end = |character: char| character.is_whitespace() || ",:[]{}\"/".contains(character);
        let rest = &self.text[self.at..];
        self.at..self.at + rest.find(is_end).unwrap_or(rest.len())
    }

    /// Describes the unexpected text at the current position, with its span.
    fn describe_found(&self) -> (String, std::ops::Range<usize>) {
        let word = self.word();
        match self.text[self.at..].chars().next() {
            None => ("the end".to_owned(), self.at..self.at),
            Some('"') => {
                let length = text::string_length(&self.text[self.at..]).unwrap_or(1);
                ("a text".to_owned(), self.at..self.at + length)
            }
            Some(character) if word.is_empty() => {
                (format!("`{character}`"), self.at..self.at + character.len_utf8())
            }
            Some(_) => (format!("`{}`", shorten(&self.text[word.clone()])), word),
        }
    }

    fn error(&self, message: String, span: std::ops::Range<usize>) -> Diagnostic {
        let mistake = Diagnostic::new(message).at(SourceSpan::new(self.source, span.clone()));
        match self.text[span.start..].chars().next() {
            Some('\'') => mistake.help("write strings and keys in double quotes"),
            Some('#') => mistake.help("a comment starts with `//`"),
            _ => mistake,
        }
    }
}
