//! Conversations in real time, on tokio.
//!
//! A [`Host`] holds the conversations of one set of definitions. Each is a task of its own that takes one entry at
//! a time: it is carried out, kept in the [`Store`], shown to the watchers, and only then is done what it asks for.
//! After a restart a conversation goes on where it was: its entries are read again and what it still waits for is
//! asked again. Where its agent was changed meanwhile, what was said stands as it is recorded and the new definition
//! holds from there on; an event says so.
//!
//! ```
//! use std::sync::Arc;
//! use hotseat_model::{Function, Live, Reply, Request, Timed};
//! use hotseat_runtime::conversation::Input;
//! use hotseat_runtime::definition::{Definitions, persona};
//! use hotseat_runtime::live::{Host, HostOptions, Models, Signal};
//! use hotseat_trace::Payload;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (definitions, agent) = Definitions::of(&persona("Greeter"))?;
//! let model = Function::new("greeter", |_: &Request| Timed::now(Ok(Reply::text("Hello to you"))));
//! let host = Host::new(Arc::new(definitions), Models::one(Live::new(model)), HostOptions::default());
//!
//! let conversation = host.conversation(&"c1".into(), &agent).await?;
//! let mut watcher = conversation.watch();
//! let content = "Hello!".to_string();
//! conversation.send(Input::UserMessage { user: "user".into(), content, reply_to: None }).await?;
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

pub use core::Entry;
pub use handle::{Handle, Sent};
pub use models::Models;
pub use watch::{Signal, Watcher};

use crate::definition::{Definitions, Limits};
use crate::ids::{AgentId, ConversationId};
use crate::store::{InMemory, Store, StoreError};
use actor::{Actor, Message};
use watch::Watchers;

/// How many inputs may wait for a conversation before whoever sends one must wait.
const INBOX: usize = 16;

/// Holds the conversations of one set of definitions. Cloning it gives the same host.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

/// How a host behaves.
#[derive(Clone)]
pub struct HostOptions {
    /// The limits of the runtime.
    pub limits: Limits,
    /// Where conversations and memories are kept.
    pub store: Arc<dyn Store>,
    /// How many model calls may be under way at once, over all conversations.
    pub calls_at_once: usize,
    /// How many conversations may be loaded at once.
    pub most_loaded: usize,
}

impl Default for HostOptions {
    /// Everything in this process, at most 256 model calls at once, and 4,096 conversations that are loaded.
    fn default() -> Self {
        HostOptions {
            limits: Limits::default(),
            store: Arc::new(InMemory::default()),
            calls_at_once: 256,
            most_loaded: 4096,
        }
    }
}

/// Why something cannot be done with a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// There is no such agent.
    #[error("there is no agent {0}")]
    UnknownAgent(AgentId),
    /// There is no such conversation.
    #[error("there is no conversation {0}")]
    UnknownConversation(ConversationId),
    /// The conversation is held by another agent.
    #[error("conversation {conversation} is held by agent {agent}")]
    OtherAgent {
        /// The conversation.
        conversation: ConversationId,
        /// The agent that holds it.
        agent: AgentId,
    },
    /// As many conversations as may be loaded are in use.
    #[error("{0} conversations are in use, and there is no room for more now")]
    Full(usize),
    /// The store failed. The conversation can be opened again.
    #[error("the conversation cannot be kept: {0}")]
    Store(#[from] StoreError),
    /// The conversation ended while it was waited for, because its store failed.
    #[error("the conversation was given up")]
    Gone,
}

/// What becomes of a conversation that is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    /// It is opened.
    Opened,
    /// It is refused.
    Refused,
}

/// What the host and all of its conversations share.
struct Shared {
    definitions: Arc<Definitions>,
    models: Models,
    options: HostOptions,
    calls: Arc<Semaphore>,
    /// How often a conversation was loaded.
    generations: AtomicU64,
    /// The conversations that are loaded.
    loaded: Mutex<HashMap<ConversationId, Loaded>>,
}

/// A conversation that is loaded.
struct Loaded {
    inbox: mpsc::Sender<Message>,
    watchers: Arc<Watchers>,
    handles: usize,
    /// Tells an actor from one that was there before under the same name.
    generation: u64,
}

