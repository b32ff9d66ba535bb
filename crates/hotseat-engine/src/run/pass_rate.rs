//! The required pass rate of repeated cases.

use serde::{Deserialize, Serialize};

/// A required pass rate, more than 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassRate(f64);

impl PassRate {
    /// Requires all attempts to pass.
    pub const ALL: PassRate = PassRate(1.0);

    /// Creates a pass rate. Returns `None` unless it is more than 0 and at most 1.
    pub fn new(part: f64) -> Option<PassRate> {
        (part > 0.0 && part <= 1.0).then_some(PassRate(part))
    }

    /// The pass rate as a fraction.
    pub fn as_fraction(self) -> f64 {
        self.0
    }

    /// Number of attempts out of `runs` that have to pass.
    pub fn required_passes(self, runs: usize) -> usize {
        // Tolerates floating-point error above a whole number.
        (runs as f64 * self.0 - 1e-9).ceil() as usize
    }
}
