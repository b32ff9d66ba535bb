//! A violated invariant, and the collector that the invariants write to.

use std::fmt;

use crate::ConversationView;

/// Options for checking invariants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InvariantOptions {
    /// Turns may fail.
    pub allow_failed_turns: bool,
    /// Tools may not fail. By default they may, because the agent gets the error and continues.
    pub deny_tool_failures: bool,
}

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantViolation {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// Description of the violation.
    pub message: String,
    /// Sequence numbers of the events involved.
    pub sequences: Vec<u64>,
}

impl fmt::Display for InvariantViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.message)?;
        match &self.sequences[..] {
            [] => Ok(()),
            [one] => write!(f, " [event {one}]"),
            several => {
                write!(f, " [events {}]", several.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Why one event violates an invariant. The runtime that wrote the trace is at fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct EventViolation(pub(super) String);

/// Checks a condition of an invariant. Fails if it is not met, with the description.
pub(super) fn require<T: Into<String>>(
    met: bool,
    describe: impl FnOnce() -> T,
) -> Result<(), EventViolation> {
    if met { Ok(()) } else { Err(EventViolation(describe().into())) }
}

/// Collects the violations of the invariant being checked, with helpers shared by several invariants.
#[derive(Debug, Default)]
pub(super) struct ViolationCollector {
    pub(super) options: InvariantOptions,
    pub(super) invariant: &'static str,
    pub(super) violations: Vec<InvariantViolation>,
}

impl ViolationCollector {
    pub(super) fn add<const N: usize>(&mut self, message: String, sequences: [u64; N]) {
        self.violations.push(InvariantViolation {
            invariant: self.invariant,
            message,
            sequences: sequences.to_vec(),
        });
    }

    pub(super) fn is_cancelled(&self, view: &ConversationView<'_>, call: &str) -> bool {
        view.turns().cancellations().iter().any(|end| &*end.operation_id == call)
    }
}
