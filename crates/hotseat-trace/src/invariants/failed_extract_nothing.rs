//! No memory is extracted from a turn that failed.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for end in view.turns().failures() {
        // A cancelled turn may have reached memory extraction.
        if end.error.code.as_deref() == Some("CANCELLED") {
            continue;
        }
        if !view.memory_extraction().for_turn(&end.turn_id).is_empty() {
            found.add(format!("memory extraction ran for the failed turn {}", end.turn_id), [end.sequence]);
        }
    }
}
