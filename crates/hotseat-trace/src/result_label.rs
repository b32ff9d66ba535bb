//! Word and colour of a result, the same on every output.

use serde::{Serialize, Serializer};

use crate::{ResponsibleParty, Verdict, VerdictStatus};

/// Displayed result of a case or an attempt: whether it passed, and if not, who is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResultLabel {
    /// Passed.
    Passed,
    /// The agent is at fault.
    Failed,
    /// The test or its hooks are at fault.
    TestError,
    /// A judge is at fault.
    JudgeError,
    /// The simulator is at fault.
    SimulatorError,
    /// The network, the machine or the store is at fault, or the run was cancelled.
    InfrastructureError,
    /// Not run, or ended without a result.
    Skipped,
}

/// Colour of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LabelColor {
    /// Passed.
    Green,
    /// Failed.
    Red,
    /// Errors of the test.
    Magenta,
    /// Errors of roles.
    Blue,
    /// Errors of the infrastructure.
    Cyan,
    /// Skipped.
    Yellow,
}

impl ResultLabel {
    /// All labels.
    pub const ALL: [ResultLabel; 7] = [
        ResultLabel::Passed,
        ResultLabel::Failed,
        ResultLabel::TestError,
        ResultLabel::JudgeError,
        ResultLabel::SimulatorError,
        ResultLabel::InfrastructureError,
        ResultLabel::Skipped,
    ];

    /// Returns the label of a verdict.
    pub fn from_verdict(verdict: &Verdict) -> ResultLabel {
        match (verdict.status, &verdict.failure) {
            (VerdictStatus::Passed, _) => ResultLabel::Passed,
            (VerdictStatus::Skipped, _) => ResultLabel::Skipped,
            (VerdictStatus::Failed, Some(failure)) => ResultLabel::from(failure.fault),
            (VerdictStatus::Failed, None) => ResultLabel::Failed,
        }
    }

    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            ResultLabel::Passed => "passed",
            ResultLabel::Failed => "failed",
            ResultLabel::TestError => "test error",
            ResultLabel::JudgeError => "judge error",
            ResultLabel::SimulatorError => "simulator error",
            ResultLabel::InfrastructureError => "infrastructure error",
            ResultLabel::Skipped => "skipped",
        }
    }

    /// The word in capitals, for the console.
    pub fn capitals(self) -> &'static str {
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
    pub fn color(self) -> LabelColor {
        match self {
            ResultLabel::Passed => LabelColor::Green,
            ResultLabel::Failed => LabelColor::Red,
            ResultLabel::TestError => LabelColor::Magenta,
            ResultLabel::JudgeError | ResultLabel::SimulatorError => LabelColor::Blue,
            ResultLabel::InfrastructureError => LabelColor::Cyan,
            ResultLabel::Skipped => LabelColor::Yellow,
        }
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
        serializer.serialize_str(self.word())
    }
}

impl LabelColor {
    /// The name, as in style sheets.
    pub fn name(self) -> &'static str {
        match self {
            LabelColor::Green => "green",
            LabelColor::Red => "red",
            LabelColor::Magenta => "magenta",
            LabelColor::Blue => "blue",
            LabelColor::Cyan => "cyan",
            LabelColor::Yellow => "yellow",
        }
    }

    /// The parameter of the ANSI escape sequence that selects the colour.
    pub fn ansi_code(self) -> &'static str {
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
    fn capitals_are_the_word() {
        for label in ResultLabel::ALL {
            assert_eq!(label.capitals(), label.word().to_uppercase());
        }
    }
}
