//! Memory is extracted from every completed turn.

use super::violation::{InvariantOptions, ViolationCollector};
use crate::ConversationView;

pub(super) fn check(
    view: &ConversationView<'_>,
    _options: &InvariantOptions,
    found: &mut ViolationCollector,
) {
    for end in view.turns().completions() {
        if !view.memory_extraction().starts().iter().any(|extraction| extraction.turn_id == end.turn_id) {
            found.add(format!("no memory extraction for turn {}", end.turn_id), [end.sequence]);
        }
    }
}
