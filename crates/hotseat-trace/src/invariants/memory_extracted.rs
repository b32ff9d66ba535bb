//! Memory is extracted from every completed turn.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for end in view.turns().completions() {
        if !view.memory_extraction().starts().iter().any(|extraction| extraction.turn_id == end.turn_id) {
            found.add(format!("no memory extraction for turn {}", end.turn_id), [end.sequence]);
        }
    }
}
