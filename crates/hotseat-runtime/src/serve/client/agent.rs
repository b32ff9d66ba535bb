//! The agent that a server answers for, and the leases of its conversations.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use hotseat_model::ModelTool;
use serde_json::Value;

use super::exchange::{host_error, is_user_turn};
use super::histories::ChatHistories;
use super::request_error::RequestError;
use crate::conversation::{ConversationState, OperationAddress, TurnState};
use crate::definition::{Definitions, ToolTarget, schema};
use crate::ids::{AgentId, ConversationId};
use crate::live::{ConversationHandle, ConversationHost};

/// Agent that is served.
#[derive(Clone)]
pub struct ServedAgent {
    /// Name in URLs and as a model id.
    name: String,
    host: ConversationHost,
    id: AgentId,
    definitions: Arc<Definitions>,
    /// Number of requests in progress, by conversation.
    busy: Arc<Mutex<BTreeMap<ConversationId, usize>>>,
    /// Conversations that chat completions can continue.
    pub(in crate::serve) chat_histories: Arc<ChatHistories>,
}

impl ServedAgent {
    /// Creates a served agent: agent `id` of these definitions, whose conversations `host` runs.
    pub fn new(
        name: impl Into<String>,
        host: ConversationHost,
        definitions: Arc<Definitions>,
        id: AgentId,
    ) -> ServedAgent {
        ServedAgent {
            name: name.into(),
            host,
            id,
            definitions,
            busy: Arc::default(),
            chat_histories: Arc::default(),
        }
    }

    /// Returns the name of the agent.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens a conversation, creating it if it does not exist.
    pub(in crate::serve) async fn conversation(
        &self,
        id: &ConversationId,
    ) -> Result<ConversationHandle, RequestError> {
        self.host.conversation(id, &self.id).await.map_err(host_error)
    }

    /// Opens an existing conversation.
    pub(in crate::serve) async fn known_conversation(
        &self,
        id: &ConversationId,
    ) -> Result<ConversationHandle, RequestError> {
        self.host.known_conversation(id, &self.id).await.map_err(host_error)
    }

    /// Leases a conversation for one request.
    pub(in crate::serve) fn lease(&self, id: &ConversationId) -> Result<ConversationLease, RequestError> {
        self.try_lease(id, false).ok_or_else(|| {
            let message =
                format!("thread {id} already has a running request; send this one again when it has ended");
            RequestError::conflict(message)
        })
    }

    /// Leases a conversation for one request, also if all of its running turns wait only for asynchronous
    /// tools.
    pub(in crate::serve) async fn lease_or_join(
        &self,
        id: &ConversationId,
    ) -> Result<ConversationLease, RequestError> {
        if let Some(taken) = self.try_lease(id, false) {
            return Ok(taken);
        }
        let state = self.conversation(id).await?.state().await.map_err(host_error)?;
        let mut turns = state.active_turns().filter(|turn| is_user_turn(turn)).peekable();
        let beside = turns.peek().is_some() && turns.all(TurnState::has_async_operations);
        match beside.then(|| self.try_lease(id, true)).flatten() {
            Some(taken) => Ok(taken),
            None => self.lease(id),
        }
    }

    /// Leases a conversation, unless another request has; `beside` allows that.
    pub(in crate::serve) fn try_lease(&self, id: &ConversationId, beside: bool) -> Option<ConversationLease> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = busy.entry(id.clone()).or_default();
        if *requests > 0 && !beside {
            return None;
        }
        *requests += 1;
        Some(ConversationLease { busy: self.busy.clone(), id: id.clone() })
    }

    /// Checks that the agent can use these client tools.
    pub(in crate::serve) fn check_offer(&self, tools: &[ModelTool]) -> Result<(), RequestError> {
        let own = self.definitions.agent(&self.id).map(|agent| &agent.persona.tools[..]).unwrap_or_default();
        let mut names = HashSet::new();
        for (index, tool) in tools.iter().enumerate() {
            let at = format!("tools[{index}]");
            // A tool that the agent declares as a client tool may be offered by the client.
            let mut taken = own.iter().filter(|known| known.target != Some(ToolTarget::Client));
            let problem = if taken.any(|known| known.name == tool.name) {
                format!("the agent already has a tool named {:?}", tool.name)
            } else if !names.insert(&tool.name) {
                format!("the tool name {:?} is used twice", tool.name)
            } else if let Err(problem) = schema::check_client_schema(&tool.input_schema) {
                format!("the parameters of {:?} cannot be used: {problem}", tool.name)
            } else {
                continue;
            };
            return Err(RequestError::bad_request(at, problem));
        }
        Ok(())
    }

    /// Checks arguments with which a human changes a call that waits for approval.
    pub(in crate::serve) fn check_edited_arguments(
        &self,
        state: &ConversationState,
        at: &OperationAddress,
        edited: &Value,
    ) -> Result<(), String> {
        let asked = state.turn(&at.turn).and_then(|turn| Some((turn, turn.operation(&at.call)?)));
        let tool = asked.and_then(|(turn, call)| state.tool(&self.definitions, &turn.agent, &call.tool));
        let violations = tool.map(|tool| schema::violations(&tool.input_schema, edited)).unwrap_or_default();
        if violations.is_empty() { Ok(()) } else { Err(violations.join("; ")) }
    }
}

/// Lease of a conversation by a request; released when dropped.
pub struct ConversationLease {
    busy: Arc<Mutex<BTreeMap<ConversationId, usize>>>,
    id: ConversationId,
}

impl Drop for ConversationLease {
    fn drop(&mut self) {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = busy.get_mut(&self.id) {
            *requests -= 1;
            if *requests == 0 {
                busy.remove(&self.id);
            }
        }
    }
}
