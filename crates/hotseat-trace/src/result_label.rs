//! Word and colour of a result, the same on every output.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{ResponsibleParty, Verdict, VerdictStatus};

named! {
    /// Displayed result of a case or an attempt: whether it passed, and if not, who is at fault.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ResultLabel {
        /// Passed.
        Passed = "passed",
        /// The agent is at fault.
        Failed = "failed",
        /// The test, its hooks or its scripts are at fault.
        TestError = "test error",
        /// A judge is at fault.
        JudgeError = "judge error",
        /// The simulator is at fault.
        SimulatorError = "simulator error",
        /// The network, the machine or the store is at fault, or the run was cancelled.
        InfrastructureError = "infrastructure error",
        /// Not run, or ended without a result.
        Skipped = "skipped",
    }
}

named! {
    /// Colour of a result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum LabelColor {
        /// Passed.
        Green = "green",
        /// Failed.
        Red = "red",
        /// Errors of the test.
        Magenta = "magenta",
        /// Errors of roles.
        Blue = "blue",
        /// Errors of the infrastructure.
        Cyan = "cyan",
        /// Skipped.
        Yellow = "yellow",
    }
}

/// Number of cases by their label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCounts(BTreeMap<ResultLabel, usize>);

impl ResultLabel {
    /// Returns the label of a verdict.
    pub fn from_verdict(verdict: &Verdict) -> ResultLabel {
        match (verdict.status, &verdict.failure) {
            (VerdictStatus::Passed, _) => ResultLabel::Passed,
            (VerdictStatus::Skipped, _) => ResultLabel::Skipped,
            (VerdictStatus::Failed, Some(failure)) => ResultLabel::from(failure.fault),
            (VerdictStatus::Failed, None) => ResultLabel::Failed,
        }
    }

    /// The name in capitals, for the console.
    pub const fn capitals(self) -> &'static str {
        match self {
            ResultLabel::Passed => "PASSED",
            ResultLabel::Failed => "FAILED",
            ResultLabel::TestError => "TEST ERROR",
            ResultLabel::JudgeError => "JUDGE ERROR",
            ResultLabel::SimulatorError => "SIMULATOR ERROR",
            ResultLabel::InfrastructureError => "INFRASTRUCTURE ERROR",
            ResultLabel::Skipped => "SKIPPED",
        }
    }

    /// The colour.
    pub const fn color(self) -> LabelColor {
        match self {
            ResultLabel::Passed => LabelColor::Green,
            ResultLabel::Failed => LabelColor::Red,
            ResultLabel::TestError => LabelColor::Magenta,
            ResultLabel::JudgeError | ResultLabel::SimulatorError => LabelColor::Blue,
            ResultLabel::InfrastructureError => LabelColor::Cyan,
            ResultLabel::Skipped => LabelColor::Yellow,
        }
    }

    /// Formats a number of results: `3 failed`, `1 judge error`, `2 judge errors`.
    pub fn count(self, number: usize) -> String {
        match self {
            ResultLabel::Passed | ResultLabel::Failed | ResultLabel::Skipped => {
                format!("{number} {}", self.name())
            }
            ResultLabel::TestError
            | ResultLabel::JudgeError
            | ResultLabel::SimulatorError
            | ResultLabel::InfrastructureError => format_count(number, self.name()),
        }
    }
}

/// Formats a number with its noun: `1 case`, `2 cases`.
pub fn format_count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Lists the first texts: `a, b and 3 more`.
pub fn format_first(all: &[String], most: usize) -> String {
    let listed = all[..all.len().min(most)].join(", ");
    match all.len().saturating_sub(most) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

impl From<ResponsibleParty> for ResultLabel {
    /// Returns the label of a failure.
    fn from(fault: ResponsibleParty) -> ResultLabel {
        match fault {
            ResponsibleParty::Agent => ResultLabel::Failed,
            ResponsibleParty::Simulator => ResultLabel::SimulatorError,
            ResponsibleParty::Judge => ResultLabel::JudgeError,
            ResponsibleParty::Infrastructure => ResultLabel::InfrastructureError,
            ResponsibleParty::Test => ResultLabel::TestError,
        }
    }
}

impl Serialize for ResultLabel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ResultLabel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        ResultLabel::from_name(&word).ok_or_else(|| D::Error::custom(format!("unknown result {word:?}")))
    }
}

impl LabelCounts {
    /// Counts a result.
    pub fn add(&mut self, label: ResultLabel) {
        *self.0.entry(label).or_default() += 1;
    }

    /// Returns true if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the labels that were counted, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (ResultLabel, usize)> {
        self.0.iter().map(|(label, number)| (*label, *number))
    }
}

impl LabelColor {
    /// The parameter of the ANSI escape sequence that selects the colour.
    pub const fn ansi_code(self) -> &'static str {
        match self {
            LabelColor::Green => "32",
            LabelColor::Red => "31",
            LabelColor::Magenta => "35",
            LabelColor::Blue => "34",
            LabelColor::Cyan => "36",
            LabelColor::Yellow => "33",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_are_the_name() {
        for label in ResultLabel::ALL {
            assert_eq!(label.capitals(), label.name().to_uppercase());
        }
    }
}
