//! Stores conversations beyond the lifetime of their process.
//!
//! A store contains the entries of a conversation with the records of each entry. Conversations are restored
//! from their entries. An entry and its records are stored atomically, before the requests of the entry are
//! handled.
//!
//! Records contain digests in place of the long inputs and outputs of runs that build requests or extract memories:
//! those repeat the whole conversation for each model call, and are made again when entries are applied again.

mod entry;
mod hook_digests;
mod in_memory;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::pin::Pin;

use hotseat_trace::EventRecord;

pub use entry::{EntryCommit, LogEntry, StoredEntry};
pub use hook_digests::HookDigests;
pub use in_memory::{InMemoryStore, StoreBounds};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

use crate::ids::{AgentId, ConversationId};
use crate::memory::{MemoryResult, MemoryUse};

/// Future result of a store.
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, ConversationStoreError>> + Send>>;

/// Storage of conversations and memories.
pub trait ConversationStore: Send + Sync + 'static {
    /// Stores an entry with its records atomically.
    fn commit(&self, commit: EntryCommit) -> StoreFuture<()>;

    /// Returns the entries of a conversation, in order; empty if it does not exist.
    fn entries(&self, conversation: &ConversationId) -> StoreFuture<Vec<StoredEntry>>;

    /// Returns the number of entries of a conversation; 0 if it does not exist.
    fn entry_count(&self, conversation: &ConversationId) -> StoreFuture<u64>;

    /// Returns the records of a conversation, in order.
    fn records(&self, conversation: &ConversationId) -> StoreFuture<Vec<EventRecord>>;

    /// Returns the stored conversations, oldest first.
    fn conversations(&self) -> StoreFuture<Vec<ConversationId>>;

    /// Notifies the store that the conversation was unloaded. Stores with limited capacity may then delete
    /// it.
    fn release(&self, _conversation: &ConversationId) {}

    /// Executes one memory access at this wall-clock time. Idempotent.
    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> StoreFuture<MemoryResult>;
}

/// Error of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConversationStoreError {
    /// Description of the error, with the file name.
    pub message: String,
    /// True if the store is full, so that a later attempt may succeed.
    pub is_full: bool,
}

impl ConversationStoreError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ConversationStoreError { message: message.into(), is_full: false }
    }

    pub(crate) fn full(message: impl Into<String>) -> Self {
        ConversationStoreError { message: message.into(), is_full: true }
    }
}
