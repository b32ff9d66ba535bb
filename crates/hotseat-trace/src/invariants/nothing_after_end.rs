//! A turn ends once, and no event of the turn follows its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::violation::ViolationCollector;
use crate::{ConversationView, Payload};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut ended: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for record in view.records() {
        // Judges and topic tracking run after the turn has ended.
        let after_all = |payload: &Payload| {
            matches!(
                payload,
                Payload::InputIgnored(_)
                    | Payload::RuntimeError(_)
                    | Payload::RoleAnswered(_)
                    | Payload::TopicChanged(_)
                    | Payload::TopicKept(_)
            )
        };
        if after_all(&record.payload) {
            continue;
        }
        let Some(turn) = record.payload.turn_id() else { continue };
        if let Some(end) = ended.get(turn) {
            let message = format!("{} comes after the end of turn {turn}", record.payload.type_name());
            found.add(message, [*end, record.sequence]);
        }
        if matches!(record.payload, Payload::TurnCompleted(_) | Payload::TurnFailed(_)) {
            ended.insert(turn.clone(), record.sequence);
        }
    }
}
