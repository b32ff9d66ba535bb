//! A value with the time it takes.

use std::time::Duration;

/// Something that is there after a while. Who holds it decides what waiting means: a driver in real time sleeps, a
/// simulator moves its clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed<T> {
    /// The time until the value is there.
    pub delay: Duration,
    /// The value.
    pub value: T,
}

impl<T> Timed<T> {
    /// A value that is there at once.
    pub fn now(value: T) -> Self {
        Timed { delay: Duration::ZERO, value }
    }
}
