//! Where conversations are kept, so that they outlive the process that holds them.
//!
//! What is kept is what happened to a conversation, entry by entry, with the records that each entry led to. The
//! conversation itself is made from its entries again. An entry and its records are kept together or not at all,
//! and nothing that an entry asks for is done before it is kept.

mod in_memory;
mod sqlite;

use std::pin::Pin;

use hotseat_trace::Record;

pub use in_memory::{InMemory, MemoryBounds};
pub use sqlite::Sqlite;

use crate::ids::{AgentId, ConversationId};
use crate::live::Entry;
use crate::memory::{MemoryUse, Recalled};
use crate::world::Stamp;

/// An answer of a store that is on its way.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// What happened to a conversation, with all that came of it.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its place among the entries of the conversation, from 1.
    pub number: u64,
    /// What happened, and when.
    pub kept: Kept,
    /// What the trace gets.
    pub records: Vec<Record>,
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// When it happened.
    pub stamp: Stamp,
    /// What happened.
    pub entry: Entry,
}

/// Keeps conversations and what agents remember.
pub trait Store: Send + Sync + 'static {
    /// Keeps an entry with its records, as a whole.
    fn commit(&self, commit: Commit) -> Pending<()>;

    /// Everything that happened to a conversation, in order; nothing if there is no such conversation.
    fn entries(&self, conversation: &ConversationId) -> Pending<Vec<Kept>>;

    /// The records of a conversation, in order.
    fn records(&self, conversation: &ConversationId) -> Pending<Vec<Record>>;

    /// The conversations that are kept, oldest first.
    fn conversations(&self) -> Pending<Vec<ConversationId>>;

    /// Nobody holds the conversation any more, so a store that has no room for everything may forget it.
    fn release(&self, _conversation: &ConversationId) {}

    /// Carries out one use of an agent's memory at this wall time. Doing it twice is doing it once.
    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> Pending<Recalled>;
}

/// A store that cannot do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What happened; names the file.
    pub message: String,
    /// Whether there is no room, so that the same may succeed later.
    pub is_full: bool,
}

impl StoreError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        StoreError { message: message.into(), is_full: false }
    }

    pub(crate) fn full(message: impl Into<String>) -> Self {
        StoreError { message: message.into(), is_full: true }
    }
}
