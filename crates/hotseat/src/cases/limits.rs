//! Times as users write them.

use std::time::Duration;

/// A number of milliseconds as a duration; what is negative is none.
pub fn millis(value: i64) -> Duration {
    Duration::from_millis(u64::try_from(value).unwrap_or(0))
}
