//! Messages of a conversation in order, indexed by message id and call id.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::id_map::IdMap;
use super::wire::{self, MessageObject};

/// Messages in order, with indexes.
#[derive(Debug, Default)]
pub struct MessageHistory {
    groups: Vec<MessageGroup>,
    /// Last message of each id.
    by_id: IdMap<MessageSlot>,
    /// Last message of each id and role, for ids that messages of several roles share.
    by_role: HashMap<(String, String), MessageSlot>,
    /// Last message that contains a call, and the index in it.
    callers: IdMap<(MessageSlot, usize)>,
    /// Results of each call, in order.
    results: IdMap<Vec<MessageSlot>>,
}

/// A message. There may be very many calls and results, so they become JSON only when it is needed.
#[derive(Debug)]
pub enum HistoryMessage {
    /// Any message. Snapshots share theirs with the history.
    Json(Arc<MessageObject>),
    /// A message of the agent with one call and nothing else.
    Call(CallMessage),
    /// The result of a call.
    Result(ResultMessage),
}

/// A message of the agent with one call and nothing else.
#[derive(Debug)]
pub struct CallMessage {
    /// Id of the message.
    pub id: Arc<str>,
    /// Id of the call.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The arguments as received. None means that there are none yet.
    pub arguments: Option<Box<str>>,
}

/// The result of a call.
#[derive(Debug)]
pub struct ResultMessage {
    /// Id of the message.
    pub id: Arc<str>,
    /// Id of the call.
    pub call_id: Arc<str>,
    /// The result.
    pub content: Value,
    /// The error message of a failed tool.
    pub error: Option<String>,
}

/// A message and the tool results right after it. Messages are inserted only at the end of a group, so that
/// slots stay valid.
#[derive(Debug, Default)]
struct MessageGroup {
    /// `None` if results come before any other message.
    head: Option<HistoryMessage>,
    /// `None` for a removed result.
    results: Vec<Option<HistoryMessage>>,
}

/// Position of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageSlot {
    group: usize,
    /// 0 for the head of the group, then its results.
    place: usize,
}

impl From<MessageObject> for HistoryMessage {
    fn from(message: MessageObject) -> Self {
        HistoryMessage::Json(Arc::new(message))
    }
}

impl HistoryMessage {
    /// Returns the role.
    pub fn role(&self) -> &str {
        match self {
            HistoryMessage::Json(message) => wire::role(message),
            HistoryMessage::Call(_) => "assistant",
            HistoryMessage::Result(_) => "tool",
        }
    }

    /// Returns the id.
    pub fn id(&self) -> Option<&str> {
        match self {
            HistoryMessage::Json(message) => wire::id(message),
            HistoryMessage::Call(message) => Some(&message.id),
            HistoryMessage::Result(message) => Some(&message.id),
        }
    }

    fn shared_id(&self) -> Option<Arc<str>> {
        match self {
            HistoryMessage::Json(message) => wire::id(message).map(Arc::from),
            HistoryMessage::Call(message) => Some(message.id.clone()),
            HistoryMessage::Result(message) => Some(message.id.clone()),
        }
    }

    /// Returns the member `content`.
    pub fn content(&self) -> Option<&Value> {
        match self {
            HistoryMessage::Json(message) => message.get("content"),
            HistoryMessage::Call(_) => None,
            HistoryMessage::Result(message) => Some(&message.content),
        }
    }

    /// Returns true if the message has a content that is not empty.
    pub fn has_content(&self) -> bool {
        self.content().is_some_and(|content| !content.is_null() && content != "")
    }

    /// Returns true if the message has a content that only the provider of the model can read.
    pub fn has_encrypted_value(&self) -> bool {
        matches!(self, HistoryMessage::Json(message) if message.contains_key("encryptedValue"))
    }

    /// Returns true if the message has calls.
    pub fn has_calls(&self) -> bool {
        match self {
            HistoryMessage::Json(message) => message.contains_key("toolCalls"),
            HistoryMessage::Call(_) => true,
            HistoryMessage::Result(_) => false,
        }
    }

    /// Returns the ids of its calls and their tools.
    pub fn calls(&self) -> Vec<(Arc<str>, Arc<str>)> {
        match self {
            HistoryMessage::Json(message) => {
                wire::calls(message).map(|call| (call.id.into(), call.name.into())).collect()
            }
            HistoryMessage::Call(message) => vec![(message.call_id.clone(), message.tool.clone())],
            HistoryMessage::Result(_) => Vec::new(),
        }
    }

