//! Times as users write them.

use std::time::Duration;

use super::variables::mistake;
use hotseat_document::{Diagnostics, Map};

/// A number of milliseconds as a duration; what is negative is none.
pub fn millis(value: i64) -> Duration {
    Duration::from_millis(u64::try_from(value).unwrap_or(0))
}

/// The longest duration that may be written.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// The time limit of a case or turn: `timeout_ms`, or the same as a duration, `timeout`.
pub(super) fn timeout(map: &Map<'_>, mistakes: &mut Diagnostics) -> Option<Duration> {
    let in_millis = map.integer("timeout_ms").map(millis);
    let Some(view) = map.get("timeout") else { return in_millis };
    if in_millis.is_some() {
        mistakes
            .push(mistake(Some(view.place()), "`timeout` and `timeout_ms` are two spellings of one limit"));
        return in_millis;
    }
    let read = duration(view.text().unwrap_or_default());
    if read.is_none() {
        let wrong = mistake(Some(view.place()), "this is not a duration of up to a week");
        mistakes.push(wrong.help("write for instance `500ms`, `30s` or `1m30s`"));
    }
    read
}

/// A duration as people write it; none of nothing.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let duration: jiff::SignedDuration = text.parse().ok()?;
    Duration::try_from(duration).ok().filter(|duration| !duration.is_zero() && *duration <= LONGEST)
}
