//! Every sequence number is positive.

use super::Found;
use crate::Trace;

pub(super) fn check(trace: &Trace, found: &mut Found) {
    for record in trace.all().iter().filter(|record| record.sequence == 0) {
        found.add("sequence numbers are positive".to_string(), [record.sequence]);
    }
}
