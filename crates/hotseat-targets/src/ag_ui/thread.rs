//! State of the conversation carried from request to request: history, shared state, known calls.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hotseat_trace::{Origin, PatchBudget, TimeOffset};
use serde_json::{Map, Value, json};

use super::history::{CallMessage, HistoryMessage, MessageHistory, MessageSlot};
use super::id_map::IdMap;
use super::known_call::{KnownArguments, KnownCall};
use super::recorded_texts::RecordedTexts;
use super::reply_order::CallingMessage;
use super::wire::{self, MessageObject};
use crate::recorder::StartTimes;

/// Answers to be sent with the next run.
#[derive(Debug, Default)]
pub(super) struct ResumeAnswers {
    pub(super) resume: Vec<Value>,
    /// Answer for producers before 1.0, sent as `forwardedProps.command.resume`.
    pub(super) command: Option<Value>,
}

/// State of a session between two requests.
#[derive(Debug, Default)]
pub struct ConversationThread {
    /// Id of the conversation, equal in all requests.
    pub id: Arc<str>,
    /// The messages so far, with the server's ids.
    pub history: MessageHistory,
    /// The shared state as last received.
    pub state: Value,
    /// True if the trace contains the state; the state of the first request is not in it.
    pub is_state_recorded: bool,
    /// Remaining allowance of patches for copying.
    pub patching: PatchBudget,
    /// The current turn.
    pub turn: ThreadTurn,
    /// Calls by wire id; if an id was used twice, the later call.
    pub(super) calls: IdMap<KnownCall>,
    /// Known ids by alias: snapshots may use other ids for calls of the current turn.
    aliases: IdMap<Arc<str>>,
    /// Aliases by known id, in order.
    aliases_by_id: IdMap<Vec<Arc<str>>>,
    /// Number of calls, used to make repeated ids unique.
    call_count: usize,
    /// Number of calls by tool.
    calls_by_tool: HashMap<Arc<str>, usize>,
    /// Activities by message id: they are displayed and never sent back.
    pub activities: HashMap<Arc<str>, Value>,
}

/// State of the current turn.
#[derive(Debug, Default)]
pub struct ThreadTurn {
    /// Id in the trace.
    pub id: Arc<str>,
    /// Number, from 1.
    pub number: usize,
    /// Id of the user message.
    pub user_message: Arc<str>,
    /// Text of the user message.
    pub user_text: String,
    /// Agent texts that are in the trace.
    pub recorded_texts: RecordedTexts,
    /// Calls with the message that the order of the events shows, as long as the trace does not have it.
    pub calling_messages: Vec<CallingMessage>,
    /// Bytes of the texts that continued an earlier text of their message. The trace has only what they added.
    pub continued_bytes: usize,
    /// Wire ids of the calls, in order.
    pub calls: Vec<Arc<str>>,
    /// Tools and canonical arguments of the earlier calls whose id was used again, by id.
    pub repeated: HashMap<Arc<str>, HashSet<(Arc<str>, String)>>,
    /// Ids and hashes of the results of calls whose id was used again before.
    pub first_results: HashSet<(Arc<str>, u64)>,
    /// Number of the calls of earlier turns, by tool.
    pub calls_before: HashMap<Arc<str>, usize>,
    /// Starts of the calls and texts.
    pub starts: StartTimes,
    /// The messages before the turn, set when its first snapshot replaces the history.
    pub earlier: Option<EarlierMessages>,
    /// Number of messages replaced by snapshots.
    replaced_messages: usize,
}

/// Maximum number of messages that snapshots may replace in a turn: each snapshot replaces all messages.
const MAX_REPLACED_MESSAGES: usize = 10_000_000;

/// Snapshots replace too many messages in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("MESSAGES_SNAPSHOT is sent too often for a conversation of this length")]
pub struct TooManySnapshots;

/// The messages before the current turn.
#[derive(Debug)]
pub struct EarlierMessages {
    /// Ids of all its messages.
    pub ids: HashSet<String>,
    /// Texts of the user messages, each with its places among them.
    user_texts: HashMap<String, Vec<usize>>,
    /// Texts of the agent.
    pub agent_texts: Vec<String>,
    /// Ids of the calls.
    pub calls: HashSet<Arc<str>>,
}

