//! Every sequence number is positive.

use super::violation::ViolationCollector;
use crate::Trace;

pub(super) fn check(trace: &Trace, found: &mut ViolationCollector) {
    for record in trace.all().iter().filter(|record| record.sequence == 0) {
        found.add("sequence numbers must be positive".to_string(), [record.sequence]);
    }
}
