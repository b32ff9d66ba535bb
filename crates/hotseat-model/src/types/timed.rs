//! Values with a delay.

use std::time::Duration;

/// A value that becomes available after a delay. The caller decides how to wait: a real-time driver sleeps, a
/// simulator advances its clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedValue<T> {
    /// Delay until the value is available.
    pub delay: Duration,
    /// The value.
    pub value: T,
}

impl<T> TimedValue<T> {
    /// Creates a value without delay.
    pub fn now(value: T) -> Self {
        TimedValue { delay: Duration::ZERO, value }
    }
}
