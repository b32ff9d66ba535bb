//! Splits a JSON stream into values.

use std::io::{self, BufRead};
use std::mem;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::place::{SourceSpan, SourceText};
use crate::stream::{BYTE_ORDER_MARK, MAX_DOCUMENT_BYTES, source_at, too_long, unreadable};

/// Iterator over the values of a stream.
///
/// Each item is a source that starts where the value does; [`parse`](super::parse) decides whether it is
/// valid JSON. A value that is certainly invalid (an unclosed string, mismatched brackets) ends there; the
/// search continues at the next `{` that starts a line in the same column, so one error does not hide the
/// values after it.
#[derive(Debug)]
pub struct JsonStream<R> {
    bytes: ByteReader<R>,
    name: Arc<str>,
    wrapper: &'static str,
    layout: StreamState,
    /// True if more values may follow a leading list.
    values_after_list: bool,
}

/// Expected syntax at the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    /// Anything: nothing has been read.
    Start,
    /// Another value of a sequence.
    Stream,
    /// First entry or end of the list that spans the file.
    ListStart(FileList),
    Entry(FileList),
    /// A comma or the end of the list.
    AfterEntry(FileList),
    /// End of the file.
    End,
    /// Nothing; the iterator is exhausted.
    Finished,
}

/// The list that spans the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileList {
    /// True if the list is a member of an object.
    wrapped: bool,
    /// Position of its bracket.
    line: u32,
    column: u32,
}

/// The bytes of one value.
struct ScannedValue {
    bytes: Vec<u8>,
    line: u32,
    column: u32,
    /// True if the value cannot be valid JSON.
    broken: bool,
}

impl<R: BufRead> JsonStream<R> {
    pub(super) fn new(name: Arc<str>, reader: R, wrapper: &'static str) -> Self {
        let bytes = ByteReader { reader, line: 1, column: 1, at_start: true, put_back: Vec::new() };
        JsonStream { bytes, name, wrapper, layout: StreamState::Start, values_after_list: false }
    }

    /// Accepts values after a leading list, which is otherwise an error. Later lists are values as a whole:
    /// in a file with one list per line, only the first one is split.
    #[must_use]
    pub fn allow_after_lists(mut self) -> Self {
        self.values_after_list = true;
        self
    }

    fn read(&mut self) -> Result<Option<Arc<SourceText>>, Diagnostic> {
        loop {
            self.skip_blank()?;
            let Some(byte) = self.peek()? else { return self.at_end() };
            let next = match (self.layout, byte) {
                (StreamState::Start, b'[') => {
                    let ByteReader { line, column, .. } = self.bytes;
                    StreamState::ListStart(FileList { wrapped: false, line, column })
                }
                (StreamState::ListStart(list), b']') | (StreamState::AfterEntry(list), b']') => {
                    self.bytes.bump();
                    self.close(list)?;
                    continue;
                }
                (StreamState::AfterEntry(list), b',') => StreamState::Entry(list),
                (StreamState::AfterEntry(_), _) => {
                    return self.stop_with_error("`,` or `]` is missing", None);
                }
                (StreamState::Entry(_), b']') => {
                    let help = "remove the comma after the last entry";
                    return self.stop_with_error("a value is missing after the previous comma", Some(help));
                }
                (StreamState::ListStart(_) | StreamState::Entry(_), b',') => {
                    return self.stop_with_error("a value is missing before this comma", None);
                }
                (StreamState::Start | StreamState::Stream, b',') => {
                    let help = "commas separate only the entries of a list, between `[` and `]`";
                    return self.stop_with_error("unexpected comma between values", Some(help));
                }
                (StreamState::End, _) if self.values_after_list => {
                    self.layout = StreamState::Stream;
                    continue;
                }
                (StreamState::End, _) => {
                    return self.stop_with_error("unexpected text after the list of cases", None);
                }
                (
                    StreamState::Start
                    | StreamState::Stream
                    | StreamState::ListStart(_)
                    | StreamState::Entry(_),
                    _,
                ) => match self.value()? {
                    Some(source) => return source.map(Some),
                    None => continue,
                },
                (StreamState::Finished, _) => return Ok(None),
            };
            self.bytes.bump();
            self.layout = next;
        }
    }

