//! Messages of a conversation in order, indexed by message id and call id.

use std::collections::HashMap;

use serde_json::Value;

use super::wire::{self, MessageObject};

/// Messages in order, with indexes.
#[derive(Debug, Default)]
pub struct MessageHistory {
    groups: Vec<MessageGroup>,
    /// Last message of each id.
    by_id: HashMap<String, MessageSlot>,
    /// Last message of each id and role, for ids that messages of several roles share.
    by_role: HashMap<(String, String), MessageSlot>,
    /// Last message that contains a call, and the index in it.
    callers: HashMap<String, (MessageSlot, usize)>,
    /// Results of each call, in order.
    results: HashMap<String, Vec<MessageSlot>>,
}

/// A message and the tool results right after it. Messages are inserted only at the end of a group, so that
/// slots stay valid.
#[derive(Debug, Default)]
struct MessageGroup {
    /// `None` if results come before any other message.
    head: Option<MessageObject>,
    /// `None` for a removed result.
    results: Vec<Option<MessageObject>>,
}

/// Position of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageSlot {
    group: usize,
    /// 0 for the head of the group, then its results.
    place: usize,
}

impl FromIterator<MessageObject> for MessageHistory {
    fn from_iter<T: IntoIterator<Item = MessageObject>>(messages: T) -> Self {
        let mut history = MessageHistory::default();
        for message in messages {
            history.push(message);
        }
        history
    }
}

impl IntoIterator for MessageHistory {
    type Item = MessageObject;
    type IntoIter = Box<dyn Iterator<Item = MessageObject>>;

    fn into_iter(self) -> Self::IntoIter {
        let messages =
            |group: MessageGroup| group.head.into_iter().chain(group.results.into_iter().flatten());
        Box::new(self.groups.into_iter().flat_map(messages))
    }
}

impl MessageHistory {
    /// Returns the messages in order.
    pub fn iter(&self) -> impl Iterator<Item = &MessageObject> + Clone {
        self.groups.iter().flat_map(|group| group.head.iter().chain(group.results.iter().flatten()))
    }

    /// Appends a message.
    pub fn push(&mut self, message: MessageObject) -> MessageSlot {
        if wire::role(&message) != "tool" {
            self.groups.push(MessageGroup { head: Some(message), results: Vec::new() });
            let slot = MessageSlot { group: self.groups.len() - 1, place: 0 };
            self.index_message(slot);
            return slot;
        }
        if self.groups.is_empty() {
            self.groups.push(MessageGroup::default());
        }
        self.push_result(self.groups.len() - 1, message)
    }

    /// Returns the message at a slot of this history.
    pub fn message_mut(&mut self, slot: MessageSlot) -> &mut MessageObject {
        let group = &mut self.groups[slot.group];
        let message = match slot.place.checked_sub(1) {
            None => &mut group.head,
            Some(place) => &mut group.results[place],
        };
        message.get_or_insert_default()
    }

    /// Returns the last message with an id, of any role.
    pub fn with_id(&self, id: &str) -> Option<MessageSlot> {
        self.by_id.get(id).copied()
    }

    /// Returns the last message with an id and a role.
    pub fn with_role(&self, id: &str, role: &str) -> Option<MessageSlot> {
        let last = self.with_id(id);
        let last = last.filter(|slot| Self::message(&self.groups, *slot).map(wire::role) == Some(role));
        if last.is_some() || self.by_role.is_empty() {
            return last;
        }
        self.by_role.get(&(id.to_string(), role.to_string())).copied()
    }

    /// Returns the message at a slot; `None` for a removed result.
    fn message(groups: &[MessageGroup], slot: MessageSlot) -> Option<&MessageObject> {
        let group = &groups[slot.group];
        match slot.place.checked_sub(1) {
            None => group.head.as_ref(),
            Some(place) => group.results[place].as_ref(),
        }
    }

    /// Returns the last message that contains a call.
    pub fn caller(&self, call_id: &str) -> Option<MessageSlot> {
        self.callers.get(call_id).map(|&(slot, _)| slot)
    }

    /// Returns the entry of a call in the last message that contains it.
    pub fn call_entry(&mut self, call_id: &str) -> Option<&mut Value> {
        let (slot, place) = *self.callers.get(call_id)?;
        self.message_mut(slot).get_mut("toolCalls")?.get_mut(place)
    }

    /// Adds a call to a message.
    pub fn add_call(&mut self, slot: MessageSlot, call_id: &str, entry: Value) {
        let calls = self.message_mut(slot).entry("toolCalls").or_insert_with(|| Value::Array(Vec::new()));
        if !calls.is_array() {
            *calls = Value::Array(Vec::new());
        }
        let Value::Array(calls) = calls else { return };
        calls.push(entry);
        let place = calls.len() - 1;
        self.callers.insert(call_id.to_string(), (slot, place));
    }

    /// Returns the content of the last result after a call.
    pub fn result(&self, call_id: &str) -> Option<&Value> {
        let slot = *self.results.get(call_id)?.last()?;
        if self.caller(call_id).is_some_and(|caller| slot < caller) {
            return None;
        }
        self.groups[slot.group].results.get(slot.place.checked_sub(1)?)?.as_ref()?.get("content")
    }

    /// Inserts the result of a call after its message and the existing results, and removes earlier results
    /// of the call there.
    pub fn insert_result(&mut self, call_id: &str, result: MessageObject) -> &mut MessageObject {
        let caller = self.caller(call_id);
        let known = self.results.entry(call_id.to_string()).or_default();
        while let Some(slot) = known.pop_if(|slot| caller.is_none_or(|caller| *slot > caller)) {
            let place = slot.place.checked_sub(1);
            let Some(gone) = place.and_then(|place| self.groups[slot.group].results[place].take()) else {
                continue;
            };
            let id = wire::id(&gone).unwrap_or_default().to_string();
            if self.by_id.get(&id) == Some(&slot) {
                self.by_id.remove(&id);
            }
            let key = (id, "tool".to_string());
            if self.by_role.get(&key) == Some(&slot) {
                self.by_role.remove(&key);
            }
        }
        let slot = match caller {
            Some(caller) => self.push_result(caller.group, result),
            None => self.push(result),
        };
        self.message_mut(slot)
    }

    fn push_result(&mut self, group: usize, message: MessageObject) -> MessageSlot {
        let results = &mut self.groups[group].results;
        results.push(Some(message));
        let slot = MessageSlot { group, place: results.len() };
        self.index_message(slot);
        slot
    }

    /// Indexes a new message.
    fn index_message(&mut self, slot: MessageSlot) {
        let Some(message) = Self::message(&self.groups, slot) else { return };
        let role = wire::role(message);
        if let Some(id) = wire::id(message) {
            let last = self.by_id.entry(id.to_string()).or_insert(slot);
            let other = Self::message(&self.groups, *last).map(wire::role).filter(|other| *other != role);
            if let Some(other) = other {
                for (role, slot) in [(other, *last), (role, slot)] {
                    let last = self.by_role.entry((id.to_string(), role.to_string())).or_insert(slot);
                    *last = slot.max(*last);
                }
            }
            *last = slot.max(*last);
        }
        let calls = message.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
        for (place, call) in calls.enumerate() {
            if let Some(id) = call.get("id").and_then(Value::as_str) {
                let last = self.callers.entry(id.to_string()).or_insert((slot, place));
                *last = (slot, place).max(*last);
            }
        }
        if role == "tool"
            && let Some(id) = message.get("toolCallId").and_then(Value::as_str)
        {
            self.results.entry(id.to_string()).or_default().push(slot);
        }
    }
}
