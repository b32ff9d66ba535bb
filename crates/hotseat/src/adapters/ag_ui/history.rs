//! The messages of a conversation in order, found by their ids and by their calls without looking through all of them.

use std::collections::HashMap;

use serde_json::Value;

use super::wire::{self, Message};

/// Messages in order.
#[derive(Debug, Default)]
pub struct MessageHistory {
    groups: Vec<Group>,
    /// The last message with an id.
    by_id: HashMap<String, Slot>,
    /// The last message with an id and a role.
    by_role: HashMap<(String, String), Slot>,
    /// The last message that makes a call, and where in it.
    callers: HashMap<String, (Slot, usize)>,
    /// The results of a call, in order.
    results: HashMap<String, Vec<Slot>>,
}

/// A message and the tool results right behind it. Only there messages are put between others, so that no place of
/// another message changes.
#[derive(Debug, Default)]
struct Group {
    /// None where results stand in front of everything.
    head: Option<Message>,
    /// None where a result was taken out.
    results: Vec<Option<Message>>,
}

/// The place of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    group: usize,
    /// 0 for the head of the group, and then its results.
    place: usize,
}

impl FromIterator<Message> for MessageHistory {
    fn from_iter<T: IntoIterator<Item = Message>>(messages: T) -> Self {
        let mut history = MessageHistory::default();
        for message in messages {
            history.push(message);
        }
        history
    }
}

impl IntoIterator for MessageHistory {
    type Item = Message;
    type IntoIter = Box<dyn Iterator<Item = Message>>;

    fn into_iter(self) -> Self::IntoIter {
        let messages = |group: Group| group.head.into_iter().chain(group.results.into_iter().flatten());
        Box::new(self.groups.into_iter().flat_map(messages))
    }
}

impl MessageHistory {
    /// The messages.
    pub fn iter(&self) -> impl Iterator<Item = &Message> + Clone {
        self.groups.iter().flat_map(|group| group.head.iter().chain(group.results.iter().flatten()))
    }

    /// Puts a message behind all others.
    pub fn push(&mut self, message: Message) -> Slot {
        if wire::role(&message) != "tool" {
            self.groups.push(Group { head: Some(message), results: Vec::new() });
            let slot = Slot { group: self.groups.len() - 1, place: 0 };
            self.note(slot);
            return slot;
        }
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        self.push_result(self.groups.len() - 1, message)
    }

    /// The message at a place, which was given by this history.
    pub fn at(&mut self, slot: Slot) -> &mut Message {
        let group = &mut self.groups[slot.group];
        let message = match slot.place.checked_sub(1) {
            None => &mut group.head,
            Some(place) => &mut group.results[place],
        };
        message.get_or_insert_default()
    }

    /// The last message with an id, whoever said it.
    pub fn with_id(&self, id: &str) -> Option<Slot> {
        self.by_id.get(id).copied()
    }

    /// The last message with an id and a role.
    pub fn with_role(&self, id: &str, role: &str) -> Option<Slot> {
        self.by_role.get(&(id.to_string(), role.to_string())).copied()
    }

    /// The last message that makes a call.
    pub fn caller(&self, call_id: &str) -> Option<Slot> {
        self.callers.get(call_id).map(|&(slot, _)| slot)
    }

    /// The entry of a call in the last message that makes it.
    pub fn call_entry(&mut self, call_id: &str) -> Option<&mut Value> {
        let (slot, place) = *self.callers.get(call_id)?;
        self.at(slot).get_mut("toolCalls")?.get_mut(place)
    }

    /// Adds a call to a message.
    pub fn add_call(&mut self, slot: Slot, call_id: &str, entry: Value) {
        let calls = self.at(slot).entry("toolCalls").or_insert_with(|| Value::Array(Vec::new()));
        if !calls.is_array() {
            *calls = Value::Array(Vec::new());
        }
        let Value::Array(calls) = calls else { return };
        calls.push(entry);
        let place = calls.len() - 1;
        self.callers.insert(call_id.to_string(), (slot, place));
    }

    /// What the last result of a call says that stands behind it.
    pub fn result(&self, call_id: &str) -> Option<&Value> {
        let slot = *self.results.get(call_id)?.last()?;
        if self.caller(call_id).is_some_and(|caller| slot < caller) {
            return None;
        }
        self.groups[slot.group].results.get(slot.place.checked_sub(1)?)?.as_ref()?.get("content")
    }

    /// Puts the result of a call behind the message that makes it and the results that are there, in place of all
    /// results that it has there.
    pub fn put_result(&mut self, call_id: &str, result: Message) -> &mut Message {
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
        self.at(slot)
    }

    fn push_result(&mut self, group: usize, message: Message) -> Slot {
        let results = &mut self.groups[group].results;
        results.push(Some(message));
        let slot = Slot { group, place: results.len() };
        self.note(slot);
        slot
    }

    /// Takes note of what a new message can be found by.
    fn note(&mut self, slot: Slot) {
        let group = &self.groups[slot.group];
        let message = match slot.place.checked_sub(1) {
            None => group.head.as_ref(),
            Some(place) => group.results[place].as_ref(),
        };
        let Some(message) = message else { return };
        let role = wire::role(message);
        if let Some(id) = wire::id(message) {
            let last = self.by_id.entry(id.to_string()).or_insert(slot);
            *last = slot.max(*last);
            let last = self.by_role.entry((id.to_string(), role.to_string())).or_insert(slot);
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
