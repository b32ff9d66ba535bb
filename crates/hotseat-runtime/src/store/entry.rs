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
pub enum LogEntry {
    /// The conversation starts.
    Open {
        /// Data that the conversation is opened with.
        opening: ConversationOrigin,
    },
    /// An input arrived.
    Input {
        /// The receiving conversation: this one or a nested one.
        conversation: ConversationId,
        /// The input.
        input: ConversationInput,
    },
    /// The agent has changed. Recorded history is kept; the conversation continues with the new definitions.
    DefinitionChanged {
        /// Number of the first record that differs under the new definitions.
        first_difference: u64,
    },
    /// A timer is due.
    Due,
    /// The memory answered.
    Remembered {
        /// The run that asked.
        run: RunId,
        /// The token that asked.
        token: TokenId,
        /// The answer.
        result: Result<MemoryResult, WorkFailure>,
    },
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
    /// Records for the trace.
    pub records: Vec<Arc<EventRecord>>,
}
