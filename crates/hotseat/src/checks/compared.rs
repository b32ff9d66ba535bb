//! Two values were compared by the test itself.

use super::Decided;

/// A comparison that was made where the values are: in the program that the test is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// What was asked for, in words.
    pub expected: String,
    /// What was there, in words.
    pub actual: String,
    /// Whether it holds; or why that could not be said.
    pub holds: Result<bool, String>,
}

impl Compared {
    pub(super) fn describe(&self) -> String {
        self.expected.clone()
    }

    pub(super) fn decide(&self) -> Decided {
        match &self.holds {
            Ok(holds) => Decided::of(*holds, self.actual.clone()),
            Err(words) => Decided::nothing(words.clone()),
        }
    }
}
