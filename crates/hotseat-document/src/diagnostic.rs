//! Errors in documents, and how they are rendered.

use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::{fmt, iter};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use unicode_width::UnicodeWidthChar;

use super::place::{SourceSpan, SourceText};
use super::secrets::mask_literal_secrets;

/// One error in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Message, as a fragment that follows `error: `.
    pub message: String,
    /// Location of the error.
    pub place: Option<SourceSpan>,
    /// Text beside the location.
    pub label: Option<String>,
    /// Related locations, each with a text beside it.
    pub related: Vec<(SourceSpan, String)>,
    /// Advice on how to fix it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error without a location.
    pub fn new(message: impl ToString) -> Self {
        Diagnostic { message: message.to_string(), place: None, label: None, related: Vec::new(), help: None }
    }

    /// Sets the location, if it is known.
    pub fn at(self, place: impl Into<Option<SourceSpan>>) -> Self {
        Diagnostic { place: place.into(), ..self }
    }

    /// Sets the text beside the location.
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Diagnostic { label: Some(label.into()), ..self }
    }

    /// Adds a related location.
    pub fn with_related(mut self, place: SourceSpan, label: impl Into<String>) -> Self {
        self.related.push((place, label.into()));
        self
    }

    /// Sets the advice.
    pub fn help(self, help: impl Into<String>) -> Self {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the message, truncated to the maximum length.
    pub fn bounded_message(&self) -> Cow<'_, str> {
        truncate_message(&self.message)
    }

    /// Returns the display path of the file.
    pub fn file(&self) -> Option<&str> {
        self.place.as_ref().map(SourceSpan::file)
    }

    /// Returns the line, counted from 1.
    pub fn line(&self) -> Option<u32> {
        self.place.as_ref().map(SourceSpan::line)
    }

    /// Returns the column, counted in characters from 1.
    pub fn column(&self) -> Option<u32> {
        self.place.as_ref().map(SourceSpan::column)
    }

    /// Renders the error for the detail of a failure.
    pub fn to_detail(&self) -> String {
        self.render(false, DETAIL_COLUMNS)
    }

    /// Renders the error with its source lines, `width` columns wide, without a trailing newline.
    ///
    /// Control characters in files and messages are replaced by visible ones, so they cannot steer the
    /// terminal.
    pub fn render(&self, color: bool, width: usize) -> String {
        let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
        let mut group =
            Group::with_title(Level::ERROR.primary_title(escape_text(&self.message, LineBreaks::Escape)));
        let mut moved = Vec::new();
        for excerpt in self.excerpts(width) {
            let annotations = excerpt.marks.into_iter().map(|mark| {
                let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
                let label = mark.label.map(|label| escape_text(label, LineBreaks::Escape));
                kind.span(mark.span).label(label)
            });
            let path = escape_text(excerpt.name, LineBreaks::Escape);
            let line = excerpt.first_line as usize;
            if let Some((counted, column)) = excerpt.moved_column {
                moved.push((format!("{path}:{line}:{counted}"), format!("{path}:{line}:{column}")));
            }
            group = group
                .element(Snippet::source(excerpt.text).path(path).line_start(line).annotations(annotations));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(escape_text(help, LineBreaks::Preserve)));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let rendered = renderer.term_width(width).render(&[group]);
        moved.into_iter().fold(rendered, |rendered, (counted, place)| rendered.replacen(&counted, &place, 1))
    }

    /// Returns an excerpt with all marks near the location, and one for each distant related location.
    fn excerpts(&self, width: usize) -> Vec<SourceExcerpt<'_>> {
        let Some(place) = &self.place else { return Vec::new() };
        let mut near =
            vec![ExcerptMark { span: place.span.clone(), label: self.label.as_deref(), primary: true }];
        let mut far = Vec::new();
        for (also, label) in &self.related {
            let mark = ExcerptMark { span: also.span.clone(), label: Some(label), primary: false };
            let shown_together = also.source == place.source
                && also.line().abs_diff(place.line()) <= MAX_EXCERPT_LINES
                && also.column().abs_diff(place.column()) as usize <= width / 2
                && place.column() as usize <= MAX_LEADING_WIDTHS * width;
            if shown_together {
                near.push(mark);
            } else {
                far.push(SourceExcerpt::new(&also.source, vec![mark], width));
            }
        }
        iter::once(SourceExcerpt::new(&place.source, near, width)).chain(far).collect()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}: ", escape_text(&place.to_string(), LineBreaks::Escape))?;
        }
        f.write_str(&escape_text(&self.message, LineBreaks::Escape))
    }
}

