//! What is wrong with a document, and how that is shown.

use std::borrow::Cow;
use std::fmt;
use std::iter;
use std::ops::{Deref, Range};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::place::{Place, Source};
use super::secrets::mask_written_secrets;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, as a fragment that follows `error: `.
    pub message: String,
    /// Where it is wrong.
    pub place: Option<Place>,
    /// A few words to stand beside the place.
    pub label: Option<String>,
    /// Other places that have to do with it, each with a few words to stand beside it.
    pub also: Vec<(Place, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A mistake that has no place yet.
    pub fn new(message: impl Into<String>) -> Self {
        Diagnostic { message: message.into(), place: None, label: None, also: Vec::new(), help: None }
    }

    /// The same mistake with its place.
    pub fn at(self, place: Place) -> Self {
        Diagnostic { place: Some(place), ..self }
    }

    /// The same mistake with words beside its place.
    pub fn label(self, label: impl Into<String>) -> Self {
        Diagnostic { label: Some(label.into()), ..self }
    }

    /// The same mistake with one more place.
    pub fn also(mut self, place: Place, label: impl Into<String>) -> Self {
        self.also.push((place, label.into()));
        self
    }

    /// The same mistake with advice.
    pub fn help(self, help: impl Into<String>) -> Self {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What is wrong, cut where it is longer than a message may be.
    pub fn bounded_message(&self) -> Cow<'_, str> {
        bounded(&self.message)
    }

    /// The path of the file, as it is shown to people.
    pub fn file(&self) -> Option<&str> {
        self.place.as_ref().map(Place::file)
    }

    /// The line, counted from 1.
    pub fn line(&self) -> Option<u32> {
        self.place.as_ref().map(Place::line)
    }

    /// The column, counted in characters from 1.
    pub fn column(&self) -> Option<u32> {
        self.place.as_ref().map(Place::column)
    }

    /// The mistake with the lines it is about, `width` columns wide, without a line break at its end.
    ///
    /// What stands in files and messages cannot steer the terminal: control characters are replaced by visible
    /// ones.
    pub fn render(&self, color: bool, width: usize) -> String {
        let width = width.clamp(NARROWEST, WIDEST);
        let mut group = Group::with_title(Level::ERROR.primary_title(visible(&self.message, Breaks::Shown)));
        for excerpt in self.excerpts(width) {
            let annotations = excerpt.marks.into_iter().map(|mark| {
                let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
                let label = mark.label.map(|label| visible(label, Breaks::Shown));
                kind.span(mark.span).label(label)
            });
            group = group.element(
                Snippet::source(excerpt.text)
                    .path(visible(excerpt.name, Breaks::Shown))
                    .line_start(excerpt.first_line as usize)
                    .annotations(annotations),
            );
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(visible(help, Breaks::Kept)));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.term_width(width).render(&[group])
    }

    /// What to show: one excerpt with everything near the place, and one more for each place far from it.
    fn excerpts(&self, width: usize) -> Vec<Excerpt<'_>> {
        let Some(place) = &self.place else { return Vec::new() };
        let mut near = vec![Mark { span: place.span.clone(), label: self.label.as_deref(), primary: true }];
        let mut far = Vec::new();
        for (also, label) in &self.also {
            let mark = Mark { span: also.span.clone(), label: Some(label), primary: false };
            let shown_together = also.source == place.source
                && also.line().abs_diff(place.line()) <= NEAR
                && also.column().abs_diff(place.column()) as usize <= width / 2;
            if shown_together {
                near.push(mark);
            } else {
                far.push(Excerpt::new(&also.source, vec![mark], width));
            }
        }
        iter::once(Excerpt::new(&place.source, near, width)).chain(far).collect()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}: ", visible(&place.to_string(), Breaks::Shown))?;
        }
        f.write_str(&visible(&self.message, Breaks::Shown))
    }
}

impl std::error::Error for Diagnostic {}

/// All mistakes of a document, in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// No mistakes yet.
    pub fn new() -> Self {
        Diagnostics::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Brings those of one source into the order of its text. Those without a place come first.
    pub fn sort_by_place(&mut self) {
        self.0.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| place.span.start));
    }

    /// Whether there is one within a place.
    pub fn any_within(&self, place: &Place) -> bool {
        self.0.iter().filter_map(|mistake| mistake.place.as_ref()).any(|at| place.contains(at))
    }

    /// The first [`MAX_SHOWN_DIAGNOSTICS`] as [`Diagnostic::render`] shows them, with an empty line between each two,
    /// and how many more there are.
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

