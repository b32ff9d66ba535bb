//! A conversation with its served models.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hotseat_trace::UniqueIds;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};

use super::answer_source::{AnswerSource, RecordError};
use super::faults::FaultState;
use super::limits::ServeLimits;
use super::served_model::ServedModel;
use super::{ServedModelEvent, ServedModelEventKind};
use crate::providers::served::{RequestProblem, resolve_item_references};
use crate::{CallPosition, ModelMessage, ModelReply, ModelRequest};

/// State that all conversations share.
pub(super) struct RunState {
    pub(super) limits: ServeLimits,
    /// Conversations by token.
    conversations: Mutex<HashMap<String, Arc<ConversationState>>>,
}

impl RunState {
    pub(super) fn new(limits: ServeLimits) -> RunState {
        RunState { limits, conversations: Mutex::default() }
    }

    pub(super) fn insert(&self, conversation: Arc<ConversationState>) {
        self.lock().insert(conversation.token.clone(), conversation);
    }

    pub(super) fn remove(&self, token: &str) {
        self.lock().remove(token);
    }

    pub(super) fn find(&self, token: &str) -> Option<Arc<ConversationState>> {
        self.lock().get(token).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ConversationState>>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A conversation with its own addresses. Dropping it closes it; its addresses then refuse requests.
pub struct ServedConversation {
    address: SocketAddr,
    run: Arc<RunState>,
    state: Arc<ConversationState>,
    events: mpsc::Receiver<ServedModelEvent>,
}

impl ServedConversation {
    pub(super) fn open(
        address: SocketAddr,
        run: Arc<RunState>,
        id: &str,
        models: BTreeMap<String, ServedModel>,
    ) -> ServedConversation {
        let token = uuid::Uuid::new_v4().simple().to_string();
        ServedConversation::with_token(address, run, token, id, models)
    }

    fn with_token(
        address: SocketAddr,
        run: Arc<RunState>,
        token: String,
        id: &str,
        models: BTreeMap<String, ServedModel>,
    ) -> ServedConversation {
        let (sender, events) = mpsc::channel(run.limits.max_waiting_events.max(1));
        let models = models.into_iter().map(|(name, served)| {
            let state = ModelState {
                name: name.as_str().into(),
                source: AnswerSource::new(served.source, &name),
                faults: FaultState::new(served.faults),
            };
            (name, Arc::new(state))
        });
        let state = Arc::new(ConversationState {
            token,
            id: id.to_owned(),
            models: models.collect(),
            limits: run.limits.clone(),
            open_requests: Arc::new(Semaphore::new(run.limits.max_open_requests)),
            sender,
            closed: watch::Sender::new(false),
            memory: Mutex::default(),
        });
        run.insert(state.clone());
        ServedConversation { address, run, state, events }
    }

    /// Ends the conversation and begins another one at the same addresses, for agents that learn them once.
    pub fn reopen(self, id: &str, models: BTreeMap<String, ServedModel>) -> ServedConversation {
        let (address, run, token) = (self.address, self.run.clone(), self.state.token.clone());
        drop(self);
        ServedConversation::with_token(address, run, token, id, models)
    }

    /// Returns the names of the models.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.state.models.keys().map(String::as_str)
    }

    /// Returns the base address of a model in this conversation, with a token that cannot be guessed. Clients append the
    /// path of their protocol, with or without `v1`.
    pub fn url(&self, model: &str) -> Option<String> {
        let is_known = self.state.models.contains_key(model);
        is_known.then(|| format!("http://{}/models/{model}/{}", self.address, self.state.token))
    }

    /// Waits for the next event. Cancel-safe.
    pub async fn next_event(&mut self) -> Option<ServedModelEvent> {
        self.events.recv().await
    }

    /// Returns the next event if there is one.
    pub fn try_next_event(&mut self) -> Option<ServedModelEvent> {
        self.events.try_recv().ok()
    }

    /// Ends running calls. Later requests are refused.
    pub fn close(&self) {
        self.state.closed.send_replace(true);
    }

    /// Returns the names of the answers that no call has used, by the name of the model.
    pub fn unused_answers(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        let models = self.state.models.iter().map(|(name, state)| (name.as_str(), state.source.unused()));
        models.filter(|(_, unused)| !unused.is_empty())
    }

    /// Returns true if a model answers from a recording.
    pub fn is_replay(&self, model: &str) -> bool {
        self.state.models.get(model).is_some_and(|state| matches!(state.source, AnswerSource::Replay(_)))
    }

    /// Writes the exchanges of relays to their recordings.
    ///
    /// # Errors
    /// Why a recording is incomplete, or cannot be written.
    pub fn save_recordings(&self) -> Result<(), RecordError> {
        self.state.models.iter().try_for_each(|(name, state)| state.source.save_recording(name))
    }
}

impl Drop for ServedConversation {
    fn drop(&mut self) {
        self.close();
        self.run.remove(&self.state.token);
    }
}

/// A model in one conversation.
pub(super) struct ModelState {
    pub(super) name: Arc<str>,
    pub(super) source: AnswerSource,
    pub(super) faults: FaultState,
}

/// State that all requests of a conversation share.
pub(super) struct ConversationState {
    pub(super) token: String,
    /// Name that the caller gave the conversation; scripts see it.
    id: String,
    pub(super) models: BTreeMap<String, Arc<ModelState>>,
    pub(super) limits: ServeLimits,
    pub(super) open_requests: Arc<Semaphore>,
    sender: mpsc::Sender<ServedModelEvent>,
    pub(super) closed: watch::Sender<bool>,
    memory: Mutex<ConversationMemory>,
}

/// What later requests of a conversation depend on.
#[derive(Default)]
struct ConversationMemory {
    /// Number of calls so far.
    calls: u64,
    /// Number of calls at each position.
    attempts: HashMap<CallPosition, u32>,
    /// Ids of tool calls so far.
    tool_call_ids: UniqueIds,
    /// Messages of responses that can be continued, oldest first.
    responses: VecDeque<StoredResponse>,
    /// Size of all stored responses.
    stored_bytes: usize,
}

struct StoredResponse {
    id: String,
    bytes: usize,
    messages: Vec<ModelMessage>,
    reply: ModelReply,
}

impl ConversationState {
    /// Reports an event. Waits if the reader of events is slow.
    pub(super) async fn report(&self, model: &Arc<str>, kind: ServedModelEventKind) {
        let event = ServedModelEvent { at: Instant::now(), model: model.clone(), kind };
        // Without a reader the conversation has ended.
        let _ = self.sender.send(event).await;
    }

