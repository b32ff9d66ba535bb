//! From the text of one value to a tree.

use std::sync::Arc;

use super::{number, text};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::duplicates::{duplicates, written_twice};
use crate::node::{Entry, Key, Node, Value, shorten};
use crate::place::{Place, Source};
use crate::stream::DEEPEST;

pub(super) fn build(source: &Arc<Source>) -> Result<Node, Diagnostics> {
    let mut builder = Builder { source, text: &source.text, at: 0, behind: 0, mistakes: Diagnostics::new() };
    match builder.document() {
        Ok(node) if builder.mistakes.is_empty() => Ok(node),
        Ok(_) => Err(builder.finish()),
        Err(mistake) => {
            builder.mistakes.push(mistake);
            Err(builder.finish())
        }
    }
}

struct Builder<'s> {
    source: &'s Arc<Source>,
    text: &'s str,
    /// What is read next.
    at: usize,
    /// Where the last token ended.
    behind: usize,
    /// What can be reported together. What cannot is an `Err` and ends the parse.
    mistakes: Diagnostics,
}

impl Builder<'_> {
    fn finish(mut self) -> Diagnostics {
        self.mistakes.sort_by_place();
        self.mistakes
    }

    fn document(&mut self) -> Result<Node, Diagnostic> {
        self.skip_blank()?;
        if self.at == self.text.len() {
            return Ok(Node { value: Value::Null, span: 0..0, plain: false });
        }
        let node = self.value(0)?;
        self.skip_blank()?;
        if self.at < self.text.len() {
            let (found, span) = self.found();
            return Err(self.mistake(format!("expected one value, and behind it stands {found}"), span));
        }
        Ok(node)
    }

    fn value(&mut self, depth: usize) -> Result<Node, Diagnostic> {
        let start = self.at;
        let (value, plain) = match self.peek() {
            Some(b'{' | b'[') if depth == DEEPEST => {
                let message = format!("this is nested more than {DEEPEST} levels deep");
                return Err(self.mistake(message, start..start + 1));
            }
            Some(b'{') => (self.map(depth + 1)?, false),
            Some(b'[') => (self.list(depth + 1)?, false),
            Some(b'"') => (Value::String(self.string()?), false),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => {
                let word = self.word();
                let number = number::number(&self.text[word.clone()]).map_err(|(message, help)| {
                    let mistake = self.mistake(message, word.clone());
                    Diagnostic { help, ..mistake }
                })?;
                self.token_to(word.end);
                (Value::Number(number), true)
            }
            _ => (self.literal()?, true),
        };
        Ok(Node { value, span: start..self.behind, plain })
    }

    fn literal(&mut self) -> Result<Value, Diagnostic> {
        let word = self.word();
        let value = match &self.text[word.clone()] {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
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
                let (found, span) = self.found();
                let mistake = self.mistake(format!("expected a value, found {found}"), span);
                return Err(Diagnostic { help: advice.or(mistake.help.clone()), ..mistake });
            }
        };
        self.token_to(word.end);
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Diagnostic> {
        let open = self.at;
        self.token_to(open + 1);
        let mut nodes = Vec::new();
        loop {
            self.skip_blank()?;
            if nodes.is_empty() && self.take(b']') {
                return Ok(Value::List(nodes));
            }
            self.expect_entry(open, b']', "a value")?;
            nodes.push(self.value(depth)?);
            self.skip_blank()?;
            if self.take(b']') {
                return Ok(Value::List(nodes));
            }
            self.expect_comma(open, ']')?;
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Diagnostic> {
        let open = self.at;
        self.token_to(open + 1);
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            self.skip_blank()?;
            if entries.is_empty() && self.take(b'}') {
                break;
            }
            self.expect_entry(open, b'}', "a key")?;
            let start = self.at;
            if self.peek() != Some(b'"') {
                let (found, span) = self.found();
                let mistake = self.mistake(format!("expected a key, found {found}"), span);
                return Err(mistake.help("keys are written in double quotes"));
            }
            let key = Key { text: self.string()?, span: start..self.behind };
            self.skip_blank()?;
            if !self.take(b':') {
                let key = shorten(&key.text);
                return Err(self.missing(format!("`:` is missing behind the key `{key}`"), open));
            }
            self.skip_blank()?;
            if matches!(self.peek(), None | Some(b',' | b'}' | b']')) {
                let key = shorten(&key.text);
                return Err(self.missing(format!("the key `{key}` has no value"), open));
            }
            let value = self.value(depth)?;
            entries.push(Entry { key, value });
            self.skip_blank()?;
            if self.take(b'}') {
                break;
            }
            self.expect_comma(open, '}')?;
        }
        for [first, second] in duplicates(&entries) {
            self.mistakes.push(written_twice(&entries[first].key, &entries[second].key, self.source));
        }
        Ok(Value::Map(entries))
    }

    /// That another entry may begin here: neither the end of the text, nor the end of a collection behind a comma.
    fn expect_entry(&mut self, open: usize, close: u8, what: &str) -> Result<(), Diagnostic> {
        match self.peek() {
            None => Err(self.missing(format!("`{}` is missing", char::from(close)), open)),
            Some(byte) if byte == close => {
                let comma = self.behind - 1..self.behind;
                let mistake = self.mistake(format!("behind this comma {what} is missing"), comma);
                Err(mistake.help("behind the last entry there is no comma"))
            }
            Some(_) => Ok(()),
        }
    }

    fn expect_comma(&mut self, open: usize, close: char) -> Result<(), Diagnostic> {
        match self.take(b',') {
            true => Ok(()),
            false => Err(self.missing(format!("`,` or `{close}` is missing"), open)),
        }
    }

    /// Something that is missing: behind what was read, and where that was opened. What stands there instead is
    /// pointed at if it stands on the same line.
    fn missing(&self, message: String, open: usize) -> Diagnostic {
        let on_this_line = !self.text[self.behind..self.at].contains('\n') && self.at < self.text.len();
        let place = match on_this_line {
            true => self.found().1,
            false => self.behind..self.behind,
        };
        let mistake = self.mistake(message, place);
        match self.source.line_at(open) == self.source.line_at(self.behind) {
            true => mistake,
            false => mistake.also(Place::new(self.source, open..open + 1), "opened here"),
        }
    }

    fn string(&mut self) -> Result<String, Diagnostic> {
        let start = self.at;
        let Some(length) = text::length(&self.text[start..]) else {
            let line = self.source.line_span(start);
            let mistake =
                self.mistake("this text has no closing quote".to_owned(), start..line.end.max(start + 1));
            return Err(mistake.help("a line end within a text is written `\\n`"));
        };
        let inner = start + 1..start + length - 1;
        let text = text::unescape(&self.text[inner.clone()]).map_err(|broken| {
            let span = inner.start + broken.span.start..inner.start + broken.span.end;
            let mistake = self.mistake(broken.message.to_owned(), span);
            Diagnostic { help: broken.help.map(str::to_owned), ..mistake }
        })?;
        self.token_to(start + length);
        Ok(text)
    }

    /// Skips space and comments.
    fn skip_blank(&mut self) -> Result<(), Diagnostic> {
        loop {
            let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\r', '\n', '\u{FEFF}']);
            let start = self.text.len() - rest.len();
            if rest.starts_with("//") {
                self.at = start + rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    return Err(self.mistake("this comment has no end".to_owned(), start..start + 2));
                };
                self.at = start + 2 + end + 2;
            } else {
                self.at = start;
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
        (self.at, self.behind) = (end, end);
    }

    /// The word that begins here: everything up to space or punctuation.
    fn word(&self) -> std::ops::Range<usize> {
        let is_end = |character: char| character.is_whitespace() || ",:[]{}\"/".contains(character);
        let rest = &self.text[self.at..];
        self.at..self.at + rest.find(is_end).unwrap_or(rest.len())
    }

    /// What stands here instead of what was expected, in words, and where it stands.
    fn found(&self) -> (String, std::ops::Range<usize>) {
        let word = self.word();
        match self.text[self.at..].chars().next() {
            None => ("the end".to_owned(), self.at..self.at),
            Some('"') => {
                let length = text::length(&self.text[self.at..]).unwrap_or(1);
                ("a text".to_owned(), self.at..self.at + length)
            }
            Some(character) if word.is_empty() => {
                (format!("`{character}`"), self.at..self.at + character.len_utf8())
            }
            Some(_) => (format!("`{}`", shorten(&self.text[word.clone()])), word),
        }
    }

    fn mistake(&self, message: String, span: std::ops::Range<usize>) -> Diagnostic {
        let mistake = Diagnostic::new(message).at(Place::new(self.source, span.clone()));
        match self.text[span.start..].chars().next() {
            Some('\'') => mistake.help("texts and keys are written in double quotes"),
            Some('#') => mistake.help("a comment begins with `//`"),
            _ => mistake,
        }
    }
}