    /// Reads a value. Returns `None` at the start of the list that spans the file.
    fn value(&mut self) -> Result<Option<Result<Arc<SourceText>, Diagnostic>>, Diagnostic> {
        let Some(scanned) = self.scan()? else {
            // The bracket has just been read.
            let (line, column) = (self.bytes.line, self.bytes.column.saturating_sub(1));
            self.layout = StreamState::ListStart(FileList { wrapped: true, line, column });
            return Ok(None);
        };
        self.layout = match self.layout {
            StreamState::ListStart(list) | StreamState::Entry(list) if scanned.broken => {
                StreamState::Entry(list)
            }
            StreamState::ListStart(list) | StreamState::Entry(list) => StreamState::AfterEntry(list),
            StreamState::Start
            | StreamState::Stream
            | StreamState::AfterEntry(_)
            | StreamState::End
            | StreamState::Finished => StreamState::Stream,
        };
        if scanned.broken && !self.find_next(scanned.column)? {
            self.layout = StreamState::Finished;
        }
        Ok(Some(self.source(scanned)))
    }

    /// Reads to the end of a value.
    fn scan(&mut self) -> Result<Option<ScannedValue>, Diagnostic> {
        let (line, column) = (self.bytes.line, self.bytes.column);
        if self.layout != StreamState::Start
            && let Some(bytes) = self.bytes.take_line_object()
        {
            return Ok(Some(ScannedValue { bytes, line, column, broken: false }));
        }
        let mut scanned = ScannedValue { bytes: Vec::new(), line, column, broken: false };
        let mut open: Vec<u8> = Vec::new();
        // Last significant byte, and the first significant bytes.
        let mut last = 0;
        let mut first: Vec<u8> = Vec::new();
        let wrapper = match self.layout {
            StreamState::Start => Some(format!("{{\"{}\":[", self.wrapper).into_bytes()),
            _ => None,
        };
        while let Some(byte) = self.peek()? {
            if scanned.bytes.len() > MAX_DOCUMENT_BYTES {
                return Err(too_long(&self.name, line));
            }
            let length = scanned.bytes.len();
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' if open.is_empty() => break,
                b' ' | b'\t' | b'\r' | b'\n' => self.push(&mut scanned),
                b'/' if open.is_empty() => break,
                b'/' => self.comment(&mut scanned)?,
                // A `{` in the starting column must follow a comma, a colon or a bracket; otherwise the
                // previous value is unclosed.
                b'{' if !open.is_empty()
                    && !matches!(last, b',' | b':' | b'[')
                    && self.bytes.column == column =>
                {
                    scanned.broken = true;
                    break;
                }
                b'{' | b'[' => {
                    self.push(&mut scanned);
                    open.push(if byte == b'{' { b'}' } else { b']' });
                }
                b'}' | b']' if open.is_empty() => {
                    if scanned.bytes.is_empty() {
                        self.push(&mut scanned);
                        scanned.broken = true;
                    }
                    break;
                }
                b'}' | b']' => {
                    self.push(&mut scanned);
                    scanned.broken = open.pop() != Some(byte);
                }
                b',' if open.is_empty() => break,
                b'"' if open.is_empty() && !scanned.bytes.is_empty() => break,
                b'"' => scanned.broken = !self.text(&mut scanned)?,
                _ => self.push(&mut scanned),
            }
            let is_significant = !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'/');
            if is_significant {
                last = byte;
            }
            if let Some(wrapper) = &wrapper
                && is_significant
                && first.len() < wrapper.len()
            {
                first.extend_from_slice(&scanned.bytes[length..]);
                if first == *wrapper {
                    return Ok(None);
                }
            }
            if scanned.broken || (open.is_empty() && matches!(byte, b'}' | b']' | b'"')) {
                break;
            }
        }
        // A bare word is not a case, and its intention cannot be guessed.
        let is_word = !matches!(scanned.bytes.first(), Some(b'{' | b'[' | b'"'));
        scanned.broken |= !open.is_empty() || (is_word && !is_literal(&scanned.bytes));
        Ok(Some(scanned))
    }

    fn push(&mut self, scanned: &mut ScannedValue) {
        scanned.bytes.extend(self.bytes.bump());
    }

    /// Reads a string. Returns false if its line ends first.
    fn text(&mut self, scanned: &mut ScannedValue) -> Result<bool, Diagnostic> {
        self.push(scanned);
        let mut escaped = false;
        while let Some(byte) = self.peek()? {
            if byte == b'\n' {
                return Ok(false);
            }
            if scanned.bytes.len() > MAX_DOCUMENT_BYTES {
                return Err(too_long(&self.name, scanned.line));
            }
            if !escaped && self.bytes.take_plain_text(&mut scanned.bytes) {
                continue;
            }
            self.push(scanned);
            match byte {
                _ if escaped => escaped = false,
                b'"' => return Ok(true),
                b'\\' => escaped = true,
                _ => {}
            }
        }
        Ok(false)
    }

    /// Reads a comment. A lone slash is one byte like any other.
    fn comment(&mut self, scanned: &mut ScannedValue) -> Result<(), Diagnostic> {
        self.push(scanned);
        let is_block = match self.peek()? {
            Some(b'/') => false,
            Some(b'*') => true,
            _ => return Ok(()),
        };
        self.push(scanned);
        let start = scanned.bytes.len();
        while let Some(byte) = self.peek()? {
            if !is_block && byte == b'\n' || scanned.bytes.len() > MAX_DOCUMENT_BYTES {
                return Ok(());
            }
            self.push(scanned);
            if is_block && byte == b'/' && scanned.bytes[start..].ends_with(b"*/") {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Skips white space and comments between values.
    fn skip_blank(&mut self) -> Result<(), Diagnostic> {
        while let Some(byte) = self.peek()? {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.bytes.bump();
                }
                b'/' => {
                    let mut comment = ScannedValue {
                        bytes: Vec::new(),
                        line: self.bytes.line,
                        column: self.bytes.column,
                        broken: true,
                    };
                    self.comment(&mut comment)?;
                    let is_line = comment.bytes.starts_with(b"//");
                    let is_block = comment.bytes.len() >= 4
                        && comment.bytes.starts_with(b"/*")
                        && comment.bytes.ends_with(b"*/");
                    if !is_line && !is_block {
                        self.layout = StreamState::Finished;
                        let message = match comment.bytes.len() {
                            1 => "expected a value or a comment, found `/`",
                            _ => "this comment has no end",
                        };
                        return Err(self.error_at(message, comment.line, comment.column));
                    }
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Skips to the next possible value after a broken one: a `{` that starts a line in the same column.
    fn find_next(&mut self, column: u32) -> Result<bool, Diagnostic> {
        let mut is_line_start = self.bytes.column == 1;
        while let Some(byte) = self.peek()? {
            match byte {
                b'{' if self.bytes.column == column && (is_line_start || column == 1) => return Ok(true),
                b'\n' => is_line_start = true,
                b' ' | b'\t' => {}
                _ => is_line_start = false,
            }
            self.bytes.bump();
        }
        Ok(false)
    }

    /// Ends the list, and the object around it if it is a member.
    fn close(&mut self, list: FileList) -> Result<(), Diagnostic> {
        self.layout = StreamState::End;
        if !list.wrapped {
            return Ok(());
        }
        self.skip_blank()?;
        match self.peek()? {
            Some(b'}') => {
                self.bytes.bump();
                Ok(())
            }
            _ => {
                let help = format!("`{}` must be the only key", self.wrapper);
                self.stop_with_error::<()>("`}` is missing after the list", Some(&help)).map(drop)
            }
        }
    }

    fn at_end(&mut self) -> Result<Option<Arc<SourceText>>, Diagnostic> {
        match mem::replace(&mut self.layout, StreamState::Finished) {
            StreamState::Start | StreamState::Stream | StreamState::End | StreamState::Finished => Ok(None),
            StreamState::ListStart(list) | StreamState::Entry(list) | StreamState::AfterEntry(list) => {
                // The end of the file may be an empty line.
                let source = SourceText::starting_at(Arc::clone(&self.name), "[", list.line, list.column);
                let mistake = Diagnostic::new("`]` is missing at the end of the list that begins here");
                let help = format!("the file ends in line {}, within the list", self.bytes.line);
                Err(mistake.at(SourceSpan::new(&source, 0..1)).help(help))
            }
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, Diagnostic> {
        self.bytes.peek().map_err(|error| {
            self.layout = StreamState::Finished;
            unreadable(&self.name, &error, self.bytes.line)
        })
    }

    /// Ends the stream with an error, since the start of the next value is unknown.
    fn stop_with_error<T>(&mut self, message: &str, help: Option<&str>) -> Result<Option<T>, Diagnostic> {
        let (line, column) = (self.bytes.line, self.bytes.column);
        let mistake = self.error_at(message, line, column);
        self.layout = StreamState::Finished;
        Err(Diagnostic { help: help.map(str::to_owned), ..mistake })
    }

    /// Error at a position, shown with the unread rest of its line.
    fn error_at(&mut self, message: &str, line: u32, column: u32) -> Diagnostic {
        let mut rest = Vec::new();
        if (line, column) == (self.bytes.line, self.bytes.column) {
            while let Ok(Some(byte)) = self.bytes.peek() {
                if byte == b'\n' || rest.len() >= MAX_SHOWN_BYTES {
                    break;
                }
                rest.extend(self.bytes.bump());
            }
        }
        let text = String::from_utf8_lossy(&rest);
        let end = text.chars().next().map_or(0, char::len_utf8);
        let source = SourceText::starting_at(Arc::clone(&self.name), text, line, column);
        Diagnostic::new(message).at(SourceSpan::new(&source, 0..end))
    }

    fn source(&self, scanned: ScannedValue) -> Result<Arc<SourceText>, Diagnostic> {
        let ScannedValue { bytes, line, column, .. } = scanned;
        source_at(&self.name, bytes, line, column)
    }
}

impl<R: BufRead> Iterator for JsonStream<R> {
    type Item = Result<Arc<SourceText>, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.layout == StreamState::Finished {
            return None;
        }
        let read = self.read();
        if read.is_err() && self.layout == StreamState::Start {
            self.layout = StreamState::Finished;
        }
        read.transpose()
    }
}

/// Number of bytes of a line shown after an error.
const MAX_SHOWN_BYTES: usize = 200;

fn is_literal(bytes: &[u8]) -> bool {
    matches!(bytes, b"null" | b"true" | b"false")
        || str::from_utf8(bytes).is_ok_and(|text| super::number::parse_number(text).is_ok())
}

/// Returns the length of the leading object, if it ends on its first line and contains no comments.
fn line_object_length(bytes: &[u8]) -> Option<usize> {
    const MAX_OPEN: usize = 64;
    // The open brackets, innermost last: 1 for an object, 0 for a list.
    let (mut brackets, mut depth) = (0_u64, 0);
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            open @ (b'{' | b'[') if depth < MAX_OPEN => {
                brackets = brackets << 1 | u64::from(open == b'{');
                depth += 1;
            }
            close @ (b'}' | b']') if depth > 0 && (brackets & 1 == 1) == (close == b'}') => {
                brackets >>= 1;
                depth -= 1;
            }
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' | b'}' | b']' | b'\n' | b'/' => return None,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at).filter(|_| bytes[0] == b'{');
        }
    }
}

/// Returns the offset of the quote that ends a string on its line.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr3(b'"', b'\\', b'\n', bytes.get(at..)?)?;
        match bytes[at] {
            b'"' => return Some(at),
            b'\\' if bytes.get(at + 1) != Some(&b'\n') => at += 2,
            _ => return None,
        }
    }
}

