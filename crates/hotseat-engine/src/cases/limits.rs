//! Ranges of numbers in case files, and decoding of time limits.

use std::time::Duration;

use hotseat_document::{Diagnostics, Kind, MapView, NodeView, document_shape};

/// A time in milliseconds, at most one week.
pub(crate) const MILLISECONDS: Kind = Kind::Integer { min: 1, max: 7 * 24 * 3600 * 1000 };
/// A number of turns, calls or the like.
pub(super) const TIMES: Kind = Kind::Integer { min: 0, max: 1_000_000 };
/// A number of tokens.
pub(super) const TOKENS: Kind = Kind::Integer { min: 0, max: 1_000_000_000_000 };

document_shape! {
    /// Time limit as a duration: `500ms`, `30s`, `1m30s`.
    pub(super) const TIMEOUT: optional "timeout" = Kind::Duration,
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
    read_duration(view, diagnostics)
}

/// Decodes a duration.
pub(super) fn read_duration(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<Duration> {
    let read = parse_duration(view.text()?);
    read.map_err(|words| diagnostics.report(view.place(), format!("invalid duration: {words}"))).ok()
}

/// Parses a time limit.
///
/// # Errors
/// What is expected instead, if it is not a duration, has no unit, is zero, or is longer than one week.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    if text.trim().parse::<f64>().is_ok_and(|number| number > 0.0) {
        return Err(format!(
            "a number needs a unit: write {0}s for seconds, or {0}ms for milliseconds",
            text.trim()
        ));
    }
    let Ok(duration) = text.parse::<jiff::SignedDuration>() else {
        let expected = "expected numbers with the units h, m, s and ms, such as 500ms, 30s or 1m30s, at most one week (168h)";
        return Err(expected.to_string());
    };
    let duration = Duration::try_from(duration).unwrap_or_default();
    if duration.is_zero() || duration > MAX_DURATION {
        return Err("it must be more than zero and at most one week (168h)".to_string());
    }
    Ok(duration)
}
