//! Marks in texts, and what counts as a secret.

/// Beginning of the text that replaces a secret.
pub const REDACTION_MARK: &str = "[redacted:";

/// Mark of omitted text.
pub(super) const ELLIPSIS: &str = "…";

/// Minimum length of a secret. Redacting shorter values would mangle ordinary text.
pub(super) const MIN_SECRET_BYTES: usize = 4;
