//! Locations in source files.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::position_index::PositionIndex;
use super::secrets::mask_literal_secrets;

/// Text of a file, or of one document of a file with several.
pub struct SourceText {
    /// Display path of the file.
    pub name: Arc<str>,
    /// The text, without a byte order mark.
    pub text: String,
    /// Line of the file at which the text starts, counted from 1.
    pub first_line: u32,
    /// Column at which the text starts, counted in characters from 1.
    pub first_column: u32,
    /// The location of all spans of a generated text, which nobody can look up.
    generated_at: Option<SourceSpan>,
    lines: PositionIndex,
}

impl SourceText {
    /// Creates a source that starts on `first_line`. A leading byte order mark is dropped, so it does not
    /// count as a column.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<String>, first_line: u32) -> Arc<Self> {
        SourceText::starting_at(name, text, first_line, 1)
    }

    /// Creates a source that does not start at the beginning of its line.
    pub fn starting_at(
        name: impl Into<Arc<str>>,
        text: impl Into<String>,
        first_line: u32,
        first_column: u32,
    ) -> Arc<Self> {
        let mut text = text.into();
        if text.starts_with('\u{FEFF}') {
            text.drain(..'\u{FEFF}'.len_utf8());
        }
        Arc::new(SourceText {
            name: name.into(),
            text,
            first_line,
            first_column,
            generated_at: None,
            lines: PositionIndex::default(),
        })
    }

    /// Creates a source whose text was generated for a declaration in a program. All its spans are at that place.
    pub fn generated(text: String, place: SourceSpan) -> Arc<Self> {
        Arc::new(SourceText {
            name: place.source.name.clone(),
            text,
            first_line: place.line(),
            first_column: 1,
            generated_at: Some(place),
            lines: PositionIndex::default(),
        })
    }

    /// Returns the source with a text of the same length in bytes, if the text changes.
    pub fn map_text<'a>(self: &'a Arc<Self>, change: impl FnOnce(&'a str) -> Cow<'a, str>) -> Arc<Self> {
        match change(&self.text) {
            Cow::Borrowed(_) => Arc::clone(self),
            Cow::Owned(text) => {
                SourceText::starting_at(Arc::clone(&self.name), text, self.first_line, self.first_column)
            }
        }
    }

    /// Returns the last character boundary not after `offset`.
    pub(super) fn boundary(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset)
    }

    /// Returns the line of the file at `offset`.
    pub(super) fn line_at(&self, offset: usize) -> u32 {
        let breaks = self.lines.position(&self.text, offset).breaks;
        self.first_line.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX))
    }

    /// Returns the column at `offset`, counted in characters from 1.
    pub(super) fn column_at(&self, offset: usize) -> u32 {
        let position = self.lines.position(&self.text, offset);
        let shift = if position.line_start == 0 { self.first_column.saturating_sub(1) } else { 0 };
        u32::try_from(position.chars + 1).unwrap_or(u32::MAX).saturating_add(shift)
    }

    /// Returns the start of the line that contains `offset`.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        self.lines.position(&self.text, offset).line_start
    }

    /// Returns the span of a line of the text, counted from 1, without its line break. `None` if the text has fewer lines.
    pub fn line(&self, number: usize) -> Option<Range<usize>> {
        let start = self.lines.line_start(&self.text, number.saturating_sub(1))?;
        Some(self.line_span(start))
    }

    /// Returns the line, counted from 1 in the text, and the bytes of the line before `offset`.
    pub fn line_and_bytes(&self, offset: usize) -> (usize, usize) {
        let position = self.lines.position(&self.text, offset);
        (position.breaks + 1, offset - position.line_start)
    }

    /// Returns the span of the line that contains `offset`, without its line break.
    pub(super) fn line_span(&self, offset: usize) -> Range<usize> {
        self.lines.line_span(&self.text, offset)
    }
}

impl PartialEq for SourceText {
    fn eq(&self, other: &Self) -> bool {
        let SourceText { name, text, first_line, first_column, generated_at, lines: _ } = self;
        let start = (other.first_line, other.first_column);
        (*first_line, *first_column) == start
            && *name == other.name
            && *text == other.text
            && *generated_at == other.generated_at
    }
}

impl Eq for SourceText {}

impl fmt::Debug for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}:{}, {} bytes)", self.name, self.first_line, self.text.len())
    }
}

/// The line of a location, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The line. Literal secrets are masked.
    pub text: String,
    /// Characters of the location in the line, counted from 0.
    pub marked: Range<usize>,
}

/// A span of a [`SourceText`]. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceSpan {
    /// The source.
    pub source: Arc<SourceText>,
    /// Byte offsets into the text of the source.
    pub span: Range<usize>,
}

/// Of an item without a known position.
impl Default for SourceSpan {
    fn default() -> Self {
        static NOTHING: LazyLock<Arc<SourceText>> = LazyLock::new(|| SourceText::new("", "", 1));
        SourceSpan::new(&NOTHING, 0..0)
    }
}

