//! Taking a stream apart into values.

use std::io::{self, BufRead};
use std::mem;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::place::{Place, Source};
use crate::stream::{BYTE_ORDER_MARK, LONGEST, not_utf8, too_long, unreadable};

/// The values of a stream, one after the other.
///
/// Each is a source of its own that begins where the value does; whether it is JSON shows when it is
/// [parsed](super::parse). A value that certainly is not (a text that ends with its line, brackets that do not
/// match) ends there, and the next one is looked for where a `{` begins a line as far to the right, so that one
/// mistake does not hide the values behind it.
#[derive(Debug)]
pub struct Values<R> {
    bytes: Bytes<R>,
    name: Arc<str>,
    wrapper: &'static str,
    layout: Layout,
    /// Whether a list at the beginning may be followed by more.
    goes_on: bool,
}

/// What comes next in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Anything: nothing has been read.
    Start,
    /// Values that follow each other.
    Stream,
    /// The first entry of the list that the file is, or its end.
    ListStart(List),
    /// An entry of the list.
    Entry(List),
    /// A comma or the end of the list.
    BehindEntry(List),
    /// The end of the file.
    End,
    /// Nothing: it is over.
    Finished,
}

/// The list that a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct List {
    /// Whether it is the member of an object.
    wrapped: bool,
}

/// The bytes of one value.
struct Scanned {
    bytes: Vec<u8>,
    line: u32,
    column: u32,
    /// Whether it cannot be JSON.
    broken: bool,
}

impl<R: BufRead> Values<R> {
    pub(super) fn new(name: Arc<str>, reader: R, wrapper: &'static str) -> Self {
        let bytes = Bytes { reader, line: 1, column: 1, at_start: true, put_back: Vec::new() };
        Values { bytes, name, wrapper, layout: Layout::Start, goes_on: false }
    }

    /// Reads further values behind a list that the file begins with, where that would be a mistake. Those that are lists
    /// are values as a whole: in a file with a list on each line, only the first one is taken apart.
    #[must_use]
    pub fn behind_lists(mut self) -> Self {
        self.goes_on = true;
        self
    }

    fn read(&mut self) -> Result<Option<Arc<Source>>, Diagnostic> {
        loop {
            self.skip_blank()?;
            let Some(byte) = self.peek()? else { return self.at_end() };
            let next = match (self.layout, byte) {
                (Layout::Start, b'[') => Layout::ListStart(List { wrapped: false }),
                (Layout::ListStart(list), b']') | (Layout::BehindEntry(list), b']') => {
                    self.bytes.bump();
                    self.close(list)?;
                    continue;
                }
                (Layout::BehindEntry(list), b',') => Layout::Entry(list),
                (Layout::BehindEntry(_), _) => return self.give_up("`,` or `]` is missing", None),
                (Layout::Entry(_), b']') => {
                    let help = "behind the last entry there is no comma";
                    return self.give_up("behind the comma before this a value is missing", Some(help));
                }
                (Layout::ListStart(_) | Layout::Entry(_), b',') => {
                    return self.give_up("before this comma a value is missing", None);
                }
                (Layout::Start | Layout::Stream, b',') => {
                    let help = "only the entries of a list, between `[` and `]`, have commas between them";
                    return self.give_up("this comma stands between values", Some(help));
                }
                (Layout::End, _) if self.goes_on => {
                    self.layout = Layout::Stream;
                    continue;
                }
                (Layout::End, _) => return self.give_up("nothing may stand behind the list of cases", None),
                (Layout::Start | Layout::Stream | Layout::ListStart(_) | Layout::Entry(_), _) => {
                    match self.value()? {
                        Some(source) => return source.map(Some),
                        None => continue,
                    }
                }
                (Layout::Finished, _) => return Ok(None),
            };
            self.bytes.bump();
            self.layout = next;
        }
    }

