//! Invariants of the whole trace: it is not empty, and its events are numbered.

use super::violation::ViolationCollector;
use crate::{Payload, Trace};

/// The trace has at least one turn; an empty trace would satisfy all other invariants.
pub(super) fn not_empty(trace: &Trace, found: &mut ViolationCollector) {
    if !trace.all().iter().any(|record| matches!(record.payload, Payload::TurnStarted(_))) {
        found.add("the trace has no turn".to_string(), []);
    }
}

/// Every sequence number is positive.
pub(super) fn sequences_positive(trace: &Trace, found: &mut ViolationCollector) {
    for record in trace.all().iter().filter(|record| record.sequence == 0) {
        found.add("sequence numbers must be positive".to_string(), [record.sequence]);
    }
}

/// Sequence numbers increase by one, without gaps or duplicates.
pub(super) fn sequences_contiguous(trace: &Trace, found: &mut ViolationCollector) {
    for pair in trace.all().windows(2) {
        let (before, after) = (pair[0].sequence, pair[1].sequence);
        if after != before + 1 {
            found.add(format!("sequence {before} is followed by {after}"), [before, after]);
        }
    }
}
