//! How the contestants compare, and the table that says so.

use std::fmt;
use std::time::Duration;

/// The same thing measured several times, of Hotseat and of the yardstick in turn.
#[derive(Debug, Default)]
pub struct Pairs(Vec<(f64, f64)>);

/// The middle and the ends of several figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub enum Aim {
    /// It is only shown.
    None,
    /// Hotseat has at least this part of the yardstick.
    RatioAtLeast(f64),
    /// Hotseat's figure is less than this.
    Under(f64, Unit),
    /// Hotseat's figure is at most this.
    AtMost(f64, Unit),
}

/// What a figure is a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Cases in a second.
    CasesPerSecond,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Mebibytes.
    Mebibytes,
    /// Something divided by something of its kind.
    Times,
}

/// A line of the table.
#[derive(Debug)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// In what.
    pub unit: Unit,
    /// What came of it.
    pub pairs: Pairs,
    /// What should come of it.
    pub aim: Aim,
}

impl Pairs {
    /// Adds a pair.
    pub fn push(&mut self, hotseat: f64, yardstick: f64) {
        self.0.push((hotseat, yardstick));
    }

    /// Hotseat's figures.
    pub fn hotseat(&self) -> Spread {
        Spread::of(self.0.iter().map(|pair| pair.0))
    }

    /// The yardstick's.
    pub fn yardstick(&self) -> Spread {
        Spread::of(self.0.iter().map(|pair| pair.1))
    }

    /// Hotseat's figure divided by the yardstick's, pair by pair: what slows the machine down for a while concerns
    /// both of a pair.
    pub fn ratio(&self) -> Spread {
        Spread::of(self.0.iter().map(|pair| pair.0 / pair.1))
    }
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        let (half, last) = (sorted.len() / 2, sorted.len().saturating_sub(1));
        let median =
            if sorted.len() % 2 == 1 { at(half) } else { (at(half.saturating_sub(1)) + at(half)) / 2.0 };
        Spread { median, least: at(0), most: at(last) }
    }
}

impl Aim {
    /// Whether it is met.
    fn is_met_by(self, pairs: &Pairs) -> bool {
        match self {
            Aim::None => true,
            Aim::RatioAtLeast(least) => pairs.ratio().median >= least,
            Aim::Under(limit, _) => pairs.hotseat().median < limit,
            Aim::AtMost(limit, _) => pairs.hotseat().median <= limit,
        }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aim::None => Ok(()),
            Aim::RatioAtLeast(least) => write!(f, "ratio ≥ {least:.2}"),
            Aim::Under(limit, unit) => write!(f, "< {}", unit.show(*limit)),
            Aim::AtMost(limit, unit) => write!(f, "≤ {}", unit.show(*limit)),
        }
    }
}

impl Unit {
    fn show(self, figure: f64) -> String {
        match self {
            Unit::CasesPerSecond => format!("{}/s", thousands(figure)),
            Unit::Microseconds => format!("{} µs", thousands(figure)),
            Unit::Milliseconds if figure >= 1000.0 => format!("{} ms", thousands(figure)),
            Unit::Milliseconds => format!("{figure:.1} ms"),
            Unit::Mebibytes => format!("{figure:.1} MiB"),
            Unit::Times => format!("× {figure:.2}"),
        }
    }
}

/// The head of the table.
pub fn head() -> String {
    format!("{:<40}{:>12}{:>12}   {:<20}{}", "", "hotseat", "yardstick", "ratio (min–max)", "aim")
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { what, unit, pairs, aim } = self;
        let (hotseat, yardstick) = (unit.show(pairs.hotseat().median), unit.show(pairs.yardstick().median));
        let ratio = pairs.ratio();
        let ratio = format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.least, ratio.most);
        write!(f, "{what:<40}{hotseat:>12}{yardstick:>12}   ")?;
        match (aim, aim.is_met_by(pairs)) {
            (Aim::None, _) => write!(f, "{ratio}"),
            (aim, true) => write!(f, "{ratio:<20}{aim}: met"),
            (aim, false) => write!(f, "{ratio:<20}{aim}: MISSED"),
        }
    }
}

/// A duration in milliseconds.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Bytes in mebibytes.
pub fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

/// A whole number, its digits in groups of three.
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

    fn pairs(figures: &[(f64, f64)]) -> Pairs {
        Pairs(figures.to_vec())
    }

    #[test]
    fn the_ratio_is_that_of_the_pairs_and_not_of_the_medians() {
        let pairs = pairs(&[(1.0, 2.0), (30.0, 40.0), (5.0, 5.0)]);
        assert_eq!(pairs.ratio(), Spread { median: 0.75, least: 0.5, most: 1.0 });
        assert_eq!((pairs.hotseat().median, pairs.yardstick().median), (5.0, 5.0));
    }

    #[test]
    fn two_figures_have_their_middle_between_them() {
        assert_eq!(pairs(&[(1.0, 1.0), (2.0, 1.0)]).hotseat().median, 1.5);
    }

    #[test]
    fn a_row_says_whether_its_aim_is_met() {
        for (hotseat, words) in [(600.0, "ratio ≥ 0.60: met"), (599.0, "ratio ≥ 0.60: MISSED")] {
            let pairs = pairs(&[(hotseat, 1000.0)]);
            let row =
                Row { what: "a".to_string(), unit: Unit::CasesPerSecond, pairs, aim: Aim::RatioAtLeast(0.6) };
            assert!(row.to_string().ends_with(words), "{row}");
        }
        let under = Aim::Under(20.0, Unit::Milliseconds);
        assert!(!under.is_met_by(&pairs(&[(20.0, 1.0)])) && under.is_met_by(&pairs(&[(19.9, 1.0)])));
    }

    #[test]
    fn digits_are_grouped() {
        for (figure, words) in [(7.4, "7"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(thousands(figure), words);
        }
    }
}
