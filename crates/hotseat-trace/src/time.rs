//! Monotonic offsets, used by checks, and wall times, used for display.

use std::fmt;
use std::ops::Sub;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Wall time as milliseconds since the Unix epoch.
pub type Millis = i64;

/// Microseconds on a monotonic clock since the session was opened.
///
/// Checks compute durations as differences of offsets, so adjusting the system clock during a conversation
/// has no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeOffset(pub u64);

impl TimeOffset {
    /// Creates an offset from milliseconds since the start of the session.
    pub const fn from_millis(millis: u64) -> Self {
        TimeOffset(millis * 1000)
    }
}

impl From<Duration> for TimeOffset {
    fn from(since_opening: Duration) -> Self {
        TimeOffset(u64::try_from(since_opening.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Sub for TimeOffset {
    type Output = Duration;

    /// Returns the time between two offsets; zero if `earlier` is later.
    fn sub(self, earlier: TimeOffset) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for TimeOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.0 as f64 / 1e6)
    }
}
