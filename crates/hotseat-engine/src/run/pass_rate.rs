//! The required pass rate of repeated cases.

use std::str::FromStr;

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
        ((runs as f64 * self.0 - 1e-9).ceil() as usize).max(1)
    }
}

/// A text that is no pass rate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a pass rate: more than 0 and at most 1, or up to 100%")]
pub struct PassRateError;

impl FromStr for PassRate {
    type Err = PassRateError;

    /// Reads a fraction (`0.8`) or a percentage (`80%`).
    fn from_str(text: &str) -> Result<PassRate, PassRateError> {
        let part = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
            None => text.parse::<f64>(),
        };
        part.ok().and_then(PassRate::new).ok_or(PassRateError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_one_attempt_has_to_pass() {
        for (part, runs, required) in
            [(1e-300, 3, 1), (0.8, 5, 4), (2.0 / 3.0, 3, 2), (0.67, 3, 3), (1.0, 2, 2)]
        {
            let rate = PassRate::new(part).unwrap();
            assert_eq!(rate.required_passes(runs), required, "{part} of {runs}");
        }
    }
}