impl Host {
    /// A host. Its conversations are tasks of the runtime from within which it is used.
    pub fn new(definitions: Arc<Definitions>, models: Models, options: HostOptions) -> Self {
        let calls = Arc::new(Semaphore::new(options.calls_at_once.clamp(1, Semaphore::MAX_PERMITS)));
        let loaded = Mutex::new(HashMap::new());
        Host {
            shared: Arc::new(Shared {
                definitions,
                models,
                options,
                calls,
                generations: AtomicU64::new(0),
                loaded,
            }),
        }
    }

    /// What its conversations are made from.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.shared.definitions
    }

    /// Opens a conversation with an agent, or takes it up again if it is kept.
    ///
    /// # Errors
    /// When there is no such agent, another one holds the conversation, or the store fails.
    pub async fn conversation(&self, id: &ConversationId, agent: &AgentId) -> Result<Handle, HostError> {
        if self.shared.definitions.agent(agent).is_none() {
            return Err(HostError::UnknownAgent(agent.clone()));
        }
        let (handle, held_by) = loop {
            let handle = self.shared.attach(id, agent, Absent::Opened)?;
            match handle.agent().await {
                Ok(held_by) => break (handle, held_by),
                // Somebody else has looked for it just now and not found it.
                Err(HostError::UnknownConversation(_)) => {}
                Err(error) => return Err(error),
            }
        };
        self.of_agent(handle, held_by, agent)
    }

    /// A conversation with an agent that is loaded or kept.
    ///
    /// # Errors
    /// When there is no such conversation or agent, another agent holds it, or the store fails.
    pub async fn known_conversation(
        &self,
        id: &ConversationId,
        agent: &AgentId,
    ) -> Result<Handle, HostError> {
        let handle = self.shared.attach(id, agent, Absent::Refused)?;
        let held_by = handle.agent().await?;
        self.of_agent(handle, held_by, agent)
    }

    fn of_agent(&self, handle: Handle, held_by: AgentId, agent: &AgentId) -> Result<Handle, HostError> {
        let id = handle.id();
        if held_by != *agent {
            return Err(HostError::OtherAgent { conversation: id.clone(), agent: held_by });
        }
        Ok(handle)
    }

    /// The conversations that are kept, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn conversations(&self) -> Result<Vec<ConversationId>, HostError> {
        Ok(self.shared.options.store.conversations().await?)
    }

    /// How many conversations are loaded: those that somebody holds or watches, and those that wait for something.
    pub fn loaded(&self) -> usize {
        self.shared.loaded().len()
    }
}

impl Shared {
    fn loaded(&self) -> MutexGuard<'_, HashMap<ConversationId, Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle of a conversation, which is loaded if it is not.
    fn attach(
        self: &Arc<Self>,
        id: &ConversationId,
        agent: &AgentId,
        absent: Absent,
    ) -> Result<Handle, HostError> {
        let mut loaded = self.loaded();
        if loaded.len() >= self.options.most_loaded && !loaded.contains_key(id) {
            return Err(HostError::Full(self.options.most_loaded));
        }
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let known = loaded.entry(id.clone()).or_insert_with(|| {
            let (inbox, messages) = mpsc::channel(INBOX);
            let watchers = Arc::<Watchers>::default();
            let actor = Actor::new(self.clone(), id.clone(), watchers.clone(), generation);
            tokio::spawn(actor.run(agent.clone(), absent, messages));
            Loaded { inbox, watchers, handles: 0, generation }
        });
        known.handles += 1;
        let (inbox, watchers) = (known.inbox.clone(), known.watchers.clone());
        Ok(Handle::new(self.clone(), id.clone(), inbox, watchers, known.generation))
    }

    /// A handle is gone.
    fn detach(&self, id: &ConversationId, generation: u64) {
        let mut loaded = self.loaded();
        let Some(known) = loaded.get_mut(id).filter(|known| known.generation == generation) else { return };
        known.handles -= 1;
        if known.handles == 0 {
            // With a full inbox the conversation is awake and looks by itself.
            let _ = known.inbox.try_send(Message::Left);
        }
    }
}