impl EarlierMessages {
    /// Returns true if a message of a snapshot is one of them.
    pub fn contains(&self, message: &MessageObject) -> bool {
        let is_user = wire::role(message) == "user";
        wire::id(message).is_some_and(|id| self.ids.contains(id))
            || (is_user && self.user_texts.contains_key(&wire::text(message.get("content"))))
    }
}

impl ConversationThread {
    /// Creates an empty conversation.
    pub fn new(id: Arc<str>, state: Value) -> Self {
        ConversationThread { id, state, ..ConversationThread::default() }
    }

    /// Starts a turn and adds the user message to the history.
    pub fn begin_turn(&mut self, id: Arc<str>, user_message: Arc<str>, text: &str) {
        self.history.push(object(json!({"id": user_message, "role": "user", "content": text})));
        self.aliases.clear();
        self.aliases_by_id.clear();
        self.turn = ThreadTurn {
            id,
            number: self.turn.number + 1,
            user_message,
            user_text: text.to_string(),
            calls_before: self.calls_by_tool.clone(),
            ..ThreadTurn::default()
        };
    }

    /// Sets the messages before the first turn.
    pub fn seed_history(&mut self, messages: Vec<MessageObject>) {
        self.history = messages.into_iter().map(HistoryMessage::from).collect();
        for (_, name) in self.history.iter().flat_map(HistoryMessage::calls) {
            *self.calls_by_tool.entry(name).or_default() += 1;
        }
    }

    /// Replaces the content of the current user message by parts.
    pub fn set_user_content(&mut self, parts: Value) {
        if let Some(slot) = self.history.with_id(&self.turn.user_message) {
            self.history.message_mut(slot).insert("content".to_string(), parts);
        }
    }

    /// Returns the id by which a call is known.
    pub fn known_id(&self, id: Arc<str>) -> Arc<str> {
        self.aliases.get(&id).cloned().unwrap_or(id)
    }

    /// Returns the id of a call in the history: the one in the last snapshot.
    pub fn id_in_history(&self, id: &Arc<str>) -> Arc<str> {
        let mut names = self.aliases_by_id.get(id).into_iter().flatten().rev();
        names.find(|name| self.history.caller(name).is_some()).unwrap_or(id).clone()
    }

    /// Adds an alias of a call.
    pub fn add_alias(&mut self, name: Arc<str>, known: Arc<str>) {
        if self.aliases.insert(name.clone(), known.clone()).is_none() {
            self.aliases_by_id.get_or_insert_with(&known, Vec::new).push(name);
        }
    }

    /// Returns a call of the current turn.
    pub fn call_of_turn(&self, id: &str) -> Option<&KnownCall> {
        self.calls.get(id).filter(|call| call.turn == self.turn.number)
    }

    /// Returns true if a call of the turn with this id was replaced by another one.
    pub fn is_replaced_call(&self, id: &str, call: &wire::CallInMessage<'_>) -> bool {
        let key = || (Arc::from(call.name), KnownArguments::parse(&call.arguments).canonical_text());
        self.turn.repeated.get(id).is_some_and(|repeated| repeated.contains(&key()))
    }