/// Reads a stream byte by byte and tracks the position.
#[derive(Debug)]
struct ByteReader<R> {
    reader: R,
    line: u32,
    /// Counted in characters.
    column: u32,
    at_start: bool,
    /// Bytes read while looking for a byte order mark; the next one is last.
    put_back: Vec<u8>,
}

impl<R: BufRead> ByteReader<R> {
    fn peek(&mut self) -> io::Result<Option<u8>> {
        if mem::take(&mut self.at_start) {
            self.skip_mark()?;
        }
        match self.put_back.last() {
            Some(&byte) => Ok(Some(byte)),
            None => self.peek_reader(),
        }
    }

    /// Returns the next byte of the reader.
    fn peek_reader(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.reader.fill_buf() {
                Ok(buffer) => return Ok(buffer.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Consumes the next byte.
    fn bump(&mut self) -> Option<u8> {
        let byte = match self.put_back.pop() {
            Some(byte) => byte,
            None => {
                let byte = self.reader.fill_buf().ok()?.first().copied()?;
                self.reader.consume(1);
                byte
            }
        };
        match byte {
            b'\n' => (self.line, self.column) = (self.line.saturating_add(1), 1),
            // Continuation byte of a character.
            0x80..=0xBF => {}
            _ => self.column = self.column.saturating_add(1),
        }
        Some(byte)
    }

    /// Appends the buffered bytes up to the next quote, backslash or line break. Returns false if there are
    /// none. Reading strings byte by byte would take most of the time of splitting.
    fn take_plain_text(&mut self, out: &mut Vec<u8>) -> bool {
        if !self.put_back.is_empty() {
            return false;
        }
        let Ok(buffer) = self.reader.fill_buf() else { return false };
        let length = memchr::memchr3(b'"', b'\\', b'\n', buffer).unwrap_or(buffer.len());
        let text = &buffer[..length];
        // Continuation bytes do not start a character.
        let characters = text.iter().filter(|byte| !matches!(byte, 0x80..=0xBF)).count();
        self.column = self.column.saturating_add(u32::try_from(characters).unwrap_or(u32::MAX));
        out.extend_from_slice(text);
        self.reader.consume(length);
        length > 0
    }

    /// Takes a whole object if it is buffered, on one line and without comments. Reading the lines of a large file
    /// byte by byte would take most of the time of splitting.
    fn take_line_object(&mut self) -> Option<Vec<u8>> {
        if !self.put_back.is_empty() {
            return None;
        }
        let buffer = self.reader.fill_buf().ok()?;
        let object = buffer[..line_object_length(buffer)?].to_vec();
        let characters = object.iter().filter(|byte| !matches!(byte, 0x80..=0xBF)).count();
        self.column = self.column.saturating_add(u32::try_from(characters).unwrap_or(u32::MAX));
        self.reader.consume(object.len());
        Some(object)
    }

    /// Skips a byte order mark.
    fn skip_mark(&mut self) -> io::Result<()> {
        let mut read = Vec::new();
        for &byte in BYTE_ORDER_MARK {
            if self.peek_reader()? != Some(byte) {
                read.reverse();
                self.put_back = read;
                return Ok(());
            }
            self.reader.consume(1);
            read.push(byte);
        }
        Ok(())
    }
}