impl std::error::Error for Diagnostic {}

/// All errors of a document, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Creates an empty list.
    pub fn new() -> Self {
        Diagnostics::default()
    }

    /// Adds an error.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds an error at a location, if that is known.
    pub fn report(&mut self, place: impl Into<Option<SourceSpan>>, message: impl ToString) {
        self.push(Diagnostic::new(message).at(place));
    }

    /// Sorts the errors of one source by position. Errors without a location come first.
    pub fn sort_by_place(&mut self) {
        self.0.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| place.span.start));
    }

    /// Returns true if an error lies within `place`.
    pub fn any_within(&self, place: &SourceSpan) -> bool {
        self.0.iter().filter_map(|mistake| mistake.place.as_ref()).any(|at| place.contains(at))
    }

    /// Returns all messages with their advice in one line, without locations.
    pub fn one_line(&self) -> String {
        let words = self.0.iter().map(|mistake| match &mistake.help {
            Some(help) => format!("{} ({help})", mistake.message),
            None => mistake.message.clone(),
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// Renders the first [`MAX_SHOWN_DIAGNOSTICS`] errors, separated by empty lines, and the number of the
    /// others.
    pub fn render(&self, color: bool, width: usize) -> String {
        let shown =
            self.0.iter().take(MAX_SHOWN_DIAGNOSTICS).map(|diagnostic| diagnostic.render(color, width));
        let more = self.0.len().saturating_sub(MAX_SHOWN_DIAGNOSTICS);
        let more = (more > 0).then(|| format!("… and {more} more errors"));
        shown.chain(more).collect::<Vec<_>>().join("\n\n")
    }
}

impl Deref for Diagnostics {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Diagnostics(vec![diagnostic])
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: T) {
        self.0.extend(diagnostics);
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, diagnostic) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Number of errors shown at once. A generated file can have thousands of one kind.
pub const MAX_SHOWN_DIAGNOSTICS: usize = 100;

/// Maximum number of characters of a message or advice. An exception of a script can be as long as its memory
/// allows.
const MAX_MESSAGE_CHARS: usize = 4_000;

/// Width of an error in the detail of a failure. The console shows details in a margin, on terminals of 80 columns.
const DETAIL_COLUMNS: usize = 66;
/// Bounds of the width: below the first the marker does not fit, above the second lines are unreadable.
const MIN_WIDTH: usize = 40;
const MAX_WIDTH: usize = 500;

/// Maximum distance in lines of two locations that share an excerpt.
const MAX_EXCERPT_LINES: u32 = 200;

/// Span to mark in a source or an excerpt.
struct ExcerptMark<'a> {
    span: Range<usize>,
    label: Option<&'a str>,
    primary: bool,
}

/// Bytes of a line before and after its first mark in which secrets are looked for. The line can be a whole file, and
/// the key of a secret can precede what is shown by far.
const MAX_MASKED_BYTES: usize = 16_384;

/// Start of a first mark, in widths, from which the start of its line is left out.
const MAX_LEADING_WIDTHS: usize = 4;

/// Source lines with marks, escaped for printing and truncated after the visible part.
struct SourceExcerpt<'a> {
    name: &'a str,
    first_line: u32,
    /// If the start of the first line is left out: the column of the first mark as the renderer counts it, and its
    /// column in the file.
    moved_column: Option<(usize, u32)>,
    text: String,
    marks: Vec<ExcerptMark<'a>>,
}

impl<'a> SourceExcerpt<'a> {
    fn new(source: &'a SourceText, mut marks: Vec<ExcerptMark<'a>>, width: usize) -> Self {
        marks.sort_by_key(|mark| mark.span.start);
        let first = marks.first().map_or(0, |mark| mark.span.start);
        let mut line = source.line_span(first);
        let mut excerpt = SourceExcerpt {
            name: &source.name,
            first_line: source.line_at(first),
            moved_column: None,
            text: String::new(),
            marks: Vec::new(),
        };
        let mut marks = marks.into_iter().peekable();
        loop {
            let on_line = |mark: &ExcerptMark<'_>| source.line_start(mark.span.start) == line.start;
            let here: Vec<_> = iter::from_fn(|| marks.next_if(on_line)).collect();
            let near = here.first().map_or(line.start, |mark| source.boundary(mark.span.start).min(line.end));
            let masked = source.boundary(near.saturating_sub(MAX_MASKED_BYTES)).max(line.start)
                ..source.boundary(near + MAX_MASKED_BYTES).min(line.end);
            let text = mask_literal_secrets(&source.text[masked.clone()]);
            let mut start = masked.start;
            let column = source.column_at(near);
            if excerpt.text.is_empty() && column as usize > MAX_LEADING_WIDTHS * width {
                start = source.boundary(near.saturating_sub(2 * width)).max(start);
                let counted = source.text[start..near].chars().count() + 1;
                excerpt.moved_column = Some((counted, column));
            } else if start == 0 {
                // Keeps the original column of a piece that starts within a line.
                excerpt.text.extend(iter::repeat_n(' ', source.first_column as usize - 1));
            }
            excerpt.push_line(source, start, &text[start - masked.start..], here, width);
            let next = source.text[line.end..].find('\n').map(|newline| line.end + newline + 1);
            match next {
                Some(next) if marks.peek().is_some() => line = source.line_span(next),
                Some(_) | None => return excerpt,
            }
            excerpt.text.push('\n');
        }
    }

