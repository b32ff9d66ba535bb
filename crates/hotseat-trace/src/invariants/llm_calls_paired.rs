//! Every model call has one outcome, and a turn has at most one open call.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::violation::ViolationCollector;
use crate::{ConversationView, Payload};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut open: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for record in view.records() {
        match &record.payload {
            Payload::LlmCallStarted(p) => {
                if let Some(before) = open.insert(p.turn_id.clone(), record.sequence) {
                    found.add(
                        format!("turn {} has two model calls at once", p.turn_id),
                        [before, record.sequence],
                    );
                }
            }
            Payload::LlmCallCompleted(_) | Payload::LlmCallFailed(_) => {
                let turn = record.payload.turn_id();
                if turn.and_then(|turn| open.remove(turn)).is_none() {
                    found.add("a model call has an outcome but no start".to_string(), [record.sequence]);
                }
            }
            // A cancelled turn ends while its model call is running.
            Payload::TurnFailed(p) => drop(open.remove(&p.turn_id)),
            _ => {}
        }
    }
    for (turn, sequence) in open {
        found.add(format!("a model call of turn {turn} has no outcome"), [sequence]);
    }
}
