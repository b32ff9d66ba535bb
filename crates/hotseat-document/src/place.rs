//! Where in a file something was written.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A piece of a file: the whole file, or one document of a file that holds many.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// The path as it is shown to people.
    pub name: Arc<str>,
    /// The text of this piece, without a byte order mark.
    pub text: String,
    /// The line of the file on which this piece begins, counted from 1.
    pub first_line: u32,
    /// The column of that line at which it begins, counted in characters from 1.
    pub first_column: u32,
}

impl Source {
    /// A piece of a file that begins on `first_line`. A leading byte order mark is dropped, so that it neither
    /// takes part in columns nor in the text.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<String>, first_line: u32) -> Arc<Self> {
        Source::starting_at(name, text, first_line, 1)
    }

    /// The same for a piece that does not begin at the start of its line.
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
        Arc::new(Source { name: name.into(), text, first_line, first_column })
    }

    /// The largest character boundary that is not behind `offset` and not behind the end.
    pub(super) fn boundary(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset)
    }

    /// The line of the file on which the character at `offset` stands.
    pub(super) fn line_at(&self, offset: usize) -> u32 {
        let before = &self.text.as_bytes()[..self.boundary(offset)];
        let breaks = before.iter().filter(|&&byte| byte == b'\n').count();
        self.first_line.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX))
    }

    /// Where the line that holds `offset` begins.
    pub(super) fn line_start(&self, offset: usize) -> usize {
        self.text[..self.boundary(offset)].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The span of the line that holds `offset`, without its line break.
    pub(super) fn line_span(&self, offset: usize) -> Range<usize> {
        let start = self.line_start(offset);
        let end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length);
        let end = if self.text[start..end].ends_with('\r') { end - 1 } else { end };
        start..end
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}:{}, {} bytes)", self.name, self.first_line, self.text.len())
    }
}

/// A span of a [`Source`]. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The piece of a file.
    pub source: Arc<Source>,
    /// Byte offsets into the text of the source.
    pub span: Range<usize>,
}

impl Place {
    /// The place of `span` in `source`.
    pub fn new(source: &Arc<Source>, span: Range<usize>) -> Self {
        Place { source: Arc::clone(source), span }
    }

    /// The path as it is shown to people.
    pub fn file(&self) -> &str {
        &self.source.name
    }

    /// The line of the file, counted from 1.
    pub fn line(&self) -> u32 {
        self.source.line_at(self.span.start)
    }

    /// The column, counted in characters from 1.
    pub fn column(&self) -> u32 {
        let start = self.source.line_start(self.span.start);
        let before = self.source.text[start..self.source.boundary(self.span.start)].chars().count();
        let shift = if start == 0 { self.source.first_column.saturating_sub(1) } else { 0 };
        u32::try_from(before + 1).unwrap_or(u32::MAX).saturating_add(shift)
    }

    /// Where in the spelling of `text` its part `part` (in bytes) is, if this is the place of a node that is that
    /// text. The whole place where the spelling differs too much from the text, as it does with escapes.
    pub fn within(&self, text: &str, part: Range<usize>) -> Place {
        let written = self.text();
        // A text without line breaks and escapes stands there as it is, perhaps in quotes.
        let found = match written.find(text).filter(|_| !text.is_empty()) {
            Some(start) => Some(start + part.start.min(text.len())..start + part.end.min(text.len())),
            None => align(written, text, &part),
        };
        let Some(found) = found else { return self.clone() };
        let start = self.source.boundary(self.span.start + found.start);
        let end = self.source.boundary(self.span.start + found.end).max(start);
        Place { source: Arc::clone(&self.source), span: start..end }
    }

    /// Whether another place lies within this one.
    pub fn contains(&self, other: &Place) -> bool {
        self.source == other.source && self.span.start <= other.span.start && other.span.end <= self.span.end
    }

    /// What is written there.
    pub fn text(&self) -> &str {
        let start = self.source.boundary(self.span.start);
        let end = self.source.boundary(self.span.end).max(start);
        &self.source.text[start..end]
    }
}

/// Where a part of a text is in its spelling, which may have other white space.
fn align(written: &str, text: &str, part: &Range<usize>) -> Option<Range<usize>> {
    let visible = |text: &str| -> Vec<(usize, char)> {
        text.char_indices().filter(|(_, letter)| !letter.is_whitespace()).collect()
    };
    let (spelt, meant) = (visible(written), visible(text));
    // What stands before the text is the mark of a block, or a quote.
    let most = spelt.len().checked_sub(meant.len())?.min(LONGEST_MARK);
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

/// `>+9` is the longest mark of a block.
const LONGEST_MARK: usize = 3;

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file(), self.line(), self.column())
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}