    /// Adds the text of a line from `line_start` on.
    fn push_line(
        &mut self,
        source: &SourceText,
        line_start: usize,
        text: &str,
        marks: Vec<ExcerptMark<'a>>,
        width: usize,
    ) {
        let shown_until = |start: usize, columns: usize| {
            let mut used = 0;
            // A character without a width counts as one column, so that also the number of characters is bounded.
            let cut = text[start..].char_indices().find(|(_, c)| {
                used += c.width().unwrap_or(1).max(1);
                used > columns
            });
            cut.map_or(text.len(), |(length, _)| start + length)
        };
        let base = self.text.len();
        let mut shown = shown_until(0, 2 * width);
        for mark in marks {
            // Marks a multi-line span on its first line, and a long span at its start.
            let inside = |offset: usize| source.boundary(offset).saturating_sub(line_start).min(text.len());
            let start = inside(mark.span.start);
            let end = inside(mark.span.end).max(start).min(shown_until(start, width / 2));
            shown = shown.max(shown_until(end, 2 * width));
            let visible_len = |character| excerpt_char(character).len_utf8();
            let moved = |offset: usize| base + text[..offset].chars().map(visible_len).sum::<usize>();
            self.marks.push(ExcerptMark { span: moved(start)..moved(end), ..mark });
        }
        self.text.extend(text[..shown].chars().map(excerpt_char));
    }
}

/// Replaces characters that a terminal would obey, or that it shows wider than the renderer counts.
fn excerpt_char(character: char) -> char {
    match character {
        // Makes the character before it wider. The renderer leaves out the joiner that replaces it.
        '\u{FE0F}' => '\u{200D}',
        other => visible_char(other),
    }
}

/// Treatment of line breaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineBreaks {
    Preserve,
    Escape,
}

/// Escapes control characters and truncates long text.
fn escape_text(text: &str, breaks: LineBreaks) -> String {
    let shown = |character| match character {
        '\n' if breaks == LineBreaks::Preserve => '\n',
        '\t' => ' ',
        other => visible_char(other),
    };
    truncate_message(text).chars().map(shown).collect()
}

/// Truncates text to the maximum length and states the number of omitted bytes.
fn truncate_message(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}… ({} more bytes)", &text[..end], text.len() - end)),
    }
}

/// True if a text has no visible character: only white space, control characters, and characters without a shape.
pub fn is_blank(text: &str) -> bool {
    let is_hidden = |c: char| {
        visible_char(c) != c
            || matches!(
                c,
                '\u{34F}'
                    | '\u{115F}'
                    | '\u{1160}'
                    | '\u{17B4}'
                    | '\u{17B5}'
                    | '\u{180B}'..='\u{180F}'
                    | '\u{200C}'
                    | '\u{200D}'
                    | '\u{2800}'
                    | '\u{3164}'
                    | '\u{FE00}'..='\u{FE0F}'
                    | '\u{FFA0}'
                    | '\u{E0100}'..='\u{E01EF}'
            )
    };
    text.chars().all(|c| c.is_whitespace() || is_hidden(c))
}

/// Replaces a control character by one visible character, so that columns stay correct. Tabs are kept.
pub fn visible_char(character: char) -> char {
    match character {
        '\t' => '\t',
        '\0'..='\u{1F}' => {
            char::from_u32(u32::from(character) + 0x2400).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7F}' => '\u{2421}',
        // C1 control characters, and characters that reorder or hide text.
        '\u{80}'..='\u{9F}'
        | '\u{AD}'
        | '\u{61C}'
        | '\u{200B}'
        | '\u{200E}'
        | '\u{200F}'
        | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E007F}' => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}
