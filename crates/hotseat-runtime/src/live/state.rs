//! State that a host shares with its conversations and their handles.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, mpsc};

use super::idle::IdleConversations;
use super::message::ActorMessage;
use super::models::ModelRegistry;
use super::watch::WatcherList;
use crate::definition::{Definitions, RuntimeLimits};
use crate::ids::ConversationId;
use crate::store::{ConversationStore, InMemoryStore};

/// Settings of a host.
#[derive(Clone)]
pub struct HostOptions {
    /// The limits of the runtime.
    pub limits: RuntimeLimits,
    /// Storage of conversations and memories.
    pub store: Arc<dyn ConversationStore>,
    /// Maximum number of concurrent model calls in all conversations.
    pub max_model_calls: usize,
    /// Maximum number of loaded conversations.
    pub max_loaded: usize,
}

impl Default for HostOptions {
    /// In-memory storage, 256 concurrent model calls and 4,096 loaded conversations.
    fn default() -> Self {
        HostOptions {
            limits: RuntimeLimits::default(),
            store: Arc::new(InMemoryStore::default()),
            max_model_calls: 256,
            max_loaded: 4096,
        }
    }
}

/// Maximum number of traces that are read at the same time.
pub(super) const MAX_TRACE_READERS: usize = 2;

/// State shared by the host and its conversations.
pub(super) struct HostState {
    pub(super) definitions: Arc<Definitions>,
    pub(super) models: ModelRegistry,
    pub(super) options: HostOptions,
    pub(super) calls: Arc<Semaphore>,
    /// Permits to read whole traces.
    pub(super) readers: Semaphore,
    /// Number of conversations loaded so far.
    pub(super) generations: AtomicU64,
    pub(super) loaded: Mutex<HashMap<ConversationId, LoadedConversation>>,
    /// The conversations that were unloaded last.
    pub(super) idle: IdleConversations,
}

/// Entry of a loaded conversation.
pub(super) struct LoadedConversation {
    pub(super) inbox: mpsc::Sender<ActorMessage>,
    pub(super) watchers: Arc<WatcherList>,
    pub(super) handles: usize,
    /// Distinguishes an actor from earlier ones of the same conversation.
    pub(super) generation: u64,
}

impl HostState {
    pub(super) fn loaded(&self) -> MutexGuard<'_, HashMap<ConversationId, LoadedConversation>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a handle.
    pub(super) fn detach(&self, id: &ConversationId, generation: u64) {
        let mut loaded = self.loaded();
        let Some(known) = loaded.get_mut(id).filter(|known| known.generation == generation) else { return };
        known.handles -= 1;
        if known.handles == 0 {
            // If the inbox is full, the actor is awake and checks by itself.
            let _ = known.inbox.try_send(ActorMessage::HandleDropped);
        }
    }
}
