//! A comparison that the test program has already made.

use super::{CheckBehavior, CheckDecision};

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

impl CheckBehavior for PrecomputedCheck {
    fn describe(&self) -> String {
        self.expected.clone()
    }

    fn decide(&self, _: hotseat_trace::TurnScope<'_>) -> CheckDecision {
        match &self.result {
            Ok(holds) => CheckDecision::new(*holds, self.actual.clone()),
            Err(words) => CheckDecision::not_applicable(words.clone()),
        }
    }
}
