//! Marks in texts, and what counts as a secret.

/// Beginning of the text that replaces a secret.
pub const REDACTION_MARK: &str = "[redacted:";

/// Returns the text that replaces a secret.
pub(super) fn redaction_mark(name: &str) -> String {
    format!("{REDACTION_MARK}{name}]")
}

/// Returns the names of the redacted secrets in a text.
pub fn redacted_names(text: &str) -> impl Iterator<Item = &str> {
    text.split(REDACTION_MARK).skip(1).filter_map(|rest| Some(rest.split_once(']')?.0))
}

/// Mark of omitted text.
pub(super) const ELLIPSIS: &str = "…";

/// Minimum length of a secret. Redacting shorter values would mangle ordinary text.
pub(super) const MIN_SECRET_BYTES: usize = 4;