impl SourceSpan {
    /// Creates a span of a source.
    pub fn new(source: &Arc<SourceText>, span: Range<usize>) -> Self {
        match &source.generated_at {
            Some(place) => place.clone(),
            None => SourceSpan { source: Arc::clone(source), span },
        }
    }

    /// Returns the display path of the file.
    pub fn file(&self) -> &str {
        &self.source.name
    }

    /// Returns the line of the file, counted from 1.
    pub fn line(&self) -> u32 {
        self.source.line_at(self.span.start)
    }

    /// Returns the column, counted in characters from 1.
    pub fn column(&self) -> u32 {
        self.source.column_at(self.span.start)
    }

    /// Returns the location of `part` (in bytes) of `text`, if this is the location of a node with that text.
    /// Returns the whole location if the source differs too much from the text, as with escapes.
    pub fn within(&self, text: &str, part: Range<usize>) -> SourceSpan {
        let written = self.text();
        // A text without line breaks and escapes occurs literally, possibly in quotes.
        let found = match written.find(text).filter(|_| !text.is_empty()) {
            Some(start) => Some(start + part.start.min(text.len())..start + part.end.min(text.len())),
            None => align(written, text, &part),
        };
        let Some(found) = found else { return self.clone() };
        let start = self.source.boundary(self.span.start + found.start);
        let end = self.source.boundary(self.span.start + found.end).max(start);
        SourceSpan { source: Arc::clone(&self.source), span: start..end }
    }

    /// Returns true if `other` lies within this location.
    pub fn contains(&self, other: &SourceSpan) -> bool {
        self.source == other.source && self.span.start <= other.span.start && other.span.end <= self.span.end
    }

    /// Returns the line of the location, unless it is longer than `max_chars`.
    pub fn short_line(&self, max_chars: usize) -> Option<SourceLine> {
        let line = self.source.line_span(self.span.start);
        // A character has at most four bytes.
        let is_short =
            line.len() <= 4 * max_chars && self.source.text[line.clone()].chars().count() <= max_chars;
        if !is_short {
            return None;
        }
        let chars = |end: usize| {
            let end = self.source.boundary(end).clamp(line.start, line.end);
            self.source.text[line.start..end].chars().count()
        };
        let marked = chars(self.span.start)..chars(self.span.end);
        Some(SourceLine { text: mask_literal_secrets(&self.source.text[line]).into_owned(), marked })
    }

    /// Returns the source text.
    pub fn text(&self) -> &str {
        let start = self.source.boundary(self.span.start);
        let end = self.source.boundary(self.span.end).max(start);
        &self.source.text[start..end]
    }
}

/// Finds a part of a text in its source, which may have different white space.
fn align(written: &str, text: &str, part: &Range<usize>) -> Option<Range<usize>> {
    let visible = |text: &str| -> Vec<(usize, char)> {
        text.char_indices().filter(|(_, letter)| !letter.is_whitespace()).collect()
    };
    let (spelt, meant) = (visible(written), visible(text));
    // Skips a quote or block indicator before the text.
    let most = spelt.len().checked_sub(meant.len())?.min(MAX_INDICATOR_CHARS);
    let mark = (0..=most)
        .find(|&mark| spelt[mark..].iter().zip(&meant).all(|((_, spelt), (_, meant))| spelt == meant))?;
    let before = |offset: usize| meant.partition_point(|(at, _)| *at < offset);
    let end_of = |index: usize| spelt.get(mark + index).map(|(at, letter)| at + letter.len_utf8());
    let (first, last) = (before(part.start), before(part.end).checked_sub(1));
    let start = match meant.get(first) {
        Some(_) => spelt.get(mark + first).map(|(at, _)| *at),
        None => last.and_then(end_of),
    }?;
    Some(start..last.and_then(end_of).unwrap_or(start).max(start))
}

/// Length of the longest block indicator, `>+9`.
const MAX_INDICATOR_CHARS: usize = 3;

impl fmt::Display for SourceSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file(), self.line(), self.column())
    }
}

impl fmt::Debug for SourceSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_are_masked() {
        let long = "x".repeat(50);
        let text = format!("a: 1\napi_key: sk-123\nb: \"é, no\"\nc: {long}\n");
        let source = SourceText::new("a.yaml", text.as_str(), 7);
        let line_of = |word: &str, end: usize| {
            let at = text.find(word).unwrap();
            SourceSpan::new(&source, at..at + end).short_line(20)
        };
        let line = |text: &str, marked| Some(SourceLine { text: text.to_owned(), marked });
        assert_eq!(line_of("no", 2), line("b: \"é, no\"", 7..9));
        assert_eq!(line_of("no", 999), line("b: \"é, no\"", 7..10));
        assert_eq!(line_of("sk-123", 6), line("api_key: xxxxxx", 9..15));
        assert_eq!(line_of("xxx", 3), None);
        assert_eq!(SourceSpan::new(&SourceText::new("", "", 1), 0..0).short_line(2), line("", 0..0));
    }
}
