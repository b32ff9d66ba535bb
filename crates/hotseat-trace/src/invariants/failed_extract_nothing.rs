//! No memory is extracted from a turn that failed.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    for end in view.turns().failures() {
        // A turn that was cancelled may have come as far as that.
        if end.error.code.as_deref() == Some("CANCELLED") {
            continue;
        }
        if !view.memory_extraction().for_turn(&end.turn_id).is_empty() {
            found.add(format!("memory extraction ran for the failed turn {}", end.turn_id), [end.sequence]);
        }
    }
}
