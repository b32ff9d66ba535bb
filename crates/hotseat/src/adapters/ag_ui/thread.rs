//! The conversation as the protocol carries it from request to request: history, state, known calls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::PatchAllowance;
use serde_json::{Map, Value, json};

use super::history::{MessageHistory, Slot};
use super::wire::{self, Message};
use crate::adapters::json_text::readable;

/// What a session knows between two requests.
#[derive(Debug)]
pub struct Thread {
    /// Id of the conversation; the same in every request.
    pub id: Arc<str>,
    /// The messages so far, with the ids that the server gave them.
    pub history: MessageHistory,
    /// The shared state as last seen.
    pub state: Value,
    /// Whether the trace tells the state: what the first request sends is not in it.
    pub state_told: bool,
    /// What patches of the state and of activities may still copy.
    pub patching: PatchAllowance,
    /// The current turn.
    pub turn: ThreadTurn,
    /// Calls by their id on the wire; where a server gave an id twice, the later call.
    pub calls: HashMap<Arc<str>, KnownCall>,
    /// Other ids that snapshots give to calls of the current turn, and the ids by which those are known.
    aliases: HashMap<Arc<str>, Arc<str>>,
    /// The same the other way round, the last ones last.
    names: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// How many calls there were, to tell apart those whose id was given twice.
    calls_made: usize,
    /// Activities by message id: they are shown to people and never sent back.
    pub activities: HashMap<Arc<str>, Value>,
}

/// What a session knows of the turn that is going on.
#[derive(Debug, Default)]
pub struct ThreadTurn {
    /// Its id in the trace.
    pub id: Arc<str>,
    /// Its number, from 1.
    pub number: usize,
    /// Id of its user message.
    pub user_message: Arc<str>,
    /// What the user said.
    pub user_text: String,
    /// Texts of the agent that are in the trace.
    pub texts: SaidTexts,
    /// Wire ids of the turn's calls, in order.
    pub calls: Vec<Arc<str>>,
    /// What stood in the history before the turn, noted when its first snapshot replaces the history.
    pub before: Option<Before>,
    /// How many messages were replaced by snapshots.
    taken_over: usize,
}

/// How many messages snapshots may replace in a turn: each takes the place of all that are known.
const MOST_TAKEN_OVER: usize = 10_000_000;

/// Texts of the agent, as they are asked for again.
#[derive(Debug, Default)]
pub struct SaidTexts {
    by_id: HashMap<Arc<str>, HashSet<String>>,
    trimmed: HashSet<String>,
}

impl SaidTexts {
    /// Notes a text and the message that says it. Says whether it is a new one.
    pub fn add(&mut self, id: &Arc<str>, text: &str) -> bool {
        self.trimmed.insert(text.trim().to_string());
        self.by_id.entry(id.clone()).or_default().insert(text.to_string())
    }

    /// Whether any message has said this, or the message with this id has said it among other things.
    pub fn knows(&self, id: &str, text: &str) -> bool {
        let text = text.trim();
        self.trimmed.contains(text)
            || !id.is_empty()
                && self.by_id.get(id).is_some_and(|known| known.iter().any(|known| known.contains(text)))
    }
}

/// The part of a history that is older than the current turn.
#[derive(Debug)]
pub struct Before {
    /// Ids of all its messages.
    pub ids: HashSet<String>,
    /// What the user said in it.
    pub user_texts: HashSet<String>,
}

/// A tool call that was seen.
#[derive(Debug, Clone)]
pub struct KnownCall {
    /// Its id in the trace. It differs from that on the wire where the server had given that one before.
    pub trace_id: Arc<str>,
    /// Its tool.
    pub name: Arc<str>,
    /// The turn it was made in.
    pub turn: usize,
    /// Its arguments as far as they are known.
    pub arguments: Arguments,
    /// Its result, if one is known.
    pub answered: Option<Answered>,
}

/// Who gave the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// The agent, while this request was answered.
    ByAgent {
        /// Number of the request in its session.
        request: usize,
    },
    /// The client, from the script.
    ByClient,
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// Nothing has come.
    Unknown,
    /// JSON.
    Json(Value),
    /// Text that is not JSON.
    Broken(String),
}

