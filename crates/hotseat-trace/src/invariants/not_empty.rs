//! There is something to look at: of a trace without a turn nothing can be said.

use super::Found;
use crate::{Payload, Trace};

pub(super) fn check(trace: &Trace, found: &mut Found) {
    if !trace.all().iter().any(|record| matches!(record.payload, Payload::TurnStarted(_))) {
        found.add("the trace holds no turn".to_string(), []);
    }
}
