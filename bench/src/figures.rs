//! Comparison of measurements, and the result table.

use std::fmt;
use std::time::Duration;

/// Repeated measurements of Hotseat and of the baseline, in turn.
#[derive(Debug, Default)]
pub struct MeasuredPairs(Vec<(f64, f64)>);

/// Median and range of several measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueSpread {
    /// Median.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

/// Goal of a measurement.
#[derive(Debug, Clone, Copy)]
pub enum BenchGoal {
    /// No goal; the value is only shown.
    None,
    /// Hotseat reaches at least this fraction of the baseline.
    RatioAtLeast(f64),
    /// Hotseat needs at most this multiple of the baseline.
    RatioAtMost(f64),
    /// Hotseat's value is below this limit.
    Under(f64, BenchUnit),
    /// Hotseat's value is at most this limit.
    AtMost(f64, BenchUnit),
}

/// Unit of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchUnit {
    /// Cases per second.
    CasesPerSecond,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Mebibytes.
    Mebibytes,
    /// Ratio of two values.
    Times,
}

/// A row of the table.
#[derive(Debug)]
pub struct TableRow {
    /// Label.
    pub what: String,
    /// Unit.
    pub unit: BenchUnit,
    /// Measurements.
    pub pairs: MeasuredPairs,
    /// Goal.
    pub aim: BenchGoal,
}

impl MeasuredPairs {
    /// Adds a pair.
    pub fn push(&mut self, hotseat: f64, yardstick: f64) {
        self.0.push((hotseat, yardstick));
    }

    /// Returns the range of Hotseat's values.
    pub fn hotseat(&self) -> ValueSpread {
        ValueSpread::from_values(self.0.iter().map(|pair| pair.0))
    }

    /// Returns the range of the baseline's values.
    pub fn yardstick(&self) -> ValueSpread {
        ValueSpread::from_values(self.0.iter().map(|pair| pair.1))
    }

    /// Returns the range of the ratios, pair by pair: a temporary slowdown of the machine affects both values
    /// of a pair.
    pub fn ratio(&self) -> ValueSpread {
        ValueSpread::from_values(self.0.iter().map(|pair| pair.0 / pair.1))
    }
}

impl ValueSpread {
    fn from_values(figures: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        let (half, last) = (sorted.len() / 2, sorted.len().saturating_sub(1));
        let median =
            if sorted.len() % 2 == 1 { at(half) } else { (at(half.saturating_sub(1)) + at(half)) / 2.0 };
        ValueSpread { median, min: at(0), max: at(last) }
    }
}

impl BenchGoal {
    /// Returns true if the goal is met.
    fn is_met_by(self, pairs: &MeasuredPairs) -> bool {
        match self {
            BenchGoal::None => true,
            BenchGoal::RatioAtLeast(least) => pairs.ratio().median >= least,
            BenchGoal::RatioAtMost(most) => pairs.ratio().median <= most,
            BenchGoal::Under(limit, _) => pairs.hotseat().median < limit,
            BenchGoal::AtMost(limit, _) => pairs.hotseat().median <= limit,
        }
    }
}

impl TableRow {
    /// Returns true if the goal is met.
    pub fn is_met(&self) -> bool {
        self.aim.is_met_by(&self.pairs)
    }
}

impl fmt::Display for BenchGoal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchGoal::None => Ok(()),
            BenchGoal::RatioAtLeast(least) => write!(f, "ratio ≥ {least:.2}"),
            BenchGoal::RatioAtMost(most) => write!(f, "ratio ≤ {most:.1}"),
            BenchGoal::Under(limit, unit) => write!(f, "< {}", unit.show(*limit)),
            BenchGoal::AtMost(limit, unit) => write!(f, "≤ {}", unit.show(*limit)),
        }
    }
}

impl BenchUnit {
    fn show(self, figure: f64) -> String {
        match self {
            BenchUnit::CasesPerSecond => format!("{}/s", thousands(figure)),
            BenchUnit::Microseconds => format!("{} µs", thousands(figure)),
            BenchUnit::Milliseconds if figure >= 1000.0 => format!("{} ms", thousands(figure)),
            BenchUnit::Milliseconds => format!("{figure:.1} ms"),
            BenchUnit::Mebibytes => format!("{figure:.1} MiB"),
            BenchUnit::Times => format!("× {figure:.2}"),
        }
    }
}

/// Returns the header of the table.
pub fn table_header() -> String {
    format!("{:<40}{:>12}{:>12}   {:<20}{}", "", "hotseat", "yardstick", "ratio (min–max)", "aim")
}

impl fmt::Display for TableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableRow { what, unit, pairs, aim } = self;
        let (hotseat, yardstick) = (unit.show(pairs.hotseat().median), unit.show(pairs.yardstick().median));
        let ratio = pairs.ratio();
        let ratio = format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.min, ratio.max);
        write!(f, "{what:<40}{hotseat:>12}{yardstick:>12}   ")?;
        match (aim, self.is_met()) {
            (BenchGoal::None, _) => write!(f, "{ratio}"),
            (aim, true) => write!(f, "{ratio:<20}{aim}: met"),
            (aim, false) => write!(f, "{ratio:<20}{aim}: MISSED"),
        }
    }
}

/// Converts a duration to milliseconds.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Converts bytes to mebibytes.
pub fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

/// Formats a whole number with digits in groups of three.
pub fn thousands(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(figures: &[(f64, f64)]) -> MeasuredPairs {
        MeasuredPairs(figures.to_vec())
    }

    #[test]
    fn ratio_is_computed_per_pair() {
        let pairs = pairs(&[(1.0, 2.0), (30.0, 40.0), (5.0, 5.0)]);
        assert_eq!(pairs.ratio(), ValueSpread { median: 0.75, min: 0.5, max: 1.0 });
        assert_eq!((pairs.hotseat().median, pairs.yardstick().median), (5.0, 5.0));
    }

    #[test]
    fn median_of_two_is_their_mean() {
        assert_eq!(pairs(&[(1.0, 1.0), (2.0, 1.0)]).hotseat().median, 1.5);
    }

    #[test]
    fn row_shows_if_its_goal_is_met() {
        for (hotseat, words) in [(600.0, "ratio ≥ 0.60: met"), (599.0, "ratio ≥ 0.60: MISSED")] {
            let pairs = pairs(&[(hotseat, 1000.0)]);
            let row = TableRow {
                what: "a".to_string(),
                unit: BenchUnit::CasesPerSecond,
                pairs,
                aim: BenchGoal::RatioAtLeast(0.6),
            };
            assert!(row.to_string().ends_with(words), "{row}");
        }
        let at_most =
            |ratio| BenchGoal::RatioAtMost(ratio).is_met_by(&pairs(&[(6.0, 2.0), (8.0, 2.0), (90.0, 2.0)]));
        assert!(at_most(4.0) && !at_most(3.9), "the median ratio is 4");
        let under = BenchGoal::Under(20.0, BenchUnit::Milliseconds);
        assert!(!under.is_met_by(&pairs(&[(20.0, 1.0)])) && under.is_met_by(&pairs(&[(19.9, 1.0)])));
    }

    #[test]
    fn digits_are_grouped() {
        for (figure, words) in [(7.4, "7"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(thousands(figure), words);
        }
    }
}
