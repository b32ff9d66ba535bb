//! Locations in source files.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::secrets::mask_literal_secrets;

/// Text of a file, or of one document of a file with several.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceText {
    /// Display path of the file.
    pub name: Arc<str>,
    /// The text, without a byte order mark.
    pub text: String,
    /// Line of the file at which the text starts, counted from 1.
    pub first_line: u32,
    /// Column at which the text starts, counted in characters from 1.
    pub first_column: u32,
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
        Arc::new(SourceText { name: name.into(), text, first_line, first_column })
    }

    /// Returns the last character boundary not after `offset`.
    pub(super) fn boundary(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset)
    }

    /// Returns the line of the file at `offset`.
    pub(super) fn line_at(&self, offset: usize) -> u32 {
        let before = &self.text.as_bytes()[..self.boundary(offset)];
        let breaks = before.iter().filter(|&&byte| byte == b'\n').count();
        self.first_line.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX))
    }

    /// Returns the start of the line that contains `offset`.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        self.text[..self.boundary(offset)].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Returns the span of the line that contains `offset`, without its line break.
    pub(super) fn line_span(&self, offset: usize) -> Range<usize> {
        let start = self.line_start(offset);
        let end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length);
        let end = if self.text[start..end].ends_with('\r') { end - 1 } else { end };
        start..end
    }
}

impl fmt::Debug for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}:{}, {} bytes)", self.name, self.first_line, self.text.len())
    }
}

/// Lines of a source around a location, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLines {
    /// Number of the first line, counted from 1.
    pub first_line: u32,
    /// The lines, truncated. Literal secrets are masked.
    pub lines: Vec<String>,
    /// Characters of the location in its first line, counted from 0.
    pub marked: Range<usize>,
}

/// Maximum length of a line in [`SourceLines`], in characters.
const MAX_LINE_CHARS: usize = 400;

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
        SourceSpan { source: Arc::clone(source), span }
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
        let start = self.source.line_start(self.span.start);
        let before = self.source.text[start..self.source.boundary(self.span.start)].chars().count();
        let shift = if start == 0 { self.source.first_column.saturating_sub(1) } else { 0 };
        u32::try_from(before + 1).unwrap_or(u32::MAX).saturating_add(shift)
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

    /// Returns the lines of the location, with up to `around` lines before and after its first line.
    pub fn surrounding_lines(&self, around: usize) -> SourceLines {
        let own = self.source.line_span(self.span.start);
        let mut start = own.start;
        for _ in 0..around {
            let Some(before) = start.checked_sub(1) else { break };
            start = self.source.line_start(before);
        }
        let first_line = self.source.line_at(start);
        let before = (self.line() - first_line) as usize;
        let shown = self.source.text[start..].lines().take(before + 1 + around);
        let lines = shown.map(|line| {
            let masked = mask_literal_secrets(line);
            masked.chars().take(MAX_LINE_CHARS).collect()
        });
        let chars = |end: usize| {
            let end = self.source.boundary(end).clamp(own.start, own.end);
            self.source.text[own.start..end].chars().count()
        };
        let marked = chars(self.span.start)..chars(self.span.end);
        SourceLines { first_line, lines: lines.collect(), marked }
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
    fn surrounding_lines_are_masked_and_bounded() {
        let long = "x".repeat(2 * MAX_LINE_CHARS);
        let text = format!("a: 1\napi_key: sk-123\nb: \"é, no\"\nc: {long}\n");
        let source = SourceText::new("a.yaml", text.as_str(), 7);
        let at = text.find("no").unwrap();
        let found = SourceSpan::new(&source, at..at + 2).surrounding_lines(1);
        assert_eq!((found.first_line, found.marked), (8, 7..9));
        assert_eq!(found.lines[0], "api_key: xxxxxx");
        assert_eq!(found.lines[1], "b: \"é, no\"");
        assert_eq!((found.lines.len(), found.lines[2].chars().count()), (3, MAX_LINE_CHARS));
        let all = SourceSpan::new(&source, at..text.len() + 9).surrounding_lines(100);
        assert_eq!((all.first_line, all.lines.len(), all.marked), (7, 4, 7..10));
        let empty = SourceSpan::new(&SourceText::new("", "", 1), 0..0).surrounding_lines(2);
        assert_eq!((empty.lines.len(), empty.marked), (0, 0..0));
    }
}
