//! A comparison that the test program has already made.

use super::{CheckBehavior, CheckDecision, Undecidable};

/// Result of a comparison that the test program made itself, because only the program has the values.
#[derive(Debug, Clone)]
pub struct PrecomputedCheck {
    /// Description of the expectation.
    pub expected: String,
    /// Description of the actual value.
    pub actual: String,
    /// The result, or the reason why the values could not be compared.
    pub result: Result<bool, Undecidable>,
}

impl CheckBehavior for PrecomputedCheck {
    fn describe(&self) -> String {
        self.expected.clone()
    }

    fn decide(&self, _: hotseat_trace::TurnScope<'_>) -> CheckDecision {
        match &self.result {
            Ok(holds) => CheckDecision::new(*holds, self.actual.clone()),
            Err(why) => CheckDecision::not_applicable(why.to_string()),
        }
    }
}