/// How many mistakes are shown at once. A generated file can have thousands, all of one kind.
pub const MAX_SHOWN_DIAGNOSTICS: usize = 100;

/// How many characters of a message or of advice are shown. What a script throws can be as long as its memory allows.
const MAX_MESSAGE_CHARS: usize = 4_000;

/// Below the first the caret has no room; a line longer than the second is no longer read.
const NARROWEST: usize = 40;
const WIDEST: usize = 500;

/// Places that are at most this many lines apart are shown in one excerpt.
const NEAR: u32 = 200;

/// A span to point at, in the text of a source or of an excerpt.
struct Mark<'a> {
    span: Range<usize>,
    label: Option<&'a str>,
    primary: bool,
}

/// The lines of a source that hold some marks, harmless to print and cut behind what will be shown.
///
/// What stands before a mark is never cut, because its column is counted from there.
struct Excerpt<'a> {
    name: &'a str,
    first_line: u32,
    text: String,
    marks: Vec<Mark<'a>>,
}

impl<'a> Excerpt<'a> {
    fn new(source: &'a Source, mut marks: Vec<Mark<'a>>, width: usize) -> Self {
        marks.sort_by_key(|mark| mark.span.start);
        let first = marks.first().map_or(0, |mark| mark.span.start);
        let mut line = source.line_span(first);
        let mut excerpt = Excerpt {
            name: &source.name,
            first_line: source.line_at(first),
            text: String::new(),
            marks: Vec::new(),
        };
        let mut marks = marks.into_iter().peekable();
        loop {
            let on_line = |mark: &Mark<'_>| source.line_start(mark.span.start) == line.start;
            let here = iter::from_fn(|| marks.next_if(on_line)).collect();
            excerpt.push_line(source, line.clone(), here, width);
            let next = source.text[line.end..].find('\n').map(|newline| line.end + newline + 1);
            match next {
                Some(next) if marks.peek().is_some() => line = source.line_span(next),
                Some(_) | None => return excerpt,
            }
            excerpt.text.push('\n');
        }
    }

    fn push_line(&mut self, source: &Source, line: Range<usize>, marks: Vec<Mark<'a>>, width: usize) {
        // A piece that begins within its line is shown where it stands there.
        if line.start == 0 {
            self.text.extend(std::iter::repeat_n(' ', source.first_column as usize - 1));
        }
        let text = &*mask_written_secrets(&source.text[line.clone()]);
        let shown_until = |start: usize, chars: usize| {
            text[start..].char_indices().nth(chars).map_or(text.len(), |(length, _)| start + length)
        };
        let base = self.text.len();
        let mut shown = shown_until(0, 2 * width);
        for mark in marks {
            // What covers several lines is pointed at on its first, what is long at its beginning.
            let inside = |offset: usize| source.boundary(offset).clamp(line.start, line.end) - line.start;
            let start = inside(mark.span.start);
            let end = inside(mark.span.end).max(start).min(shown_until(start, width / 2));
            shown = shown.max(shown_until(end, 2 * width));
            let moved = |offset: usize| base + text[..offset].chars().map(visible_len).sum::<usize>();
            self.marks.push(Mark { span: moved(start)..moved(end), ..mark });
        }
        self.text.extend(text[..shown].chars().map(visible_char));
    }
}

/// Whether a text may have several lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Kept,
    Shown,
}

/// A text that is harmless to print, cut where it is longer than a message may be.
fn visible(text: &str, breaks: Breaks) -> String {
    let shown = |character| match character {
        '\n' if breaks == Breaks::Kept => '\n',
        '\t' => ' ',
        other => visible_char(other),
    };
    bounded(text).chars().map(shown).collect()
}

/// A text that says how much of it was left out, if it is longer than a message may be.
fn bounded(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}… ({} more bytes)", &text[..end], text.len() - end)),
    }
}

/// A character that is harmless to print. Exactly one for each, so that columns stay right; tabs stay as well.
pub fn visible_char(character: char) -> char {
    match character {
        '\t' => '\t',
        '\0'..='\u{1F}' => {
            char::from_u32(u32::from(character) + 0x2400).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7F}' => '\u{2421}',
        // The second set of control characters, and characters that reorder or hide text.
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

fn visible_len(character: char) -> usize {
    visible_char(character).len_utf8()
}
