//! The moves of a turn are numbered from 0, in the order of their events.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut next: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    for entry in view.moves().all() {
        let expected = next.entry(entry.turn_id.clone()).or_default();
        if entry.payload.sequence != *expected {
            let message =
                format!("move {} has number {}, expected {expected}", entry.move_id, entry.payload.sequence);
            found.add(message, [entry.sequence]);
        }
        *expected = entry.payload.sequence + 1;
    }
}
