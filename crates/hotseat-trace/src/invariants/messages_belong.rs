//! Every turn has one user message, and every agent message belongs to an open turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::violation::ViolationCollector;
use crate::{ConversationView, Payload};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut open: BTreeMap<Arc<str>, (u64, u32)> = BTreeMap::new();
    for record in view.records() {
        match &record.payload {
            Payload::TurnStarted(p) => drop(open.insert(p.turn_id.clone(), (record.sequence, 0))),
            Payload::UserMessage(p) => match open.get_mut(&p.turn_id) {
                Some((_, messages)) => *messages += 1,
                None => {
                    found.add(format!("message {} belongs to no open turn", p.message_id), [record.sequence])
                }
            },
            Payload::AssistantMessage(p) if !open.contains_key(&p.turn_id) => {
                found.add(format!("message {} belongs to no open turn", p.message_id), [record.sequence]);
            }
            Payload::TurnCompleted(_) | Payload::TurnFailed(_) => {
                let ended = record.payload.turn_id().and_then(|turn| open.remove(turn));
                if let Some((sequence, messages)) = ended
                    && messages != 1
                {
                    found.add(format!("a turn has {messages} user messages"), [sequence]);
                }
            }
            _ => {}
        }
    }
}