impl Arguments {
    /// Reads what was streamed. No text at all means no arguments, which is an empty object.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Arguments::Json(Value::Object(Map::new()));
        }
        match hotseat_document::json::read_value(&readable(text)) {
            Ok(value) => Arguments::Json(value),
            Err(_) => Arguments::Broken(text.to_string()),
        }
    }

    /// The arguments as text in which the members of objects are sorted: equal arguments have equal texts.
    pub fn sorted(&self) -> String {
        fn write(value: &Value, text: &mut String) {
            match value {
                Value::Object(members) => {
                    let mut members: Vec<(&String, &Value)> = members.iter().collect();
                    members.sort_by_key(|(key, _)| *key);
                    text.push('{');
                    for (key, value) in members {
                        text.push_str(&Value::from(key.as_str()).to_string());
                        text.push(':');
                        write(value, text);
                        text.push(',');
                    }
                    text.push('}');
                }
                Value::Array(values) => {
                    text.push('[');
                    for value in values {
                        write(value, text);
                        text.push(',');
                    }
                    text.push(']');
                }
                scalar => text.push_str(&scalar.to_string()),
            }
        }
        let mut text = String::new();
        match self {
            Arguments::Unknown => {}
            Arguments::Json(value) => write(value, &mut text),
            Arguments::Broken(broken) => text = format!("broken {broken}"),
        }
        text
    }

    /// Whether nothing is known of them, or only that there are none, which may mean that they were lost.
    pub fn is_empty(&self) -> bool {
        match self {
            Arguments::Unknown => true,
            Arguments::Json(Value::Object(members)) => members.is_empty(),
            Arguments::Json(_) | Arguments::Broken(_) => false,
        }
    }

    /// Whether these are the arguments of another call for sure: both are whole, and they differ.
    pub fn contradict(&self, other: &Arguments) -> bool {
        let whole = |arguments: &Arguments| matches!(arguments, Arguments::Json(_)) && !arguments.is_empty();
        whole(self) && whole(other) && self != other
    }
}

impl KnownCall {
    /// Whether the server had not given its id to another call before.
    pub fn has_id_of_its_own(&self, id: &str) -> bool {
        *self.trace_id == *id
    }
}

impl Thread {
    /// A conversation in which nothing has been said.
    pub fn new(id: Arc<str>, state: Value) -> Self {
        Thread {
            id,
            history: MessageHistory::default(),
            state,
            state_told: false,
            patching: PatchAllowance::default(),
            turn: ThreadTurn::default(),
            calls: HashMap::new(),
            aliases: HashMap::new(),
            names: HashMap::new(),
            calls_made: 0,
            activities: HashMap::new(),
        }
    }

    /// Begins a turn: the user's message joins the history.
    pub fn begin_turn(&mut self, id: Arc<str>, user_message: Arc<str>, text: &str) {
        self.history.push(object(json!({"id": user_message, "role": "user", "content": text})));
        self.aliases.clear();
        self.names.clear();
        self.turn = ThreadTurn {
            id,
            number: self.turn.number + 1,
            user_message,
            user_text: text.to_string(),
            ..ThreadTurn::default()
        };
    }

    /// Puts messages before the first turn.
    pub fn remember(&mut self, messages: Vec<Message>) {
        self.history = messages.into_iter().collect();
    }

    /// Gives the user's message of this turn content in parts.
    pub fn set_user_content(&mut self, parts: Value) {
        if let Some(slot) = self.history.with_id(&self.turn.user_message) {
            self.history.at(slot).insert("content".to_string(), parts);
        }
    }

    /// The id by which a call is known.
    pub fn known_id(&self, id: Arc<str>) -> Arc<str> {
        self.aliases.get(&id).cloned().unwrap_or(id)
    }

    /// The id under which the history holds a call: what the server's last snapshot calls it.
    pub fn id_in_history(&self, id: &Arc<str>) -> Arc<str> {
        let mut names = self.names.get(id).into_iter().flatten().rev();
        names.find(|name| self.history.caller(name).is_some()).unwrap_or(id).clone()
    }

