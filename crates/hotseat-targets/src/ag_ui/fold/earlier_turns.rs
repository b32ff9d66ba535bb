//! What a snapshot tells of earlier turns: an agent may work on after a turn, and no event tells it. What is new counts in the
//! current turn.

use std::collections::HashMap;
use std::sync::Arc;

use hotseat_trace::TimeOffset;

use super::super::known_call::KnownArguments;
use super::super::recorded_texts::MAX_SEARCHED_BYTES;
use super::super::wire::{self, MessageObject};
use super::run::RunFold;
use crate::message::shown_id;

impl RunFold<'_> {
    /// Reads the messages of earlier turns: their calls may complete calls of this turn. New ones start at `first`.
    pub(super) fn read_earlier_turns(&mut self, earlier: &[Arc<MessageObject>], first: TimeOffset) {
        for call in earlier.iter().flat_map(|message| wire::calls(message)) {
            let id = self.thread.known_id(call.id.into());
            // Another call of the history may have the same id.
            let arguments = KnownArguments::parse(&call.arguments);
            if self
                .thread
                .call_of_turn(&id)
                .is_some_and(|known| known.has_unique_id(&id) && !known.arguments.contradicts(&arguments))
            {
                self.complete_arguments(&id, arguments);
            }
        }
        // What is before the first known message is older than the conversation.
        let Some(before) = &self.thread.turn.earlier else { return };
        let Some(ours) = earlier.iter().position(|message| before.contains(message)) else { return };
        let earlier = &earlier[ours..];
        for message in self.late_texts(earlier) {
            let id = wire::id(message).unwrap_or_default();
            self.note(format!(
                "message {id} of an earlier turn arrived only in this one, so it counts in this one"
            ));
            self.reconcile_text(message, first);
        }
        for (message, call) in self.late_calls(earlier) {
            let id = self.thread.known_id(call.id.into());
            self.note(format!(
                "tool call {} of an earlier turn arrived only in this one, so it counts in this one",
                shown_id(&id)
            ));
            self.record_snapshot_call(message, &call, &id, first);
            *self.thread.turn.calls_before.entry(call.name.into()).or_default() += 1;
        }
    }

    /// Returns the messages of the agent that are new. A server may list known messages under new ids, join or divide them, so they
    /// are new only if there are more of them, and no known text contains theirs or is part of it. Beyond the limit of searched bytes
    /// texts are not compared.
    fn late_texts<'m>(&mut self, earlier: &'m [Arc<MessageObject>]) -> Vec<&'m MessageObject> {
        let turn = &self.thread.turn;
        let Some(before) = &turn.earlier else { return Vec::new() };
        let mut count = 0;
        let mut late = Vec::new();
        for message in earlier.iter().filter(|message| wire::role(message) == "assistant") {
            let text = wire::text(message.get("content"));
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            count += 1;
            let Some(id) = wire::id(message).filter(|id| !before.ids.contains(*id)) else { continue };
            let mut searched = before.agent_texts.iter().take_while(|known| {
                self.searched_bytes += known.len() + text.len() + 64;
                self.searched_bytes < MAX_SEARCHED_BYTES
            });
            let is_related = searched.any(|known| known.contains(text) || text.contains(known.trim()));
            if !is_related && !turn.recorded_texts.contains(id, text, &mut self.searched_bytes) {
                late.push(&**message);
            }
        }
        let more = late.len().min(usize::saturating_sub(count, before.agent_texts.len()));
        late.split_off(late.len() - more)
    }

    /// Returns the calls that are new. A server may list known calls under new ids, so they are new only if there are more of their
    /// tool than the earlier turns have.
    fn late_calls<'m>(
        &self,
        earlier: &'m [Arc<MessageObject>],
    ) -> Vec<(&'m MessageObject, wire::CallInMessage<'m>)> {
        let Some(before) = &self.thread.turn.earlier else { return Vec::new() };
        let is_known = |id: &str| {
            before.calls.contains(id) || self.thread.calls.contains_key(&self.thread.known_id(id.into()))
        };
        let listed =
            || earlier.iter().flat_map(|message| wire::calls(message).map(move |call| (&**message, call)));
        let mut late: Vec<_> = listed().filter(|(_, call)| !is_known(call.id)).collect();
        if late.is_empty() {
            return late;
        }
        // Calls of earlier turns by tool that are not listed under their ids.
        let before = self.thread.turn.calls_before.iter().map(|(name, count)| (&**name, *count));
        let mut unlisted: HashMap<&str, usize> = before.collect();
        for (_, call) in listed().filter(|(_, call)| is_known(call.id)) {
            let left = unlisted.entry(call.name).or_default();
            *left = left.saturating_sub(1);
        }
        late.retain(|(_, call)| match unlisted.get_mut(call.name) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        });
        late
    }
}
