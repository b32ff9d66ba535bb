//! A comparison that the test program has already made.

use super::CheckDecision;

/// Result of a comparison that the test program made itself, because only the program has the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrecomputedCheck {
    /// Description of the expectation.
    pub expected: String,
    /// Description of the actual value.
    pub actual: String,
    /// The result, or the reason why the values could not be compared.
    pub result: Result<bool, String>,
}

impl PrecomputedCheck {
    pub(super) fn describe(&self) -> String {
        self.expected.clone()
    }

    pub(super) fn decide(&self) -> CheckDecision {
        match &self.result {
            Ok(holds) => CheckDecision::new(*holds, self.actual.clone()),
            Err(words) => CheckDecision::not_applicable(words.clone()),
        }
    }
}