    /// Returns the message as sent.
    pub fn to_json(&self) -> Cow<'_, MessageObject> {
        match self {
            HistoryMessage::Json(message) => Cow::Borrowed(message),
            HistoryMessage::Call(message) => Cow::Owned(message.to_json()),
            HistoryMessage::Result(message) => Cow::Owned(message.to_json()),
        }
    }

    /// Returns the message for modification.
    fn json_mut(&mut self) -> &mut MessageObject {
        if !matches!(self, HistoryMessage::Json(_)) {
            let message = self.to_json().into_owned();
            *self = message.into();
        }
        match self {
            HistoryMessage::Json(message) => Arc::make_mut(message),
            HistoryMessage::Call(_) | HistoryMessage::Result(_) => unreachable!("the message is JSON now"),
        }
    }
}

impl CallMessage {
    fn to_json(&self) -> MessageObject {
        let entry = call_entry(&self.call_id, &self.tool, self.arguments.as_deref().unwrap_or("{}"));
        members([
            ("id", text(&self.id)),
            ("role", text("assistant")),
            ("toolCalls", Value::Array(vec![Value::Object(entry)])),
        ])
    }
}

impl ResultMessage {
    fn to_json(&self) -> MessageObject {
        let mut message = members([
            ("id", text(&self.id)),
            ("role", text("tool")),
            ("toolCallId", text(&self.call_id)),
            ("content", self.content.clone()),
        ]);
        if let Some(error) = &self.error {
            message.insert("error".to_string(), text(error));
        }
        message
    }
}

/// Returns a call as part of its message.
fn call_entry(id: &str, tool: &str, arguments: &str) -> MessageObject {
    let function = members([("name", text(tool)), ("arguments", text(arguments))]);
    members([("id", text(id)), ("type", text("function")), ("function", Value::Object(function))])
}

fn members<const N: usize>(all: [(&str, Value); N]) -> MessageObject {
    let mut members = Map::with_capacity(N);
    members.extend(all.into_iter().map(|(key, value)| (key.to_string(), value)));
    members
}

fn text(text: &str) -> Value {
    Value::String(text.to_string())
}

impl FromIterator<HistoryMessage> for MessageHistory {
    fn from_iter<T: IntoIterator<Item = HistoryMessage>>(messages: T) -> Self {
        let mut history = MessageHistory::default();
        for message in messages {
            history.push(message);
        }
        history
    }
}

impl IntoIterator for MessageHistory {
    type Item = HistoryMessage;
    type IntoIter = Box<dyn Iterator<Item = HistoryMessage>>;

    fn into_iter(self) -> Self::IntoIter {
        let messages =
            |group: MessageGroup| group.head.into_iter().chain(group.results.into_iter().flatten());
        Box::new(self.groups.into_iter().flat_map(messages))
    }
}