    /// Reads a value. None if it was the beginning of the list that the file is.
    fn value(&mut self) -> Result<Option<Result<Arc<Source>, Diagnostic>>, Diagnostic> {
        let Some(scanned) = self.scan()? else {
            self.layout = Layout::ListStart(List { wrapped: true });
            return Ok(None);
        };
        self.layout = match self.layout {
            Layout::ListStart(list) | Layout::Entry(list) if scanned.broken => Layout::Entry(list),
            Layout::ListStart(list) | Layout::Entry(list) => Layout::BehindEntry(list),
            Layout::Start | Layout::Stream | Layout::BehindEntry(_) | Layout::End | Layout::Finished => {
                Layout::Stream
            }
        };
        if scanned.broken && !self.find_next(scanned.column)? {
            self.layout = Layout::Finished;
        }
        Ok(Some(self.source(scanned)))
    }

    /// Reads to the end of a value.
    fn scan(&mut self) -> Result<Option<Scanned>, Diagnostic> {
        let (line, column) = (self.bytes.line, self.bytes.column);
        let mut scanned = Scanned { bytes: Vec::new(), line, column, broken: false };
        let mut open: Vec<u8> = Vec::new();
        // The last byte that is neither space nor comment, and the first ones.
        let mut last = 0;
        let mut first: Vec<u8> = Vec::new();
        let wrapper = match self.layout {
            Layout::Start => Some(format!("{{\"{}\":[", self.wrapper).into_bytes()),
            _ => None,
        };
        while let Some(byte) = self.peek()? {
            if scanned.bytes.len() > LONGEST {
                return Err(too_long(&self.name, line));
            }
            let length = scanned.bytes.len();
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' if open.is_empty() => break,
                b' ' | b'\t' | b'\r' | b'\n' => self.push(&mut scanned),
                b'/' if open.is_empty() => break,
                b'/' => self.comment(&mut scanned)?,
                // On a line of its own a `{` follows a comma, a colon or a bracket, or the value before it is not closed.
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
        // A word at the top of a file is no case; what it was meant to be cannot be told.
        let is_word = !matches!(scanned.bytes.first(), Some(b'{' | b'[' | b'"'));
        scanned.broken |= !open.is_empty() || (is_word && !is_literal(&scanned.bytes));
        Ok(Some(scanned))
    }

    fn push(&mut self, scanned: &mut Scanned) {
        scanned.bytes.extend(self.bytes.bump());
    }

    /// Reads a text; false if its line ends before it does.
    fn text(&mut self, scanned: &mut Scanned) -> Result<bool, Diagnostic> {
        self.push(scanned);
        let mut escaped = false;
        while let Some(byte) = self.peek()? {
            if byte == b'\n' {
                return Ok(false);
            }
            if scanned.bytes.len() > LONGEST {
                return Err(too_long(&self.name, scanned.line));
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

    /// Reads a comment; a lone slash is one byte like any other.
    fn comment(&mut self, scanned: &mut Scanned) -> Result<(), Diagnostic> {
        self.push(scanned);
        let is_block = match self.peek()? {
            Some(b'/') => false,
            Some(b'*') => true,
            _ => return Ok(()),
        };
        self.push(scanned);
        let start = scanned.bytes.len();
        while let Some(byte) = self.peek()? {
            if !is_block && byte == b'\n' || scanned.bytes.len() > LONGEST {
                return Ok(());
            }
            self.push(scanned);
            if is_block && byte == b'/' && scanned.bytes[start..].ends_with(b"*/") {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Skips space and comments between values.
    fn skip_blank(&mut self) -> Result<(), Diagnostic> {
        while let Some(byte) = self.peek()? {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.bytes.bump();
                }
                b'/' => {
                    let mut comment = Scanned {
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
                        self.layout = Layout::Finished;
                        let message = match comment.bytes.len() {
                            1 => "expected a value or a comment, found `/`",
                            _ => "this comment has no end",
                        };
                        return Err(self.mistake(message, comment.line, comment.column));
                    }
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Goes on to where a value may begin behind one that is broken: a `{` that begins a line as far to the right.
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

    /// The list has ended; if it is a member, so must the object.
    fn close(&mut self, list: List) -> Result<(), Diagnostic> {
        self.layout = Layout::End;
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
                let help = format!("beside `{}` there is no other key", self.wrapper);
                self.give_up::<()>("`}` is missing behind the list", Some(&help)).map(drop)
            }
        }
    }

    fn at_end(&mut self) -> Result<Option<Arc<Source>>, Diagnostic> {
        match mem::replace(&mut self.layout, Layout::Finished) {
            Layout::Start | Layout::Stream | Layout::End | Layout::Finished => Ok(None),
            Layout::ListStart(_) | Layout::Entry(_) | Layout::BehindEntry(_) => {
                let (line, column) = (self.bytes.line, self.bytes.column);
                Err(self.mistake("`]` is missing at the end of the list", line, column))
            }
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, Diagnostic> {
        self.bytes.peek().map_err(|error| {
            self.layout = Layout::Finished;
            unreadable(&self.name, &error, self.bytes.line)
        })
    }

    /// What is wrong here leaves no way to tell where the next value begins.
    fn give_up<T>(&mut self, message: &str, help: Option<&str>) -> Result<Option<T>, Diagnostic> {
        let (line, column) = (self.bytes.line, self.bytes.column);
        let mistake = self.mistake(message, line, column);
        self.layout = Layout::Finished;
        Err(Diagnostic { help: help.map(str::to_owned), ..mistake })
    }

    /// A mistake at a place, shown with the rest of its line if that has not been read.
    fn mistake(&mut self, message: &str, line: u32, column: u32) -> Diagnostic {
        let mut rest = Vec::new();
        if (line, column) == (self.bytes.line, self.bytes.column) {
            while let Ok(Some(byte)) = self.bytes.peek() {
                if byte == b'\n' || rest.len() >= SHOWN {
                    break;
                }
                rest.extend(self.bytes.bump());
            }
        }
        let text = String::from_utf8_lossy(&rest);
        let end = text.chars().next().map_or(0, char::len_utf8);
        let source = Source::starting_at(Arc::clone(&self.name), text, line, column);
        Diagnostic::new(message).at(Place::new(&source, 0..end))
    }

    fn source(&self, scanned: Scanned) -> Result<Arc<Source>, Diagnostic> {
        let Scanned { bytes, line, column, .. } = scanned;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Source::starting_at(Arc::clone(&self.name), text, line, column)),
            Err(error) => {
                Err(not_utf8(&self.name, error.as_bytes(), error.utf8_error().valid_up_to(), line, column))
            }
        }
    }
}

impl<R: BufRead> Iterator for Values<R> {
    type Item = Result<Arc<Source>, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.layout == Layout::Finished {
            return None;
        }
        let read = self.read();
        if read.is_err() && self.layout == Layout::Start {
            self.layout = Layout::Finished;
        }
        read.transpose()
    }
}

/// How much of a line is shown behind a mistake.
const SHOWN: usize = 200;

fn is_literal(bytes: &[u8]) -> bool {
    matches!(bytes, b"null" | b"true" | b"false")
        || str::from_utf8(bytes).is_ok_and(|text| super::number::number(text).is_ok())
}

/// A stream byte by byte, with the place of the next one.
#[derive(Debug)]
struct Bytes<R> {
    reader: R,
    line: u32,
    /// Counted in characters.
    column: u32,
    at_start: bool,
    /// Bytes that were read to see whether they are a byte order mark, and are not; the next one is last.
    put_back: Vec<u8>,
}

impl<R: BufRead> Bytes<R> {
    fn peek(&mut self) -> io::Result<Option<u8>> {
        if mem::take(&mut self.at_start) {
            self.skip_mark()?;
        }
        match self.put_back.last() {
            Some(&byte) => Ok(Some(byte)),
            None => self.peek_behind(),
        }
    }

    /// The next byte of the reader.
    fn peek_behind(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.reader.fill_buf() {
                Ok(buffer) => return Ok(buffer.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the byte that was peeked at.
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
            // A byte that continues a character.
            0x80..=0xBF => {}
            _ => self.column = self.column.saturating_add(1),
        }
        Some(byte)
    }

    /// Skips a byte order mark.
    fn skip_mark(&mut self) -> io::Result<()> {
        let mut read = Vec::new();
        for &byte in BYTE_ORDER_MARK {
            if self.peek_behind()? != Some(byte) {
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
