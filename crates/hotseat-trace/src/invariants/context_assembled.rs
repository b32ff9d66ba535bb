//! Context is assembled for every turn.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for start in view.turns().starts() {
        if !view.context_assembly().starts().iter().any(|assembly| assembly.turn_id == start.turn_id) {
            found.add(format!("no context assembly for turn {}", start.turn_id), [start.sequence]);
        }
    }
}
