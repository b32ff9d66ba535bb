//! Two kinds of time: monotonic offsets decide, wall times are for people.

use std::fmt;
use std::ops::Sub;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Wall time as milliseconds since the Unix epoch.
pub type Millis = i64;

/// Microseconds on a monotonic clock since the session was opened.
///
/// Every duration that a check looks at is a difference of two offsets, so a clock that is set while a
/// conversation runs changes nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub u64);

impl Offset {
    /// The offset `millis` milliseconds after the opening of the session.
    pub const fn from_millis(millis: u64) -> Self {
        Offset(millis * 1000)
    }
}

impl From<Duration> for Offset {
    fn from(since_opening: Duration) -> Self {
        Offset(u64::try_from(since_opening.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Sub for Offset {
    type Output = Duration;

    /// The time between two offsets; zero if `earlier` is the later one.
    fn sub(self, earlier: Offset) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.0 as f64 / 1e6)
    }
}