    /// Numbers a call and determines its position: the turn by the user messages, the call by the replies since the last of
    /// them, the attempt by the calls that were there before.
    pub(super) fn number_call(&self, requested: &str, request: &mut ModelRequest) -> u64 {
        let is_user = |message: &ModelMessage| matches!(message, ModelMessage::User { .. });
        let is_reply = |message: &&ModelMessage| matches!(message, ModelMessage::Assistant { .. });
        let messages = &request.messages;
        let turns = messages.iter().filter(|message| is_user(message)).count().max(1);
        let since = messages.iter().rposition(is_user).map_or(0, |last| last + 1);
        let calls = messages[since..].iter().filter(is_reply).count() + 1;
        let mut position = CallPosition {
            conversation: self.id.clone(),
            agent: requested.to_owned(),
            turn: u32::try_from(turns).unwrap_or(u32::MAX),
            call: u32::try_from(calls).unwrap_or(u32::MAX),
            attempt: 0,
        };
        let mut memory = self.memory();
        let attempts = memory.attempts.entry(position.clone()).or_default();
        *attempts += 1;
        position.attempt = *attempts;
        request.position = position;
        memory.calls += 1;
        memory.calls
    }

    /// Returns an id of a tool call that no earlier call of the conversation has.
    pub(super) fn unique_call_id(&self, id: &str) -> String {
        self.memory().tool_call_ids.assign(id, "_")
    }

    /// Prepends the messages of the response that a request continues.
    pub(super) fn continue_response(
        &self,
        id: &str,
        request: &mut ModelRequest,
    ) -> Result<(), RequestProblem> {
        let memory = self.memory();
        let Some(stored) = memory.responses.iter().find(|stored| stored.id == id) else {
            let message = format!("Previous response with id '{id}' not found.");
            return Err(RequestProblem { message, member: Some("previous_response_id".to_owned()) });
        };
        let new = std::mem::take(&mut request.messages);
        request.messages = stored.messages.iter().cloned().chain(new).collect();
        Ok(())
    }

    /// Puts the items of earlier responses in place of references to them.
    pub(super) fn resolve_items(&self, body: &mut Value) -> Result<(), RequestProblem> {
        let memory = self.memory();
        let reply_of =
            |id: &str| memory.responses.iter().find(|stored| stored.id == id).map(|stored| &stored.reply);
        resolve_item_references(body, reply_of, self.limits.max_body_bytes)
    }

    /// Stores a response, so that a request can continue it.
    pub(super) fn store_response(&self, id: &str, request: &ModelRequest, reply: &ModelReply) {
        let mut messages = request.messages.clone();
        messages.push(ModelMessage::assistant(reply));
        // The reply is stored twice.
        let bytes = messages.iter().chain(messages.last()).map(message_bytes).sum();
        let mut memory = self.memory();
        memory.stored_bytes += bytes;
        memory.responses.push_back(StoredResponse {
            id: id.to_owned(),
            bytes,
            messages,
            reply: reply.clone(),
        });
        while memory.stored_bytes > self.limits.max_stored_bytes
            && let Some(oldest) = memory.responses.pop_front()
        {
            memory.stored_bytes -= oldest.bytes;
        }
    }

    fn memory(&self) -> MutexGuard<'_, ConversationMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the approximate size of a message in memory.
fn message_bytes(message: &ModelMessage) -> usize {
    const OVERHEAD_BYTES: usize = 128;
    let calls = message.tool_calls().iter();
    let calls: usize = calls.map(|call| call.arguments.to_string().len() + OVERHEAD_BYTES).sum();
    message.text().len() + calls + OVERHEAD_BYTES
}
