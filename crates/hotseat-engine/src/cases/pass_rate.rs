//! Rates as users write and read them, and the required pass rate of repeated cases.

use std::str::FromStr;

use hotseat_document::{Kind, MapView};
use serde::{Deserialize, Serialize};

/// Kind of a rate in a file: a fraction (`0.8`) or a percentage (`80%`).
pub(crate) const RATE: Kind = Kind::OneOf(&[Kind::Number, Kind::NonEmptyText]);

/// Reads a rate of a file. Returns NaN, which lies within no limits, for a text that is no rate.
pub(crate) fn read_rate(map: &MapView<'_>, key: &str) -> Option<f64> {
    let number = || map.number(key)?.as_f64();
    map.text(key).map(|text| parse_rate(text).unwrap_or(f64::NAN)).or_else(number)
}

/// Reads a fraction (`0.8`) or a percentage (`80%`).
pub fn parse_rate(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        // Divided by 100 as a number, `99.9%` would not be 0.999.
        Some(percent) => format!("{}e-2", percent.trim_end()).parse().ok(),
        None => text.parse().ok(),
    }
}

/// Formats a declared rate as a percentage: `90%`, `99.5%`. A rate below 1 is never `100%`, and a rate above 0 never `0%`.
pub fn format_rate(part: f64) -> String {
    let percent = part * 100.0;
    // Hides floating-point errors.
    let [coarse, fine] = [1e2, 1e10].map(|steps| (percent * steps).round() / steps);
    let is_limit = |shown: f64| shown == 0.0 || shown == 100.0;
    let shown = if is_limit(coarse) { fine } else { coarse };
    format!("{}%", if is_limit(shown) { percent } else { shown })
}

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
        parse_rate(text).and_then(PassRate::new).ok_or(PassRateError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_shown() {
        for (text, part, shown) in [
            ("0.8", 0.8, "80%"),
            ("80%", 0.8, "80%"),
            ("29 %", 0.29, "29%"),
            ("99.9%", 0.999, "99.9%"),
            ("0.99996", 0.99996, "99.996%"),
            ("0.00001", 0.00001, "0.001%"),
            ("0.0712", 0.0712, "7.12%"),
            ("100%", 1.0, "100%"),
            ("0", 0.0, "0%"),
            ("0.9999999999999999", 0.9999999999999999, "99.99999999999999%"),
        ] {
            assert_eq!((parse_rate(text), &*format_rate(part)), (Some(part), shown), "{text}");
        }
        for text in ["", "%", "x", "80%%", "8 0%", "80 percent"] {
            assert_eq!(parse_rate(text), None, "{text}");
        }
    }

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
