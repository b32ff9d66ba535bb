//! Splits a YAML stream into documents.

use std::io::{BufRead, Read};
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::place::SourceText;
use crate::stream::{BYTE_ORDER_MARK, MAX_DOCUMENT_BYTES, source_at, too_long, unreadable};

/// Iterator over the documents of a stream.
///
/// A document starts at a `---` line or at the start of the stream, and ends before the next such line or at
/// a `...` line. Documents with only comments are skipped. Directives (`%YAML`) belong to the document after
/// them.
///
/// An item is an error if its bytes are not UTF-8; the following documents are still returned. If the stream
/// cannot be read, or a document exceeds 64 MiB, the error is the last item.
#[derive(Debug)]
pub struct YamlStream<R> {
    reader: R,
    name: Arc<str>,
    /// Number of lines read.
    lines: u32,
    finished: bool,
    pending: PendingDocument,
}

/// Maximum number of bytes reserved for a document before it is read.
const MAX_RESERVED_BYTES: usize = 4096;

/// Lines of the current document.
#[derive(Debug)]
struct PendingDocument {
    bytes: Vec<u8>,
    first_line: u32,
    /// True after its `---`.
    has_start: bool,
    has_content: bool,
    has_directive: bool,
}

impl PendingDocument {
    fn new(first_line: u32) -> Self {
        PendingDocument {
            bytes: Vec::new(),
            first_line,
            has_start: false,
            has_content: false,
            has_directive: false,
        }
    }

    /// Returns true if only comments and directives have been read, so a `---` does not end the document.
    fn is_prefix(&self) -> bool {
        !self.has_start && !self.has_content
    }

    /// Returns true if the parser must see the document. It also rejects a directive without a document.
    fn is_document(&self) -> bool {
        self.has_content || (self.has_directive && !self.has_start)
    }
}

/// Role of a line in the split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    /// `---`, and whether content follows on the line.
    Start {
        has_content: bool,
    },
    /// `...`, and whether text follows on the line.
    End {
        has_content: bool,
    },
    /// Starts with `%`.
    Directive,
    /// Empty or a comment.
    Blank,
    Content,
}

impl<R: BufRead> YamlStream<R> {
    pub(super) fn new(name: Arc<str>, reader: R) -> Self {
        YamlStream { reader, name, lines: 0, finished: false, pending: PendingDocument::new(1) }
    }

    /// Reads to the end of the next document.
    fn read_document(&mut self) -> Result<Option<PendingDocument>, Diagnostic> {
        loop {
            let start = self.pending.bytes.len();
            let room = (MAX_DOCUMENT_BYTES + 1).saturating_sub(start) as u64;
            let read = self.reader.by_ref().take(room).read_until(b'\n', &mut self.pending.bytes);
            if read.map_err(|error| unreadable(&self.name, &error, self.lines.saturating_add(1)))? == 0 {
                self.finished = true;
                let last = self.take_pending(PendingDocument::new(self.lines));
                return Ok(last.is_document().then_some(last));
            }
            if self.pending.bytes.len() > MAX_DOCUMENT_BYTES {
                return Err(too_long(&self.name, self.pending.first_line));
            }
            self.lines = self.lines.saturating_add(1);
            if let Some(document) = self.line(start) {
                return Ok(Some(document));
            }
        }
    }

    /// Processes the line that starts at `start`, and returns the document that it ends.
    fn line(&mut self, start: usize) -> Option<PendingDocument> {
        let pending = &mut self.pending;
        let has_mark = pending.bytes[start..].starts_with(BYTE_ORDER_MARK);
        let text_start = if has_mark { start + BYTE_ORDER_MARK.len() } else { start };
        let line = classify(&pending.bytes[text_start..]);
        // Concatenated files keep their byte order marks.
        if has_mark && pending.is_prefix() {
            pending.bytes.drain(start..text_start);
        }
        match line {
            LineKind::Start { has_content } if pending.is_prefix() => {
                if !pending.has_directive {
                    pending.bytes.drain(..start);
                    pending.first_line = self.lines;
                }
                pending.has_start = true;
                pending.has_content = has_content;
                None
            }
            LineKind::Start { has_content } => {
                let bytes = pending.bytes.split_off(start);
                let next = PendingDocument {
                    bytes,
                    has_start: true,
                    has_content,
                    ..PendingDocument::new(self.lines)
                };
                let document = self.take_pending(next);
                document.is_document().then_some(document)
            }
            LineKind::End { has_content } => {
                pending.has_content |= has_content;
                let document = self.take_pending(PendingDocument::new(self.lines.saturating_add(1)));
                document.is_document().then_some(document)
            }
            LineKind::Directive if pending.is_prefix() => {
                pending.has_directive = true;
                None
            }
            LineKind::Directive | LineKind::Content => {
                pending.has_content = true;
                None
            }
            LineKind::Blank => None,
        }
    }

    fn take_pending(&mut self, next: PendingDocument) -> PendingDocument {
        let document = std::mem::replace(&mut self.pending, next);
        // Documents of a stream mostly have similar lengths.
        self.pending.bytes.reserve(document.bytes.len().min(MAX_RESERVED_BYTES));
        document
    }

    fn source(&self, document: PendingDocument) -> Result<Arc<SourceText>, Diagnostic> {
        let PendingDocument { bytes, first_line, .. } = document;
        source_at(&self.name, bytes, first_line, 1)
    }
}

impl<R: BufRead> Iterator for YamlStream<R> {
    type Item = Result<Arc<SourceText>, Diagnostic>;

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

fn classify(line: &[u8]) -> LineKind {
    if let Some(rest) = strip_marker(line, b"---") {
        return LineKind::Start { has_content: !is_blank(rest) };
    }
    if let Some(rest) = strip_marker(line, b"...") {
        return LineKind::End { has_content: !is_blank(rest) };
    }
    match line.first() {
        Some(b'%') => LineKind::Directive,
        _ if is_blank(line) => LineKind::Blank,
        _ => LineKind::Content,
    }
}

/// Returns the rest after a marker, if the line starts with it as a whole word.
fn strip_marker<'l>(line: &'l [u8], marker: &[u8]) -> Option<&'l [u8]> {
    let rest = line.strip_prefix(marker)?;
    rest.first().is_none_or(|&byte| is_space(byte)).then_some(rest)
}

/// Returns true if (the rest of) a line is empty or a comment.
fn is_blank(line: &[u8]) -> bool {
    let mut spaces = line.iter().skip_while(|&&byte| is_space(byte));
    match spaces.next() {
        None => true,
        // To the parser a lone carriage return ends the comment and starts a new line.
        Some(b'#') => !line.trim_ascii_end().contains(&b'\r'),
        Some(_) => false,
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
