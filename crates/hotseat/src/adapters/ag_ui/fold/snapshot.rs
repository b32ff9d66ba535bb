//! Snapshots of the messages: what only they tell joins the trace, and what they tell again counts once.

use std::sync::Arc;

use hotseat_trace::{AssistantMessage, Offset, Origin};
use serde_json::Value;

use super::super::thread::Arguments;
use super::super::wire::{self, Message};
use super::calls::Seen;
use super::{Run, Sink};

/// A snapshot, or what a later one left out of it.
#[derive(Debug)]
pub(super) struct Snapshot {
    messages: Vec<Message>,
    /// Where the messages of the current turn begin.
    begins: usize,
    seen: Offset,
}

impl Run<'_> {
    pub(super) fn messages_snapshot(&mut self, messages: Vec<Message>, seen: Offset) {
        self.thread.take_over(&messages);
        // What the agent did is not undone by a later snapshot that no longer shows it.
        if let Some(earlier) = self.snapshots.pop() {
            let Snapshot { messages: mut left_out, begins, seen } = earlier;
            left_out.drain(..begins);
            left_out.retain(|message| !is_told_again(message, &messages));
            if !left_out.is_empty() {
                self.snapshots.push(Snapshot { messages: left_out, begins: 0, seen });
            }
        }
        let begins = self.thread.turn_begins(&messages);
        self.snapshots.push(Snapshot { messages, begins, seen });
    }

    /// Compares snapshots with what was seen as events and adds what is missing. For calls and texts the older
    /// ones come first, as they happened; of results the latest counts.
    pub(super) fn reconcile(&mut self, snapshots: &[Snapshot], out: Sink<'_>) {
        for snapshot in snapshots {
            self.calls_of(snapshot, out);
        }
        for snapshot in snapshots.iter().rev() {
            self.results_of(snapshot, out);
        }
        for snapshot in snapshots {
            let messages = &snapshot.messages[snapshot.begins..];
            for message in messages.iter().filter(|message| wire::role(message) == "assistant") {
                self.text_of(message, snapshot.seen, out);
            }
        }
    }

    fn calls_of(&mut self, snapshot: &Snapshot, out: Sink<'_>) {
        let (earlier, ours) = snapshot.messages.split_at(snapshot.begins);
        for call in earlier.iter().flat_map(wire::calls) {
            let id = self.thread.known_id(call.id.into());
            if self.thread.call_of_turn(&id).is_some_and(|known| known.has_id_of_its_own(&id)) {
                self.complete_arguments(&id, &call.arguments, out);
            }
        }
        let listed: Vec<Arc<str>> =
            ours.iter().flat_map(wire::calls).map(|call| self.thread.known_id(call.id.into())).collect();
        let mut unlisted = self.thread.turn.calls.clone();
        unlisted.retain(|id| !listed.contains(id));
        let calls = ours.iter().flat_map(|message| wire::calls(message).map(move |call| (message, call)));
        for ((message, call), id) in calls.zip(&listed) {
            let known = self.thread.call_of_turn(id);
            if known.is_some_and(|known| *known.name == *call.name || !known.has_id_of_its_own(id)) {
                self.complete_arguments(id, &call.arguments, out);
                continue;
            }
            let arguments = Arguments::parse(&call.arguments);
            // A call of an earlier turn that stands here is told again, unless it cannot be that one.
            let earlier = self.thread.calls.get(id);
            if earlier
                .is_some_and(|known| *known.name == *call.name && !known.arguments.contradict(&arguments))
            {
                continue;
            }
            // A producer may give its calls other ids in a snapshot: those are found by tool and arguments.
            if let Some(place) = unlisted.iter().position(|id| self.is_twin(id, call.name, &arguments)) {
                let twin = unlisted.remove(place);
                self.complete_arguments(&twin, &call.arguments, out);
                self.thread.aliases.insert(call.id.into(), twin);
                continue;
            }
            let seen = Seen {
                origin: Origin::Snapshot,
                started_us: Some(snapshot.seen),
                subagent: None,
                message_id: wire::id(message).map(Arc::from),
            };
            self.new_call(id, &call.name.into(), seen, out);
            self.set_arguments(id, arguments, None, out);
            self.run_calls.push(id.clone());
        }
    }

    /// Whether a call is the one that a snapshot lists under another id.
    fn is_twin(&self, id: &Arc<str>, name: &str, arguments: &Arguments) -> bool {
        self.thread.calls.get(id).is_some_and(|call| {
            &*call.name == name
                && (call.arguments == *arguments || matches!(call.arguments, Arguments::Broken(_)))
        })
    }

    /// A snapshot knows the arguments of a call whole, a stream may have lost part of them.
    fn complete_arguments(&mut self, id: &Arc<str>, text: &str, out: Sink<'_>) {
        let Some(call) = self.thread.calls.get(id) else { return };
        let arguments = Arguments::parse(text);
        if call.arguments == arguments || matches!(arguments, Arguments::Broken(_)) {
            return;
        }
        // An empty object in a snapshot may be older than the arguments that were streamed.
        if arguments.is_empty() && matches!(call.arguments, Arguments::Json(_)) {
            return;
        }
        self.note(
            out,
            format!(
                "the arguments of tool call {id} differ between stream and snapshot; the snapshot counts"
            ),
        );
        self.set_arguments(id, arguments, None, out);
    }

    fn results_of(&mut self, snapshot: &Snapshot, out: Sink<'_>) {
        for (place, message) in snapshot.messages.iter().enumerate() {
            if wire::role(message) != "tool" {
                continue;
            }
            let Some(id) = message.get("toolCallId").and_then(Value::as_str) else { continue };
            let id = self.thread.known_id(id.into());
            let Some(call) = self.thread.calls.get(&id) else { continue };
            // What stands before the turn may be the result of another call with the same id.
            let meant = place >= snapshot.begins || call.has_id_of_its_own(&id);
            if !meant || call.answered.is_some() {
                continue;
            }
            let result = wire::ToolResult {
                tool_call_id: id,
                content: message.get("content").cloned().unwrap_or(Value::Null),
                error: message.get("error").and_then(Value::as_str).map(str::to_string),
                ..Default::default()
            };
            self.tool_result(result, Origin::Snapshot, out);
        }
    }

    fn text_of(&mut self, message: &Message, seen: Offset, out: Sink<'_>) {
        let content = wire::text(message.get("content"));
        let id = wire::id(message).unwrap_or("");
        let known = self.thread.turn.texts.iter().any(|(known, text)| {
            text.trim() == content.trim()
                || (!id.is_empty() && **known == *id && text.contains(content.trim()))
        });
        if content.trim().is_empty() || known {
            return;
        }
        let message_id: Arc<str> = id.into();
        self.thread.turn.texts.push((message_id.clone(), content.clone()));
        out(AssistantMessage {
            turn_id: self.turn_id(),
            message_id,
            content,
            has_tool_use: Some(wire::calls(message).next().is_some()),
            started_us: Some(seen),
            origin: Origin::Snapshot,
            subagent: None,
        }
        .into());
    }
}

/// Whether a later snapshot still holds what a message says.
fn is_told_again(message: &Message, later: &[Message]) -> bool {
    let same_id = |other: &Message| wire::id(other) == wire::id(message);
    match wire::role(message) {
        "assistant" | "tool" if wire::id(message).is_some() && later.iter().any(same_id) => true,
        "assistant" if wire::calls(message).next().is_none() => {
            let text = wire::text(message.get("content"));
            later.iter().any(|other| wire::text(other.get("content")).contains(text.trim()))
        }
        "assistant" | "tool" => false,
        // Nothing that others say is an action of the agent.
        _ => true,
    }
}
