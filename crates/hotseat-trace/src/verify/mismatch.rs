//! A difference between a trace and an expectation.

use std::fmt;

/// A difference between expected and actual values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Expected value, as text.
    pub expected: String,
    /// Actual value, as text.
    pub actual: String,
    /// Sequence number of the event concerned.
    pub sequence: Option<u64>,
}

impl Mismatch {
    pub(super) fn new(expected: impl fmt::Display, actual: impl fmt::Display) -> Self {
        Mismatch { expected: expected.to_string(), actual: actual.to_string(), sequence: None }
    }

    pub(super) fn at(mut self, sequence: u64) -> Self {
        self.sequence = Some(sequence);
        self
    }
}

/// Returns a mismatch if two values differ.
pub(super) fn find_difference<T: PartialEq + fmt::Debug>(
    what: &str,
    expected: T,
    actual: T,
) -> Option<Mismatch> {
    (expected != actual).then(|| Mismatch::new(format!("{what}: {expected:?}"), format!("{actual:?}")))
}
