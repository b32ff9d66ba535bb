//! Ids are unique, and every id is introduced before it is used.

use std::collections::BTreeSet;

use super::violation::ViolationCollector;
use crate::{ConversationView, Payload};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut given: BTreeSet<(&str, &str)> = BTreeSet::new();
    for record in view.records() {
        let new = match &record.payload {
            Payload::TurnStarted(p) => Some(("turn", &*p.turn_id)),
            Payload::UserMessage(p) => Some(("message", &*p.message_id)),
            Payload::AssistantMessage(p) => Some(("message", &*p.message_id)),
            Payload::MoveRecorded(p) => Some(("move", &*p.move_id)),
            Payload::ToolInvoked(p) => Some(("call", &*p.tool_call_id)),
            Payload::InterruptRaised(p) => Some(("question", &*p.interrupt_id)),
            Payload::AgentCallStarted(p) => Some(("agent call", &*p.call_id)),
            _ => None,
        };
        if let Some((kind, id)) = new
            && !given.insert((kind, id))
        {
            found.add(format!("{kind} {id} is not unique"), [record.sequence]);
        }
        let used = match &record.payload {
            Payload::TurnWaiting(p) | Payload::TurnResumed(p) | Payload::AsyncTracked(p) => {
                ("call", &*p.operation_id)
            }
            Payload::AsyncCompleted(p) => ("call", &*p.operation_id),
            Payload::AsyncCancelled(p) => ("call", &*p.operation_id),
            Payload::ToolCompleted(p) => ("call", &*p.tool_call_id),
            Payload::InterruptAnswered(p) => ("question", &*p.interrupt_id),
            Payload::AgentCallContext(p) => ("agent call", &*p.call_id),
            Payload::AgentCallCompleted(p) => ("agent call", &*p.call_id),
            Payload::AgentCallFailed(p) => ("agent call", &*p.call_id),
            Payload::MoveResult(p) => ("move", &*p.move_id),
            Payload::RuntimeError(_) | Payload::InputIgnored(_) => continue,
            other => match other.turn_id() {
                Some(turn) => ("turn", &**turn),
                None => continue,
            },
        };
        if !given.contains(&used) {
            let (kind, id) = used;
            found.add(format!("{kind} {id} is unknown at {}", record.payload.type_name()), [record.sequence]);
        }
    }
}
