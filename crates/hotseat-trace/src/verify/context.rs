//! Context was assembled for every turn.

use super::mismatch::Mismatch;
use crate::{ConversationView, Payload};

pub(super) fn find(view: &ConversationView<'_>, per_llm_call: bool) -> Vec<Mismatch> {
    let mut found = Vec::new();
    for start in view.turns().starts() {
        let count = |wanted: fn(&Payload) -> bool| {
            view.by_turn(&start.turn_id).filter(|r| wanted(&r.payload)).count()
        };
        let assembled = count(|payload| matches!(payload, Payload::ContextAssemblyCompleted(_)));
        let started = count(|payload| matches!(payload, Payload::ContextAssemblyStarted(_)));
        // A retried model call does not assemble its context again.
        let calls = count(|payload| matches!(payload, Payload::LlmCallStarted(call) if call.attempt == 1));
        if started == 0 {
            let expected = format!("context assembly for turn {}", start.turn_id);
            found.push(Mismatch::new(expected, "none").at(start.sequence));
        } else if per_llm_call && assembled != calls {
            let expected = format!("one context assembly for each model call of turn {}", start.turn_id);
            found.push(Mismatch::new(expected, format!("{assembled} for {calls} calls")).at(start.sequence));
        }
    }
    found
}
