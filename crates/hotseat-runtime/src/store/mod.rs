//! Stores conversations beyond the lifetime of their process.
//!
//! A store contains the entries of a conversation with the records of each entry. Conversations are restored
//! from their entries. An entry and its records are stored atomically, before the requests of the entry are
//! handled.

mod in_memory;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::pin::Pin;

use hotseat_trace::EventRecord;

pub use in_memory::{InMemoryStore, StoreBounds};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

use crate::ids::{AgentId, ConversationId};
use crate::live::LogEntry;
use crate::memory::{MemoryResult, MemoryUse};
use crate::world::DeliveryTime;

/// Future result of a store.
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, ConversationStoreError>> + Send>>;

/// An entry of a conversation with its records.
#[derive(Debug, Clone)]
pub struct EntryCommit {
    /// The conversation.
    pub conversation: ConversationId,
    /// Number of the entry in the conversation, from 1.
    pub number: u64,
    /// The entry and its time.
    pub stored: StoredEntry,
    /// Records for the trace.
    pub records: Vec<EventRecord>,
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    /// Time of the entry.
    pub stamp: DeliveryTime,
    /// The entry.
    pub entry: LogEntry,
}

/// Storage of conversations and memories.
pub trait ConversationStore: Send + Sync + 'static {
    /// Stores an entry with its records atomically.
    fn commit(&self, commit: EntryCommit) -> StoreFuture<()>;

    /// Returns the entries of a conversation, in order; empty if it does not exist.
    fn entries(&self, conversation: &ConversationId) -> StoreFuture<Vec<StoredEntry>>;

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
