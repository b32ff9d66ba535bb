//! The trace has at least one turn; an empty trace would satisfy all other invariants.

use super::violation::ViolationCollector;
use crate::{Payload, Trace};

pub(super) fn check(trace: &Trace, found: &mut ViolationCollector) {
    if !trace.all().iter().any(|record| matches!(record.payload, Payload::TurnStarted(_))) {
        found.add("the trace has no turn".to_string(), []);
    }
}
