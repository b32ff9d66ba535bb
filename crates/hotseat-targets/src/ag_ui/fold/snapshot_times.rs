//! Start times of what only a snapshot reports: it tells an order, but no times.

use hotseat_trace::TimeOffset;

use super::super::thread::ConversationThread;
use super::super::wire::{self, MessageObject};
use super::run::TurnSnapshot;

/// Start times for the text of a message and for its calls.
#[derive(Clone, Copy)]
pub(super) struct MessageTimes {
    pub(super) text: TimeOffset,
    pub(super) calls: TimeOffset,
}

/// Returns the times for each message of the turn in a snapshot. With these, what is new stands in the order of the snapshot among
/// what is known: right before the next known text or call, or at the arrival of the snapshot. Several new ones at one time are in
/// the order of their events.
pub(super) fn snapshot_times(thread: &ConversationThread, snapshot: &TurnSnapshot) -> Vec<MessageTimes> {
    let mut next = snapshot.received_at;
    // A message whose text is replaced is known, and its new text follows the old one.
    let mut before_next = |known: Option<TimeOffset>| {
        let time = next;
        if let Some(known) = known {
            next = next.min(TimeOffset(known.0.saturating_sub(1)));
        }
        time
    };
    let messages = snapshot.messages[snapshot.turn_start..].iter().rev();
    let mut times: Vec<MessageTimes> = messages
        .map(|message| {
            let calls = before_next(start_of_calls(thread, message));
            MessageTimes { calls, text: before_next(start_of_text(thread, message)) }
        })
        .collect();
    times.reverse();
    times
}

fn start_of_calls(thread: &ConversationThread, message: &MessageObject) -> Option<TimeOffset> {
    let starts = wire::calls(message).filter_map(|call| {
        let known = thread.call_of_turn(&thread.known_id(call.id.into()))?;
        (*known.name == *call.name).then_some(known.started)
    });
    starts.min()
}

fn start_of_text(thread: &ConversationThread, message: &MessageObject) -> Option<TimeOffset> {
    if wire::role(message) != "assistant" {
        return None;
    }
    let text = wire::text(message.get("content"));
    thread.turn.recorded_texts.start_of(wire::id(message).unwrap_or(""), &text)
}