    /// Notes that a snapshot lists a call by its id.
    pub fn note_listed_call(&mut self, id: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.is_listed = call.is_streamed;
        }
    }

    /// Adds a new call and returns its trace id: its own id, unless that is already used.
    pub fn add_call(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        origin: Origin,
        started: TimeOffset,
    ) -> Arc<str> {
        self.call_count += 1;
        *self.calls_by_tool.entry(name.clone()).or_default() += 1;
        let trace_id = match self.calls.contains_key(id) {
            true => Arc::from(format!("{id}#{}", self.call_count)),
            false => id.clone(),
        };
        let call = KnownCall {
            trace_id: trace_id.clone(),
            name: name.clone(),
            turn: self.turn.number,
            started,
            arguments: KnownArguments::Unknown,
            result_source: None,
            streamed_result: None,
            error: None,
            message_id: None,
            is_streamed: origin == Origin::Stream,
            is_listed: false,
        };
        let replaced = self.calls.insert(id.clone(), call);
        if let Some(earlier) = replaced.filter(|earlier| earlier.turn == self.turn.number) {
            let known = self.turn.repeated.entry(id.clone()).or_default();
            known.insert((earlier.name, earlier.arguments.canonical_text()));
        }
        self.turn.calls.push(id.clone());
        trace_id
    }

    /// Returns true if a message belongs to the current turn. Some servers restart their ids in each turn, so
    /// older messages are ignored.
    fn is_of_turn(&self, slot: &MessageSlot) -> bool {
        self.history.with_id(&self.turn.user_message).is_none_or(|begins| *slot >= begins)
    }

    /// Returns the message of the current turn with this id and role, or appends an empty one.
    pub fn message_mut(&mut self, id: &str, role: &str) -> &mut MessageObject {
        let slot = self.message_slot(id, role);
        self.history.message_mut(slot)
    }

    fn message_slot(&mut self, id: &str, role: &str) -> MessageSlot {
        let known = self.history.with_role(id, role).filter(|slot| self.is_of_turn(slot));
        known.unwrap_or_else(|| self.history.push(object(json!({"id": id, "role": role}))))
    }

    /// Returns the last message with this id, of any role.
    pub fn last_message_mut(&mut self, id: &str) -> Option<&mut MessageObject> {
        self.history.with_id(id).map(|slot| self.history.message_mut(slot))
    }

    /// Appends the messages that the server has added to those of the request.
    pub fn add_unknown_messages(&mut self, messages: Vec<MessageObject>) {
        for message in messages {
            if wire::id(&message).is_some_and(|id| self.history.with_id(id).is_none()) {
                self.history.push(message);
            }
        }
    }

    /// Adds a call to its assistant message.
    pub fn add_call_entry(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        parent: Option<&Arc<str>>,
        subagent: Option<&Arc<str>>,
    ) {
        if self.history.caller(id).is_some_and(|slot| self.is_of_turn(&slot)) {
            return;
        }
        let message_id = parent.unwrap_or(id);
        let known = self.history.with_role(message_id, "assistant").filter(|slot| self.is_of_turn(slot));
        match known {
            Some(slot) => self.history.add_call(slot, id, name),
            None => {
                let slot = self.history.push(HistoryMessage::Call(CallMessage {
                    id: message_id.clone(),
                    call_id: id.clone(),
                    tool: name.clone(),
                    arguments: None,
                }));
                self.history.set_subagent(slot, subagent);
            }
        }
    }

    /// Appends a second call with the id of another one; it has the other one's arguments until its own
    /// arrive.
    pub fn add_second_call_entry(&mut self, id: &str, name: &str, subagent: Option<&Arc<str>>) {
        let Some(known) = self.calls.get(id) else { return };
        let message_id = known.trace_id.clone();
        let mut entry =
            self.history.call_entry(id).cloned().unwrap_or_else(|| json!({"id": id, "type": "function"}));
        entry["function"]["name"] = Value::String(name.to_string());
        let message = object(json!({"id": message_id, "role": "assistant", "toolCalls": [entry]}));
        let slot = self.history.push(message);
        self.history.set_subagent(slot, subagent);
    }

    /// Replaces the history by the messages of a snapshot. Activity and reasoning messages are kept after
    /// their predecessors if the producer never includes them in snapshots. Fails if snapshots replace more
    /// messages than allowed in one turn.
    pub fn replace_history(&mut self, snapshot: &[Arc<MessageObject>]) -> Result<(), TooManySnapshots> {
        if self.turn.earlier.is_none() {
            self.turn.earlier = Some(self.earlier_messages());
        }
        let listed = |role: &str| snapshot.iter().any(|message| wire::role(message) == role);
        let kept_roles: Vec<&str> =
            ["activity", "reasoning"].into_iter().filter(|role| !listed(role)).collect();
        let is_kept = |message: &HistoryMessage| kept_roles.contains(&message.role());
        let ours = std::mem::take(&mut self.history);
        self.turn.replaced_messages += ours.iter().count();
        if self.turn.replaced_messages > MAX_REPLACED_MESSAGES {
            return Err(TooManySnapshots);
        }
        if !ours.iter().any(is_kept) {
            self.history = snapshot.iter().cloned().map(HistoryMessage::Json).collect();
            return Ok(());
        }
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (place, message) in snapshot.iter().enumerate() {
            if let Some(id) = wire::id(message) {
                places.entry(id).or_insert(place);
            }
        }
        // Kept messages by the snapshot index before which they belong: after the last message that the snapshot lists, or
        // before the first one.
        let mut kept: HashMap<usize, Vec<HistoryMessage>> = HashMap::new();
        let mut leading = Vec::new();
        let mut after = None;
        for message in ours {
            if is_kept(&message) {
                match after {
                    Some(place) => kept.entry(place + 1).or_default().push(message),
                    None => leading.push(message),
                }
            } else if let Some(&place) = message.id().and_then(|id| places.get(id)) {
                kept.entry(place).or_default().append(&mut leading);
                after = Some(place);
            }
        }
        kept.entry(snapshot.len()).or_default().append(&mut leading);
        let messages = snapshot.iter().enumerate().flat_map(|(place, message)| {
            let before = kept.remove(&place).unwrap_or_default();
            before.into_iter().chain([HistoryMessage::Json(message.clone())])
        });
        let mut history: MessageHistory = messages.collect();
        for message in kept.remove(&snapshot.len()).unwrap_or_default() {
            history.push(message);
        }
        self.history = history;
        Ok(())
    }

    fn earlier_messages(&self) -> EarlierMessages {
        let older = self.history.iter().take_while(|message| message.id() != Some(&self.turn.user_message));
        let texts = |role: &'static str| {
            let of_role = older.clone().filter(move |message| message.role() == role);
            of_role.map(|message| wire::text(message.content()))
        };
        let mut user_texts: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, text) in texts("user").enumerate() {
            user_texts.entry(text).or_default().push(place);
        }
        EarlierMessages {
            ids: older.clone().filter_map(HistoryMessage::id).map(str::to_string).collect(),
            user_texts,
            agent_texts: texts("assistant").filter(|text| !text.trim().is_empty()).collect(),
            calls: older.clone().flat_map(HistoryMessage::calls).map(|(id, _)| id).collect(),
        }
    }

    /// Returns the index of the first message of the current turn in a snapshot, after its user message. A
    /// snapshot taken before the turn has none.
    pub fn turn_start(&self, snapshot: &[Arc<MessageObject>]) -> usize {
        let before = self.turn.earlier.as_ref();
        let older = |message: &MessageObject| {
            before.is_some_and(|before| wire::id(message).is_some_and(|id| before.ids.contains(id)))
        };
        let new_user = |message: &MessageObject| wire::role(message) == "user" && !older(message);
        let said = |message: &MessageObject| wire::text(message.get("content"));

        let by_id = snapshot.iter().position(|message| wire::id(message) == Some(&self.turn.user_message));
        // A server may assign its own ids to user messages or change their text. If the user has said the same before, a snapshot
        // from before the turn has only the earlier messages.
        let is_before_turn = || {
            let users = || snapshot.iter().filter(|message| wire::role(message) == "user");
            before.is_some_and(|before| {
                let stands_at = |(place, message): (usize, &Arc<MessageObject>)| {
                    before
                        .user_texts
                        .get(&said(message))
                        .is_some_and(|places| places.binary_search(&place).is_ok())
                };
                users().count() == before.user_texts.values().map(Vec::len).sum::<usize>()
                    && users().enumerate().all(stands_at)
            })
        };
        let by_text = || {
            let found = snapshot
                .iter()
                .rposition(|message| new_user(message) && said(message) == self.turn.user_text);
            found.filter(|_| !is_before_turn())
        };
        let unheard = |message: &MessageObject| {
            before.is_none_or(|before| !before.user_texts.contains_key(&said(message)))
        };
        let by_news = || snapshot.iter().position(|message| new_user(message) && unheard(message));
        if let Some(place) = by_id.or_else(by_text).or_else(by_news) {
            return place + 1;
        }
        match snapshot.iter().any(|message| wire::role(message) == "user") {
            true => snapshot.len(),
            false => snapshot.iter().rposition(|message| older(message)).map_or(0, |place| place + 1),
        }
    }

    /// Returns the messages to send, without activities and messages without content.
    pub fn outgoing(&self) -> impl Iterator<Item = Cow<'_, MessageObject>> {
        let sent = self.history.iter().filter(|message| match message.role() {
            "activity" => false,
            "assistant" => message.has_content() || message.has_calls(),
            "reasoning" => message.has_content() || message.has_encrypted_value(),
            _ => true,
        });
        sent.map(HistoryMessage::to_json)
    }
}

/// Returns the members of a JSON object.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