    /// Notes another id of a call.
    pub fn add_alias(&mut self, name: Arc<str>, known: Arc<str>) {
        if self.aliases.insert(name.clone(), known.clone()).is_none() {
            self.names.entry(known).or_default().push(name);
        }
    }

    /// A call of the current turn.
    pub fn call_of_turn(&self, id: &str) -> Option<&KnownCall> {
        self.calls.get(id).filter(|call| call.turn == self.turn.number)
    }

    /// Notes a call that was not known and gives it an id for the trace: its own, unless that was given before.
    pub fn add_call(&mut self, id: &Arc<str>, name: &Arc<str>) -> Arc<str> {
        self.calls_made += 1;
        let trace_id = match self.calls.contains_key(id) {
            true => Arc::from(format!("{id}#{}", self.calls_made)),
            false => id.clone(),
        };
        let call = KnownCall {
            trace_id: trace_id.clone(),
            name: name.clone(),
            turn: self.turn.number,
            arguments: Arguments::Unknown,
            answered: None,
        };
        self.calls.insert(id.clone(), call);
        self.turn.calls.push(id.clone());
        trace_id
    }

    /// Where the messages of the current turn begin. Servers that number what they say from the start of each turn give
    /// ids again, so what is older is not looked at.
    fn is_of_turn(&self, slot: &Slot) -> bool {
        self.history.with_id(&self.turn.user_message).is_none_or(|begins| *slot >= begins)
    }

    /// The message of the current turn with this id and role, or a new empty one at the end.
    pub fn message(&mut self, id: &str, role: &str) -> &mut Message {
        let slot = self.message_place(id, role);
        self.history.at(slot)
    }

    fn message_place(&mut self, id: &str, role: &str) -> Slot {
        let known = self.history.with_role(id, role).filter(|slot| self.is_of_turn(slot));
        known.unwrap_or_else(|| self.history.push(object(json!({"id": id, "role": role}))))
    }

    /// The last message with this id, whoever said it.
    pub fn any_message(&mut self, id: &str) -> Option<&mut Message> {
        self.history.with_id(id).map(|slot| self.history.at(slot))
    }

    /// Puts a call into the assistant message that made it.
    pub fn put_call(&mut self, id: &str, name: &str, parent: Option<&str>) {
        if self.history.caller(id).is_some_and(|slot| self.is_of_turn(&slot)) {
            return;
        }
        let entry = json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
        let slot = self.message_place(parent.unwrap_or(id), "assistant");
        self.history.add_call(slot, id, entry);
    }

    /// Puts a second call with the id of another behind everything, with that one's arguments until it has its own.
    pub fn put_second_call(&mut self, id: &str, name: &str) {
        let Some(known) = self.calls.get(id) else { return };
        let message_id = known.trace_id.clone();
        let mut entry = self.call_entry(id).cloned().unwrap_or_else(|| json!({"id": id, "type": "function"}));
        entry["function"]["name"] = Value::String(name.to_string());
        self.history.push(object(json!({"id": message_id, "role": "assistant", "toolCalls": [entry]})));
    }

    /// Writes the arguments of a call, as the agent wrote them, into the message that made it.
    pub fn put_arguments(&mut self, id: &str, text: String) {
        if let Some(call) = self.call_entry(id) {
            call["function"]["arguments"] = Value::String(text);
        }
    }

    /// The entry of a call in the message that made it.
    pub fn call_entry(&mut self, id: &str) -> Option<&mut Value> {
        self.history.call_entry(id)
    }

    /// What the history holds as the result of a call.
    pub fn result(&self, call_id: &str) -> Option<&Value> {
        self.history.result(call_id)
    }

    /// Puts a result behind the message that made the call and behind the results that are there already.
    pub fn put_result(
        &mut self,
        message_id: &str,
        call_id: &str,
        content: Value,
        error: Option<&str>,
    ) -> &mut Message {
        let mut message =
            object(json!({"id": message_id, "role": "tool", "toolCallId": call_id, "content": content}));
        if let Some(error) = error {
            message.insert("error".to_string(), Value::String(error.to_string()));
        }
        self.history.put_result(call_id, message)
    }

