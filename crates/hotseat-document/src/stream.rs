//! What the readers of streams share, whatever syntax they read.

use std::io;
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::place::{Place, Source};

/// A document that is longer than this is refused, so that a wrong file cannot fill the memory.
pub(super) const LONGEST: usize = 64 * 1024 * 1024;

/// How deep a document may be nested. Walking a tree stays far from the end of the stack, and a value that is
/// stored as JSON within other JSON stays below the 128 levels that are read back.
pub(super) const DEEPEST: usize = 100;

pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// A file that cannot be read any further than to this line.
pub(super) fn unreadable(name: &Arc<str>, error: &io::Error, line: u32) -> Diagnostic {
    let source = Source::new(Arc::clone(name), "", line);
    Diagnostic::new(format!("the file cannot be read: {error}")).at(Place::new(&source, 0..0))
}

/// A document that begins on this line and is too long.
pub(super) fn too_long(name: &Arc<str>, line: u32) -> Diagnostic {
    let source = Source::new(Arc::clone(name), "", line);
    Diagnostic::new("this document is larger than 64 MiB").at(Place::new(&source, 0..0))
}

/// Bytes that are text up to `at` and not there.
pub(super) fn not_utf8(name: &Arc<str>, bytes: &[u8], at: usize, line: u32, column: u32) -> Diagnostic {
    let source = Source::starting_at(Arc::clone(name), String::from_utf8_lossy(bytes), line, column);
    let at = at - (bytes.len() - bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).len());
    let span = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
    let mistake = Diagnostic::new("this is not UTF-8").at(Place::new(&source, span));
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return mistake.help("the file is UTF-16; save it as UTF-8");
    }
    mistake.help("save the file as UTF-8")
}
