//! Sequence numbers increase by one, without gaps or duplicates.

use super::violation::ViolationCollector;
use crate::Trace;

pub(super) fn check(trace: &Trace, found: &mut ViolationCollector) {
    for pair in trace.all().windows(2) {
        let (before, after) = (pair[0].sequence, pair[1].sequence);
        if after != before + 1 {
            found.add(format!("sequence {before} is followed by {after}"), [before, after]);
        }
    }
}