impl MessageHistory {
    /// Returns the messages in order.
    pub fn iter(&self) -> impl Iterator<Item = &HistoryMessage> + Clone {
        self.groups.iter().flat_map(|group| group.head.iter().chain(group.results.iter().flatten()))
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<HistoryMessage>) -> MessageSlot {
        let message = message.into();
        if message.role() != "tool" {
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

    fn stored_mut(&mut self, slot: MessageSlot) -> &mut Option<HistoryMessage> {
        let group = &mut self.groups[slot.group];
        match slot.place.checked_sub(1) {
            None => &mut group.head,
            Some(place) => &mut group.results[place],
        }
    }

    /// Returns the message at a slot of this history.
    pub fn message_mut(&mut self, slot: MessageSlot) -> &mut MessageObject {
        self.stored_mut(slot).get_or_insert_with(|| MessageObject::new().into()).json_mut()
    }

    /// Sets the sub-agent of a message, if it has one.
    pub fn set_subagent(&mut self, slot: MessageSlot, subagent: Option<&Arc<str>>) {
        if subagent.is_some() {
            wire::set_subagent(self.message_mut(slot), subagent);
        }
    }

    /// Returns the last message with an id, of any role.
    pub fn with_id(&self, id: &str) -> Option<MessageSlot> {
        self.by_id.get(id).copied()
    }

    /// Returns the last message with an id and a role.
    pub fn with_role(&self, id: &str, role: &str) -> Option<MessageSlot> {
        let last = self.with_id(id);
        let last =
            last.filter(|slot| Self::message(&self.groups, *slot).map(HistoryMessage::role) == Some(role));
        if last.is_some() || self.by_role.is_empty() {
            return last;
        }
        self.by_role.get(&(id.to_string(), role.to_string())).copied()
    }

    /// Returns the message at a slot; `None` for a removed result.
    fn message(groups: &[MessageGroup], slot: MessageSlot) -> Option<&HistoryMessage> {
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

    /// Sets the arguments of a call in the last message that contains it, as received.
    pub fn set_call_arguments(&mut self, call_id: &str, arguments: String) {
        let Some(&(slot, _)) = self.callers.get(call_id) else { return };
        if let Some(HistoryMessage::Call(message)) = self.stored_mut(slot) {
            message.arguments = Some(arguments.into());
        } else if let Some(call) = self.call_entry(call_id) {
            call["function"]["arguments"] = Value::String(arguments);
        }
    }

    /// Adds a call without arguments to a message.
    pub fn add_call(&mut self, slot: MessageSlot, call_id: &Arc<str>, tool: &str) {
        let calls = self.message_mut(slot).entry("toolCalls").or_insert_with(|| Value::Array(Vec::new()));
        if !calls.is_array() {
            *calls = Value::Array(Vec::new());
        }
        let Value::Array(calls) = calls else { return };
        calls.push(Value::Object(call_entry(call_id, tool, "{}")));
        let place = calls.len() - 1;
        self.callers.insert(call_id.clone(), (slot, place));
    }

    /// Returns the content of the last result after a call.
    pub fn result(&self, call_id: &str) -> Option<&Value> {
        let slot = *self.results.get(call_id)?.last()?;
        if self.caller(call_id).is_some_and(|caller| slot < caller) {
            return None;
        }
        self.groups[slot.group].results.get(slot.place.checked_sub(1)?)?.as_ref()?.content()
    }

    /// Inserts the result of a call after its message and the existing results, and removes earlier results
    /// of the call there.
    pub fn insert_result(&mut self, result: ResultMessage) -> MessageSlot {
        let caller = self.caller(&result.call_id);
        let known = self.results.get_or_insert_with(&result.call_id, Vec::new);
        while let Some(slot) = known.pop_if(|slot| caller.is_none_or(|caller| *slot > caller)) {
            let place = slot.place.checked_sub(1);
            let Some(gone) = place.and_then(|place| self.groups[slot.group].results[place].take()) else {
                continue;
            };
            let id = gone.id().unwrap_or_default();
            if self.by_id.get(id) == Some(&slot) {
                self.by_id.remove(id);
            }
            if !self.by_role.is_empty() {
                let key = (id.to_string(), "tool".to_string());
                if self.by_role.get(&key) == Some(&slot) {
                    self.by_role.remove(&key);
                }
            }
        }
        match caller {
            Some(caller) => self.push_result(caller.group, HistoryMessage::Result(result)),
            None => self.push(HistoryMessage::Result(result)),
        }
    }

    fn push_result(&mut self, group: usize, message: HistoryMessage) -> MessageSlot {
        let results = &mut self.groups[group].results;
        if results.is_empty() {
            // Most messages have one result.
            results.reserve_exact(1);
        }
        results.push(Some(message));
        let slot = MessageSlot { group, place: results.len() };
        self.index_message(slot);
        slot
    }

    /// Indexes a new message.
    fn index_message(&mut self, slot: MessageSlot) {
        let Some(message) = Self::message(&self.groups, slot) else { return };
        let role = message.role();
        if let Some(id) = message.shared_id() {
            let last = self.by_id.get_or_insert_with(&id, || slot);
            let other =
                Self::message(&self.groups, *last).map(HistoryMessage::role).filter(|other| *other != role);
            if let Some(other) = other {
                for (role, slot) in [(other, *last), (role, slot)] {
                    let last = self.by_role.entry((id.to_string(), role.to_string())).or_insert(slot);
                    *last = slot.max(*last);
                }
            }
            *last = slot.max(*last);
        }
        let mut index_call = |id: Arc<str>, place: usize| {
            let last = self.callers.get_or_insert_with(&id, || (slot, place));
            *last = (slot, place).max(*last);
        };
        let answered = match message {
            HistoryMessage::Call(message) => {
                index_call(message.call_id.clone(), 0);
                None
            }
            HistoryMessage::Result(message) => Some(message.call_id.clone()),
            HistoryMessage::Json(message) => {
                let calls = message.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
                for (place, call) in calls.enumerate() {
                    if let Some(id) = call.get("id").and_then(Value::as_str) {
                        index_call(id.into(), place);
                    }
                }
                let id = message.get("toolCallId").and_then(Value::as_str);
                id.filter(|_| role == "tool").map(Arc::from)
            }
        };
        if let Some(id) = answered {
            let slots = self.results.get_or_insert_with(&id, Vec::new);
            if slots.is_empty() {
                slots.reserve_exact(1);
            }
            slots.push(slot);
        }
    }
}
