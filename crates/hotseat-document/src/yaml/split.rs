//! Taking a stream apart into documents.

use std::io::{BufRead, Read};
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::place::Source;
use crate::stream::{BYTE_ORDER_MARK, LONGEST, not_utf8, too_long, unreadable};

/// The documents of a stream, one after the other.
///
/// A document begins at a line `---` or where the stream begins, and ends before the next such line or at a line
/// `...`. What holds nothing but comments is left out. Directives (`%YAML`) go with the document they precede.
///
/// An item is an error if the bytes of that document are not UTF-8; the documents behind it still come. When the
/// stream cannot be read, or a document is larger than 64 MiB, the error is the last item.
#[derive(Debug)]
pub struct Documents<R> {
    reader: R,
    name: Arc<str>,
    /// How many lines have been read.
    lines: u32,
    finished: bool,
    pending: Pending,
}

/// The lines of the document that is being collected.
#[derive(Debug)]
struct Pending {
    bytes: Vec<u8>,
    first_line: u32,
    /// Whether its `---` has been read.
    has_start: bool,
    has_content: bool,
    has_directive: bool,
}

impl Pending {
    fn new(first_line: u32) -> Self {
        Pending { bytes: Vec::new(), first_line, has_start: false, has_content: false, has_directive: false }
    }

    /// Whether nothing but comments and directives has been read, so that a `---` does not end it.
    fn is_prefix(&self) -> bool {
        !self.has_start && !self.has_content
    }

    /// Whether the parser has to see it. A directive without a document is the parser's to refuse.
    fn is_document(&self) -> bool {
        self.has_content || (self.has_directive && !self.has_start)
    }
}

/// What a line means for the division into documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// `---`, and whether the document begins on that line.
    Start {
        has_content: bool,
    },
    /// `...`, and whether something stands behind it.
    End {
        has_content: bool,
    },
    /// Begins with `%`.
    Directive,
    /// Empty, or a comment.
    Blank,
    Content,
}

impl<R: BufRead> Documents<R> {
    pub(super) fn new(name: Arc<str>, reader: R) -> Self {
        Documents { reader, name, lines: 0, finished: false, pending: Pending::new(1) }
    }

    /// Reads to the end of the next document.
    fn read_document(&mut self) -> Result<Option<Pending>, Diagnostic> {
        loop {
            let start = self.pending.bytes.len();
            let room = (LONGEST + 1).saturating_sub(start) as u64;
            let read = self.reader.by_ref().take(room).read_until(b'\n', &mut self.pending.bytes);
            if read.map_err(|error| unreadable(&self.name, &error, self.lines.saturating_add(1)))? == 0 {
                self.finished = true;
                let last = self.take_pending(Pending::new(self.lines));
                return Ok(last.is_document().then_some(last));
            }
            if self.pending.bytes.len() > LONGEST {
                return Err(too_long(&self.name, self.pending.first_line));
            }
            self.lines = self.lines.saturating_add(1);
            if let Some(document) = self.line(start) {
                return Ok(Some(document));
            }
        }
    }

    /// Takes note of the line that begins at `start`, and returns the document that it ends.
    fn line(&mut self, start: usize) -> Option<Pending> {
        let pending = &mut self.pending;
        let has_mark = pending.bytes[start..].starts_with(BYTE_ORDER_MARK);
        let text_start = if has_mark { start + BYTE_ORDER_MARK.len() } else { start };
        let line = classify(&pending.bytes[text_start..]);
        // Files that were put together keep the marks they began with.
        if has_mark && pending.is_prefix() {
            pending.bytes.drain(start..text_start);
        }
        match line {
            Line::Start { has_content } if pending.is_prefix() => {
                if !pending.has_directive {
                    pending.bytes.drain(..start);
                    pending.first_line = self.lines;
                }
                pending.has_start = true;
                pending.has_content = has_content;
                None
            }
            Line::Start { has_content } => {
                let bytes = pending.bytes.split_off(start);
                let next = Pending { bytes, has_start: true, has_content, ..Pending::new(self.lines) };
                let document = self.take_pending(next);
                document.is_document().then_some(document)
            }
            Line::End { has_content } => {
                pending.has_content |= has_content;
                let document = self.take_pending(Pending::new(self.lines.saturating_add(1)));
                document.is_document().then_some(document)
            }
            Line::Directive if pending.is_prefix() => {
                pending.has_directive = true;
                None
            }
            Line::Directive | Line::Content => {
                pending.has_content = true;
                None
            }
            Line::Blank => None,
        }
    }

    fn take_pending(&mut self, next: Pending) -> Pending {
        std::mem::replace(&mut self.pending, next)
    }

    fn source(&self, document: Pending) -> Result<Arc<Source>, Diagnostic> {
        let Pending { bytes, first_line, .. } = document;
        String::from_utf8(bytes).map(|text| Source::new(Arc::clone(&self.name), text, first_line)).map_err(
            |error| not_utf8(&self.name, error.as_bytes(), error.utf8_error().valid_up_to(), first_line, 1),
        )
    }
}

impl<R: BufRead> Iterator for Documents<R> {
    type Item = Result<Arc<Source>, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        match self.read_document() {
            Ok(document) => document.map(|document| self.source(document)),
            Err(error) => {
                self.finished = true;
                Some(Err(error))
            }
        }
    }
}

fn classify(line: &[u8]) -> Line {
    if let Some(rest) = behind_marker(line, b"---") {
        return Line::Start { has_content: !is_blank(rest) };
    }
    if let Some(rest) = behind_marker(line, b"...") {
        return Line::End { has_content: !is_blank(rest) };
    }
    match line.first() {
        Some(b'%') => Line::Directive,
        _ if is_blank(line) => Line::Blank,
        _ => Line::Content,
    }
}

/// What stands behind a marker, if the line begins with it and not with a longer word.
fn behind_marker<'l>(line: &'l [u8], marker: &[u8]) -> Option<&'l [u8]> {
    let rest = line.strip_prefix(marker)?;
    rest.first().is_none_or(|&byte| is_space(byte)).then_some(rest)
}

/// Whether a line or the rest of one is empty or a comment.
fn is_blank(line: &[u8]) -> bool {
    let mut spaces = line.iter().skip_while(|&&byte| is_space(byte));
    match spaces.next() {
        None => true,
        // To the parser a lone carriage return ends the comment, and what follows is a line of its own.
        Some(b'#') => !line.trim_ascii_end().contains(&b'\r'),
        Some(_) => false,
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
