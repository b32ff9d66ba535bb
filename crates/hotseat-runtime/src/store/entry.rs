//! Entries of a conversation: everything that reached it from outside, in order.

use std::sync::Arc;

use hotseat_trace::EventRecord;
use serde::{Deserialize, Serialize};

use crate::conversation::{ConversationInput, ConversationOrigin};
use crate::failure::WorkFailure;
use crate::ids::{ConversationId, RunId, TokenId};
use crate::memory::MemoryResult;
use crate::world::DeliveryTime;

/// External event of a live conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum LogEntry {
    /// The conversation starts.
    Open { opening: ConversationOrigin },
    /// An input arrived for this conversation or a nested one.
    Input { conversation: ConversationId, input: ConversationInput },
    /// The agent has changed. Recorded history is kept; the conversation continues with the new definitions. The record
    /// `first_difference` is the first that differs under them.
    DefinitionChanged { first_difference: u64 },
    /// A timer is due.
    Due,
    /// The memory answered the token of a run.
    Remembered { run: RunId, token: TokenId, result: Result<MemoryResult, WorkFailure> },
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    /// Time of the entry.
    pub stamp: DeliveryTime,
    /// The entry.
    pub entry: LogEntry,
}

/// An entry of a conversation with its records.
#[derive(Debug, Clone)]
pub struct EntryCommit {
    /// The conversation.
    pub conversation: ConversationId,
    /// Number of the entry in the conversation, from 1.
    pub number: u64,
    /// The entry and its time.
    pub stored: StoredEntry,
    /// Records for the trace, with digests in place of long inputs and outputs of hook runs.
    pub records: Vec<Arc<EventRecord>>,
}
