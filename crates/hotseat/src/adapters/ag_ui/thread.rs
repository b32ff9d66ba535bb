//! The conversation as the protocol carries it from request to request: history, state, known calls.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::wire::{self, Message};

/// What a session knows between two requests.
#[derive(Debug)]
pub struct Thread {
    /// Id of the conversation; the same in every request.
    pub id: Arc<str>,
    /// The messages so far, with the ids that the server gave them.
    pub history: Vec<Message>,
    /// The shared state as last seen.
    pub state: Value,
    /// The current turn.
    pub turn: ThreadTurn,
    /// Calls by their id on the wire; where a server gave an id twice, the later call.
    pub calls: HashMap<Arc<str>, KnownCall>,
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
    /// Texts of the agent that are in the trace, with the ids of their messages.
    pub texts: Vec<(Arc<str>, String)>,
    /// Wire ids of the turn's calls that were seen as events, in order.
    pub calls: Vec<Arc<str>>,
}

/// A tool call that was seen.
#[derive(Debug, Clone)]
pub struct KnownCall {
    /// Its id in the trace.
    pub trace_id: Arc<str>,
    /// Its tool.
    pub name: Arc<str>,
    /// The turn it was made in.
    pub turn: usize,
    /// Which request of the session it was made in.
    pub request: usize,
    /// Its arguments as far as they are known.
    pub arguments: Arguments,
    /// Whether a result is known.
    pub answered: bool,
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
        match serde_json::from_str(text) {
            Ok(value) => Arguments::Json(value),
            Err(_) => Arguments::Broken(text.to_string()),
        }
    }

    /// What `function.arguments` of a message holds.
    fn wire_text(&self) -> String {
        match self {
            Arguments::Unknown => "{}".to_string(),
            Arguments::Json(value) => value.to_string(),
            Arguments::Broken(text) => text.clone(),
        }
    }
}

impl Thread {
    /// A conversation in which nothing has been said.
    pub fn new(id: Arc<str>, state: Value) -> Self {
        Thread {
            id,
            history: Vec::new(),
            state,
            turn: ThreadTurn::default(),
            calls: HashMap::new(),
            calls_made: 0,
            activities: HashMap::new(),
        }
    }

    /// Begins a turn: the user's message joins the history.
    pub fn begin_turn(&mut self, id: Arc<str>, user_message: Arc<str>, text: &str) {
        self.history.push(object(json!({"id": user_message, "role": "user", "content": text})));
        self.turn = ThreadTurn {
            id,
            number: self.turn.number + 1,
            user_message,
            user_text: text.to_string(),
            ..ThreadTurn::default()
        };
    }

    /// Notes a call that was not known and gives it an id for the trace: its own, unless that was given before.
    pub fn add_call(&mut self, id: &Arc<str>, name: &Arc<str>, request: usize) -> Arc<str> {
        self.calls_made += 1;
        let trace_id = match self.calls.contains_key(id) {
            true => Arc::from(format!("{id}#{}", self.calls_made)),
            false => id.clone(),
        };
        let call = KnownCall {
            trace_id: trace_id.clone(),
            name: name.clone(),
            turn: self.turn.number,
            request,
            arguments: Arguments::Unknown,
            answered: false,
        };
        self.calls.insert(id.clone(), call);
        trace_id
    }

    /// The message with this id, or a new empty one of this role at the end.
    pub fn message(&mut self, id: &str, role: &str) -> &mut Message {
        let place = self.history.iter().rposition(|message| wire::id(message) == Some(id));
        let place = place.unwrap_or_else(|| {
            self.history.push(object(json!({"id": id, "role": role})));
            self.history.len() - 1
        });
        &mut self.history[place]
    }

    /// Puts a call into the assistant message that made it.
    pub fn put_call(&mut self, id: &str, name: &str, parent: Option<&str>) {
        let entry = json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
        if self.history.iter().flat_map(wire::calls).any(|call| call.id == id) {
            return;
        }
        let message = self.message(parent.unwrap_or(id), "assistant");
        match message.get_mut("toolCalls").and_then(Value::as_array_mut) {
            Some(calls) => calls.push(entry),
            None => {
                message.insert("toolCalls".to_string(), json!([entry]));
            }
        }
    }

    /// Writes the arguments of a call into the message that made it.
    pub fn put_arguments(&mut self, id: &str, arguments: &Arguments) {
        if let Some(call) = self.call_entry(id) {
            call["function"]["arguments"] = Value::String(arguments.wire_text());
        }
    }

    /// The entry of a call in the message that made it.
    pub fn call_entry(&mut self, id: &str) -> Option<&mut Value> {
        let messages = self.history.iter_mut().rev();
        let mut calls = messages.filter_map(|message| message.get_mut("toolCalls")?.as_array_mut()).flatten();
        calls.find(|call| call.get("id").and_then(Value::as_str) == Some(id))
    }

    /// Puts a result behind the message that made the call and behind the results that are there already.
    pub fn put_result(&mut self, message_id: &str, call_id: &str, content: Value, error: Option<&str>) {
        let known = |m: &Message| wire::role(m) == "tool" && m.get("toolCallId").and_then(Value::as_str) == Some(call_id);
        self.history.retain(|message| !known(message));
        let caller = self.history.iter().rposition(|message| wire::calls(message).any(|call| call.id == call_id));
        let place = match caller {
            Some(caller) => {
                let results = self.history[caller + 1..].iter().take_while(|m| wire::role(m) == "tool").count();
                caller + 1 + results
            }
            None => self.history.len(),
        };
        let mut message = object(json!({"id": message_id, "role": "tool", "toolCallId": call_id, "content": content}));
        if let Some(error) = error {
            message.insert("error".to_string(), Value::String(error.to_string()));
        }
        self.history.insert(place, message);
    }

    /// Takes over the messages of a snapshot, in its order. Messages of a role that a producer never puts into
    /// its snapshots (activity, reasoning) are kept, each behind the message that it followed.
    pub fn take_over(&mut self, snapshot: &[Message]) {
        let has_role = |role: &str| snapshot.iter().any(|message| wire::role(message) == role);
        let kept_roles: Vec<&str> = ["activity", "reasoning"].into_iter().filter(|role| !has_role(role)).collect();
        let mut history = snapshot.to_vec();
        let mut before: Option<Value> = None;
        for message in std::mem::take(&mut self.history) {
            let id = message.get("id").cloned();
            if kept_roles.contains(&wire::role(&message)) {
                let neighbour = history.iter().position(|other| before.is_some() && other.get("id") == before.as_ref());
                history.insert(neighbour.map_or(history.len(), |place| place + 1), message);
            }
            before = id;
        }
        self.history = history;
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