    /// Takes over the messages of a snapshot, in its order. Messages of a role that a producer never puts into
    /// its snapshots (activity, reasoning) are kept, each behind what it
    /// followed.
    ///
    /// # Errors
    /// When that is to be done over and over again for more messages than any conversation has.
    pub fn take_over(&mut self, snapshot: &[Message]) -> Result<(), String> {
        if self.turn.before.is_none() {
            self.turn.before = Some(self.before());
        }
        let listed = |role: &str| snapshot.iter().any(|message| wire::role(message) == role);
        let kept_roles: Vec<&str> =
            ["activity", "reasoning"].into_iter().filter(|role| !listed(role)).collect();
        let is_kept = |message: &Message| kept_roles.contains(&wire::role(message));
        let ours = std::mem::take(&mut self.history);
        self.turn.taken_over += ours.iter().count();
        if self.turn.taken_over > MOST_TAKEN_OVER {
            return Err("MESSAGES_SNAPSHOT comes too often for a conversation of this length".to_string());
        }
        if !ours.iter().any(is_kept) {
            self.history = snapshot.iter().cloned().collect();
            return Ok(());
        }
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (place, message) in snapshot.iter().enumerate() {
            if let Some(id) = wire::id(message) {
                places.entry(id).or_insert(place);
            }
        }
        // What is kept, by the place in the snapshot that it stands behind.
        let mut kept: HashMap<usize, Vec<Message>> = HashMap::new();
        let mut behind = snapshot.len();
        for message in ours {
            if is_kept(&message) {
                kept.entry(behind).or_default().push(message);
            } else if let Some(place) = wire::id(&message).and_then(|id| places.get(id)) {
                behind = *place;
            }
        }
        let messages = snapshot.iter().enumerate().flat_map(|(place, message)| {
            let behind = kept.remove(&place).unwrap_or_default();
            std::iter::once(message.clone()).chain(behind)
        });
        let mut history: MessageHistory = messages.collect();
        for message in kept.remove(&snapshot.len()).unwrap_or_default() {
            history.push(message);
        }
        self.history = history;
        Ok(())
    }

    fn before(&self) -> Before {
        let users = |message: &&Message| wire::role(message) == "user";
        let older =
            self.history.iter().take_while(|message| wire::id(message) != Some(&self.turn.user_message));
        Before {
            ids: older.clone().filter_map(wire::id).map(str::to_string).collect(),
            user_texts: older.filter(users).map(|message| wire::text(message.get("content"))).collect(),
        }
    }

    /// Where the messages of the current turn begin in a snapshot: behind its user message. A snapshot that was
    /// taken before the turn holds none of them.
    pub fn turn_begins(&self, snapshot: &[Message]) -> usize {
        let before = self.turn.before.as_ref();
        let older = |message: &Message| {
            before.is_some_and(|before| wire::id(message).is_some_and(|id| before.ids.contains(id)))
        };
        let new_user = |message: &Message| wire::role(message) == "user" && !older(message);
        let said = |message: &Message| wire::text(message.get("content"));

        let by_id = snapshot.iter().position(|message| wire::id(message) == Some(&self.turn.user_message));
        // A server may give the user's messages ids of its own, or change what they say.
        let by_text =
            || snapshot.iter().rposition(|message| new_user(message) && said(message) == self.turn.user_text);
        let unheard =
            |message: &Message| before.is_none_or(|before| !before.user_texts.contains(&said(message)));
        let by_news = || snapshot.iter().position(|message| new_user(message) && unheard(message));
        if let Some(place) = by_id.or_else(by_text).or_else(by_news) {
            return place + 1;
        }
        match snapshot.iter().any(|message| wire::role(message) == "user") {
            true => snapshot.len(),
            false => snapshot.iter().rposition(older).map_or(0, |place| place + 1),
        }
    }

    /// The messages to send: activities are for people, and a message that never got any content is left out.
    pub fn outgoing(&self) -> impl Iterator<Item = &Message> {
        self.history.iter().filter(|message| match wire::role(message) {
            "activity" => false,
            "assistant" => {
                let said = message.get("content").is_some_and(|content| !content.is_null() && content != "");
                said || message.contains_key("toolCalls")
            }
            _ => true,
        })
    }
}

/// The members of a JSON value that is known to be an object.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
