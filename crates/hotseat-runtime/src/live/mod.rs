//! Conversations in real time, on tokio.
//!
//! A [`ConversationHost`] runs the conversations of one set of definitions. Each conversation is a task that
//! handles one entry at a time: it applies the entry, commits it to the [`ConversationStore`], publishes the
//! records to watchers, and then starts the requested effects. After a restart, a conversation is restored
//! from its entries, and pending effects are requested again. If its agent has changed in the meantime,
//! recorded history is kept, an event records the change, and the new definition applies from then on.
//!
//! ```
//! use std::sync::Arc;
//! use hotseat_model::{FunctionModel, LiveModel, ModelReply, ModelRequest, TimedValue};
//! use hotseat_runtime::conversation::ConversationInput;
//! use hotseat_runtime::definition::{Definitions, persona};
//! use hotseat_runtime::live::{ConversationHost, HostOptions, ModelRegistry, Signal};
//! use hotseat_trace::Payload;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (definitions, agent) = Definitions::from_persona(&persona("Greeter"))?;
//! let model = FunctionModel::new("greeter", |_: &ModelRequest| {
//!     TimedValue::now(Ok(ModelReply::text("Hello to you")))
//! });
//! let models = ModelRegistry::single(LiveModel::new(model));
//! let host = ConversationHost::new(Arc::new(definitions), models, HostOptions::default());
//!
//! let conversation = host.conversation(&"c1".into(), &agent).await?;
//! let mut watcher = conversation.watch();
//! let content = "Hello!".to_string();
//! conversation.send(ConversationInput::UserMessage { user: "user".into(), content, reply_to: None }).await?;
//! while let Some(signal) = watcher.next().await {
//!     let Signal::Event(record) = signal else { continue };
//!     if let Payload::AssistantMessage(message) = &record.payload {
//!         assert_eq!(message.content, "Hello to you");
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod actor;
mod clock;
mod core;
mod handle;
mod models;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, mpsc};

pub use core::LogEntry;
pub use handle::{ConversationHandle, SendOutcome};
pub use models::ModelRegistry;
pub use watch::{Signal, Watcher};

use crate::definition::{Definitions, RuntimeLimits};
use crate::ids::{AgentId, ConversationId};
use crate::store::{ConversationStore, ConversationStoreError, InMemoryStore};
use actor::{ActorMessage, ConversationActor};
use watch::WatcherList;

/// Maximum number of waiting inputs of a conversation; senders wait if it is reached.
const INBOX_CAPACITY: usize = 16;

/// Runs the conversations of one set of definitions. Clones share the same host.
#[derive(Clone)]
pub struct ConversationHost {
    shared: Arc<HostState>,
}

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

/// Error of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The agent does not exist.
    #[error("unknown agent {0}")]
    UnknownAgent(AgentId),
    /// The conversation does not exist.
    #[error("unknown conversation {0}")]
    UnknownConversation(ConversationId),
    /// The conversation belongs to another agent.
    #[error("conversation {conversation} belongs to agent {agent}")]
    OtherAgent {
        /// The conversation.
        conversation: ConversationId,
        /// The agent of the conversation.
        agent: AgentId,
    },
    /// The maximum number of loaded conversations is in use.
    #[error("all {0} conversation slots are in use; try again later")]
    Full(usize),
    /// The store failed. The conversation can be opened again.
    #[error("the conversation cannot be stored: {0}")]
    Store(#[from] ConversationStoreError),
    /// The conversation was closed because its store failed.
    #[error("the conversation was closed")]
    Closed,
}

/// Handling of a conversation that is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingPolicy {
    /// The conversation is opened.
    Open,
    /// An error is returned.
    Refuse,
}

/// State shared by the host and its conversations.
struct HostState {
    definitions: Arc<Definitions>,
    models: ModelRegistry,
    options: HostOptions,
    calls: Arc<Semaphore>,
    /// Number of conversations loaded so far.
    generations: AtomicU64,
    /// Loaded conversations.
    loaded: Mutex<HashMap<ConversationId, LoadedConversation>>,
}

/// Entry of a loaded conversation.
struct LoadedConversation {
    inbox: mpsc::Sender<ActorMessage>,
    watchers: Arc<WatcherList>,
    handles: usize,
    /// Distinguishes an actor from earlier ones of the same conversation.
    generation: u64,
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
                generations: AtomicU64::new(0),
                loaded,
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
            let handle = self.shared.attach(id, agent, MissingPolicy::Open)?;
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
        let handle = self.shared.attach(id, agent, MissingPolicy::Refuse)?;
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
}

impl HostState {
    fn loaded(&self) -> MutexGuard<'_, HashMap<ConversationId, LoadedConversation>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a handle to a conversation, loading it if necessary.
    fn attach(
        self: &Arc<Self>,
        id: &ConversationId,
        agent: &AgentId,
        absent: MissingPolicy,
    ) -> Result<ConversationHandle, HostError> {
        let mut loaded = self.loaded();
        if loaded.len() >= self.options.max_loaded && !loaded.contains_key(id) {
            return Err(HostError::Full(self.options.max_loaded));
        }
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let known = loaded.entry(id.clone()).or_insert_with(|| {
            let (inbox, messages) = mpsc::channel(INBOX_CAPACITY);
            let watchers = Arc::<WatcherList>::default();
            let actor = ConversationActor::new(self.clone(), id.clone(), watchers.clone(), generation);
            tokio::spawn(actor.run(agent.clone(), absent, messages));
            LoadedConversation { inbox, watchers, handles: 0, generation }
        });
        known.handles += 1;
        let (inbox, watchers) = (known.inbox.clone(), known.watchers.clone());
        Ok(ConversationHandle::new(self.clone(), id.clone(), inbox, watchers, known.generation))
    }

    /// Removes a handle.
    fn detach(&self, id: &ConversationId, generation: u64) {
        let mut loaded = self.loaded();
        let Some(known) = loaded.get_mut(id).filter(|known| known.generation == generation) else { return };
        known.handles -= 1;
        if known.handles == 0 {
            // If the inbox is full, the actor is awake and checks by itself.
            let _ = known.inbox.try_send(ActorMessage::HandleDropped);
        }
    }
}
