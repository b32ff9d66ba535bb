//! Ranges of numbers in case files, and decoding of time limits.

use std::time::Duration;

use hotseat_document::{Diagnostic, Diagnostics, Kind, MapView, document_shape};

/// A time in milliseconds, at most one week.
pub(crate) const MILLISECONDS: Kind = Kind::Integer { min: 1, max: 7 * 24 * 3600 * 1000 };
/// A number of turns, calls or the like.
pub(super) const TIMES: Kind = Kind::Integer { min: 0, max: 1_000_000 };
/// A number of tokens.
pub(super) const TOKENS: Kind = Kind::Integer { min: 0, max: 1_000_000_000_000 };

document_shape! {
    /// Time limit as a duration: `500ms`, `30s`, `1m30s`.
    pub(super) const TIMEOUT: optional "timeout" = Kind::NonEmptyText,
}

/// Converts milliseconds to a duration. Negative values become zero.
pub fn from_millis(value: i64) -> Duration {
    Duration::from_millis(u64::try_from(value).unwrap_or(0))
}

/// Maximum duration in case files.
const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Decodes the time limit of a case or turn: `timeout_ms`, or `timeout` as a duration.
pub(super) fn read_timeout(map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Duration> {
    let in_millis = map.integer("timeout_ms").map(from_millis);
    let Some(view) = map.get("timeout") else { return in_millis };
    if in_millis.is_some() {
        diagnostics.report(view.place(), "`timeout` and `timeout_ms` set the same limit; remove one");
        return in_millis;
    }
    let read = parse_duration(view.text().unwrap_or_default());
    if read.is_none() {
        let wrong = Diagnostic::new("invalid duration: it must be more than zero and at most one week")
            .at(view.place());
        diagnostics.push(wrong.help("for example `500ms`, `30s` or `1m30s`"));
    }
    read
}

/// Parses a duration. Returns `None` if it is invalid, zero or longer than one week.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let duration: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(duration).ok().filter(|duration| !duration.is_zero() && *duration <= MAX_DURATION)
}
