//! Loads conversations and hands out their handles.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, mpsc};

use super::actor::{ConversationActor, MissingPolicy};
use super::error::HostError;
use super::handle::ConversationHandle;
use super::idle::IdleConversations;
use super::models::ModelRegistry;
use super::state::{HostOptions, HostState, LoadedConversation, MAX_TRACE_READERS};
use super::watch::WatcherList;
use crate::definition::Definitions;
use crate::ids::{AgentId, ConversationId};

/// Maximum number of waiting inputs of a conversation; senders wait if it is reached.
const INBOX_CAPACITY: usize = 16;

/// Runs the conversations of one set of definitions. Clones share the same host.
#[derive(Clone)]
pub struct ConversationHost {
    shared: Arc<HostState>,
}

impl ConversationHost {
    /// Creates a host. Its conversations are tasks of the tokio runtime in which it is used.
    pub fn new(definitions: Arc<Definitions>, models: ModelRegistry, options: HostOptions) -> Self {
        let calls = Arc::new(Semaphore::new(options.max_model_calls.clamp(1, Semaphore::MAX_PERMITS)));
        let loaded = Mutex::new(HashMap::new());
        ConversationHost {
            shared: Arc::new(HostState {
                definitions,
                models,
                options,
                calls,
                readers: Semaphore::new(MAX_TRACE_READERS),
                generations: AtomicU64::new(0),
                loaded,
                idle: IdleConversations::default(),
            }),
        }
    }

    /// Returns the definitions of the conversations.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.shared.definitions
    }

    /// Opens a conversation with an agent, or resumes it if it is stored.
    ///
    /// # Errors
    /// If the agent is unknown, the conversation belongs to another agent, or the store fails.
    pub async fn conversation(
        &self,
        id: &ConversationId,
        agent: &AgentId,
    ) -> Result<ConversationHandle, HostError> {
        if self.shared.definitions.agent(agent).is_none() {
            return Err(HostError::UnknownAgent(agent.clone()));
        }
        let (handle, owner) = loop {
            let handle = self.attach(id, agent, MissingPolicy::Open)?;
            match handle.agent().await {
                Ok(held_by) => break (handle, held_by),
                // Another task looked it up without creating it; try again.
                Err(HostError::UnknownConversation(_)) => {}
                Err(error) => return Err(error),
            }
        };
        self.check_agent(handle, owner, agent)
    }

    /// Returns an existing conversation with an agent.
    ///
    /// # Errors
    /// If the conversation or the agent is unknown, it belongs to another agent, or the store fails.
    pub async fn known_conversation(
        &self,
        id: &ConversationId,
        agent: &AgentId,
    ) -> Result<ConversationHandle, HostError> {
        let handle = self.attach(id, agent, MissingPolicy::Refuse)?;
        let owner = handle.agent().await?;
        self.check_agent(handle, owner, agent)
    }

    fn check_agent(
        &self,
        handle: ConversationHandle,
        owner: AgentId,
        agent: &AgentId,
    ) -> Result<ConversationHandle, HostError> {
        let id = handle.id();
        if owner != *agent {
            return Err(HostError::OtherAgent { conversation: id.clone(), agent: owner });
        }
        Ok(handle)
    }

    /// Returns the stored conversations, oldest first.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn conversations(&self) -> Result<Vec<ConversationId>, HostError> {
        Ok(self.shared.options.store.conversations().await?)
    }

    /// Returns the number of loaded conversations: those with handles, watchers or pending work.
    pub fn loaded(&self) -> usize {
        self.shared.loaded().len()
    }

    /// Returns a handle to a conversation, loading it if necessary.
    fn attach(
        &self,
        id: &ConversationId,
        agent: &AgentId,
        absent: MissingPolicy,
    ) -> Result<ConversationHandle, HostError> {
        let mut loaded = self.shared.loaded();
        if loaded.len() >= self.shared.options.max_loaded && !loaded.contains_key(id) {
            return Err(HostError::Full(self.shared.options.max_loaded));
        }
        let generation = self.shared.generations.fetch_add(1, Ordering::Relaxed);
        let known = loaded.entry(id.clone()).or_insert_with(|| {
            let (inbox, messages) = mpsc::channel(INBOX_CAPACITY);
            let watchers = Arc::<WatcherList>::default();
            let actor = ConversationActor::new(self.shared.clone(), id.clone(), watchers.clone(), generation);
            tokio::spawn(actor.run(agent.clone(), absent, messages));
            LoadedConversation { inbox, watchers, handles: 0, generation }
        });
        known.handles += 1;
        let (inbox, watchers) = (known.inbox.clone(), known.watchers.clone());
        Ok(ConversationHandle::new(self.shared.clone(), id.clone(), inbox, watchers, known.generation))
    }
}
