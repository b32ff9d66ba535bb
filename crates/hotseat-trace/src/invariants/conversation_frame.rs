//! A conversation starts with its creation, owns its turns, and every participant joins once.

use super::violation::ViolationCollector;
use crate::{ConversationView, InvocationMode, Participant, Payload};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let Some(id) = view.id() else { return };
    let created = view.conversations().created();
    let first = view.records().find(|record| record.execution.as_ref().is_some_and(|part| *part.id == *id));
    let begins = first.is_some_and(|record| matches!(record.payload, Payload::ConversationCreated(_)));
    let sequence = first.map_or(0, |record| record.sequence);
    if created.len() != 1 || !begins || *created[0].conversation_id != *id {
        let message = format!("conversation {id} is not created exactly once as its first event");
        found.add(message, [sequence]);
        return;
    }
    let created = created[0];
    let turns = view.turns().starts();
    for (place, turn) in turns.iter().enumerate() {
        let is_agent = &*turn.caller_type == "agent";
        let known = matches!(&*turn.caller_type, "user" | "workflow" | "agent");
        if *turn.conversation_id != *id || !known || is_agent != turn.caller_turn_id.is_some() {
            found.add(format!("turn {} does not belong to this conversation", turn.turn_id), [turn.sequence]);
        }
        let agent = turn.agent_id.as_ref();
        let own = *turn.caller_type == *"user" || (created.parent.is_some() && place == 0);
        if own && agent != Some(&created.agent_id) {
            found.add(format!("turn {} belongs to another agent", turn.turn_id), [turn.sequence]);
        }
        if let Some(caller) = &turn.caller_turn_id {
            let calls = view.trace().all().iter().any(|record| {
                matches!(&record.payload, Payload::TurnStarted(p)
                    if p.turn_id == *caller && p.agent_id.as_ref() == Some(&turn.caller_id))
            });
            if !calls {
                found.add(format!("turn {} has no calling turn", turn.turn_id), [turn.sequence]);
            }
        }
    }
    let closed = view.conversations().closed();
    if let Some(parent) = &created.parent {
        let opened = view.trace().all().iter().any(|record| match &record.payload {
            // The caller waits for or tracks the call before the conversation is created.
            Payload::TurnWaiting(p) | Payload::AsyncTracked(p) => {
                (&p.operation_id, &p.turn_id) == (&parent.call_id, &parent.turn_id)
                    && record.sequence < created.sequence
                    && record.execution.as_ref().is_some_and(|part| part.id == parent.conversation_id)
            }
            // A task or workflow opens a conversation under the id of the call site.
            _ => parent.call_id == created.conversation_id,
        });
        if !opened {
            found.add(format!("conversation {id} was opened for an unknown call"), [sequence]);
        }
        let completed = turns.iter().any(|turn| view.turns().completion(&turn.turn_id).is_some());
        if completed && closed.is_empty() {
            found.add(format!("conversation {id} was not closed after its turn completed"), [sequence]);
        }
    }
    if let [first, rest @ ..] = &closed[..] {
        let after = view.turns().starts().iter().any(|turn| turn.sequence > first.sequence);
        let open = created.parent.is_some()
            && turns.iter().any(|turn| {
                view.turns().completion(&turn.turn_id).is_some_and(|end| end.sequence > first.sequence)
            });
        if !rest.is_empty() || after || open || *first.conversation_id != *id {
            found.add(format!("conversation {id} was closed at the wrong point"), [first.sequence]);
        }
    }
    check_participants(view, id, &created.agent_id, found);
}

fn check_participants(view: &ConversationView<'_>, id: &str, own: &str, found: &mut ViolationCollector) {
    let mut there = vec![Participant::Agent { agent_id: own.into() }];
    let mut joining: Option<(Participant, &str, u64)> = None;
    for record in view.records() {
        match &record.payload {
            Payload::AgentCallStarted(p) if p.mode == InvocationMode::LoopIn => {
                let called = Participant::Agent { agent_id: p.agent_id.clone() };
                if !there.contains(&called) {
                    joining = Some((called, &p.turn_id, record.sequence));
                }
            }
            Payload::ParticipantAdded(p) => {
                let expected = joining
                    .take()
                    .is_some_and(|(called, turn, _)| called == p.participant && *turn == *p.added_by_turn_id);
                if !expected || *p.conversation_id != *id {
                    found.add("a participant joined without being called".to_string(), [record.sequence]);
                }
                there.push(p.participant.clone());
            }
            Payload::ParticipantRemoved(p) => there.retain(|other| *other != p.participant),
            Payload::AgentCallContext(_) => {
                if let Some((_, _, sequence)) = joining.take() {
                    found.add("a called agent did not join the conversation".to_string(), [sequence]);
                }
            }
            _ => {}
        }
    }
}
