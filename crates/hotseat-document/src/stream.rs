//! Limits and errors shared by the YAML and JSON stream readers.

use std::io;
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::place::{SourceSpan, SourceText};

/// Maximum size of a document, so that a wrong file cannot fill the memory.
pub(super) const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// Maximum nesting depth. Tree walks stay far from the end of the stack, and JSON stored within other JSON
/// stays below the 128 levels that serde_json accepts.
pub(super) const MAX_DEPTH: usize = 100;

/// Advice about a character that looks like a space and is none.
pub(super) const NO_BREAK_SPACE_ADVICE: &str =
    "this is a no-break space (U+00A0), which YAML reads as text; write a space";

pub(super) const NO_BREAK_SPACE: char = '\u{A0}';

pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Error for a file that cannot be read beyond `line`.
pub(super) fn unreadable(name: &Arc<str>, error: &io::Error, line: u32) -> Diagnostic {
    let source = SourceText::new(Arc::clone(name), "", line);
    Diagnostic::new(format!("the file cannot be read: {error}")).at(SourceSpan::new(&source, 0..0))
}

/// Error for a document that starts on `line` and is too long.
pub(super) fn too_long(name: &Arc<str>, line: u32) -> Diagnostic {
    let source = SourceText::new(Arc::clone(name), "", line);
    Diagnostic::new("this document is larger than 64 MiB").at(SourceSpan::new(&source, 0..0))
}

/// Returns the content of a file as source.
///
/// # Errors
/// If it is not UTF-8.
pub fn source_from_bytes(
    name: impl Into<Arc<str>>,
    bytes: Vec<u8>,
) -> Result<Arc<SourceText>, Box<Diagnostic>> {
    source_at(&name.into(), bytes, 1, 1).map_err(Box::new)
}

/// Returns a part of a file as source.
pub(super) fn source_at(
    name: &Arc<str>,
    bytes: Vec<u8>,
    line: u32,
    column: u32,
) -> Result<Arc<SourceText>, Diagnostic> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceText::starting_at(Arc::clone(name), text, line, column)),
        Err(error) => Err(not_utf8(name, error.as_bytes(), error.utf8_error().valid_up_to(), line, column)),
    }
}

/// Error for bytes that are valid UTF-8 only up to `at`.
fn not_utf8(name: &Arc<str>, bytes: &[u8], at: usize, line: u32, column: u32) -> Diagnostic {
    let source = SourceText::starting_at(Arc::clone(name), String::from_utf8_lossy(bytes), line, column);
    let at = at - (bytes.len() - bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).len());
    let span = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
    let mistake = Diagnostic::new("this is not UTF-8").at(SourceSpan::new(&source, span));
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return mistake.help("the file is UTF-16; save it as UTF-8");
    }
    mistake.help("save the file as UTF-8")
}
