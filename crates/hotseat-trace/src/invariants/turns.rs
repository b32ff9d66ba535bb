//! Invariants of turns: their end, and what belongs to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::violation::ViolationCollector;
use crate::{ConversationView, Payload, TurnStatus};

/// Every turn that started ends as completed or failed.
pub(super) fn turns_end(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for start in view.turns().starts() {
        let statuses = view.turns().status_transitions(&start.turn_id);
        if !matches!(statuses.last(), Some(TurnStatus::Completed | TurnStatus::Failed)) {
            let chain: Vec<_> = statuses.into_iter().map(TurnStatus::name).collect();
            let chain = chain.join(" → ");
            found.add(
                format!("turn {} did not reach a terminal state: {chain}", start.turn_id),
                [start.sequence],
            );
        }
    }
}

/// Context is assembled for every turn.
pub(super) fn context_assembled(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for start in view.turns().starts() {
        if !view.context_assembly().starts().iter().any(|assembly| assembly.turn_id == start.turn_id) {
            found.add(format!("no context assembly for turn {}", start.turn_id), [start.sequence]);
        }
    }
}

/// Memory is extracted from every completed turn.
pub(super) fn memory_extracted(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for end in view.turns().completions() {
        if !view.memory_extraction().starts().iter().any(|extraction| extraction.turn_id == end.turn_id) {
            found.add(format!("no memory extraction for turn {}", end.turn_id), [end.sequence]);
        }
    }
}

/// No memory is extracted from a turn that failed.
pub(super) fn failed_extract_nothing(view: &ConversationView<'_>, found: &mut ViolationCollector) {
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

/// There are no error events, unless failed turns are allowed.
pub(super) fn no_errors(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    if found.options.allow_failed_turns {
        return;
    }
    for record in view.errors().all() {
        found.add(format!("there is an error event: {}", record.payload.type_name()), [record.sequence]);
    }
}

/// No tool failed, if the options require that.
pub(super) fn no_tool_failures(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    if !found.options.deny_tool_failures {
        return;
    }
    for failure in view.tools().failures() {
        let message = format!("tool call {} failed: {}", failure.tool_call_id, failure.error.message);
        found.add(message, [failure.sequence]);
    }
}

/// Every turn has one user message, and every agent message belongs to an open turn.
pub(super) fn messages_belong(view: &ConversationView<'_>, found: &mut ViolationCollector) {
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

/// The moves of a turn are numbered from 0, in the order of their events.
pub(super) fn moves_counted(view: &ConversationView<'_>, found: &mut ViolationCollector) {
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

/// A turn ends once, and no event of the turn follows its end.
pub(super) fn nothing_after_end(view: &ConversationView<'_>, found: &mut ViolationCollector) {
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
