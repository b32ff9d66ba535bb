//! Finds the conversation that a request continues. The protocol sends the history but no conversation id.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ids::ConversationId;

/// Maximum number of remembered conversations; the one stored longest ago is forgotten first.
const MAX_CONVERSATIONS: usize = 10_000;

/// Hash of a history, keyed so that clients cannot predict it.
type HistoryHash = (u64, u64);

/// Conversations that can be continued, by the hash of their history.
#[derive(Default)]
pub struct ChatHistories {
    keys: (RandomState, RandomState),
    inner: Mutex<ChatHistoryMap>,
}

#[derive(Default)]
struct ChatHistoryMap {
    conversations: HashMap<HistoryHash, ConversationId>,
    /// Hashes in order of insertion, oldest first. Some may have been removed from the map since.
    order: VecDeque<HistoryHash>,
}

impl ChatHistories {
    /// Removes and returns the conversation with this history. No other request can continue it until it is
    /// put back.
    pub fn take(&self, said: &[impl Hash]) -> Option<ConversationId> {
        let print = self.hash(said);
        self.inner().conversations.remove(&print)
    }

    /// Stores a conversation under its history.
    pub fn put(&self, said: &[impl Hash], conversation: ConversationId) {
        let print = self.hash(said);
        let mut inner = self.inner();
        inner.conversations.insert(print, conversation);
        inner.order.push_back(print);
        while inner.order.len() > MAX_CONVERSATIONS {
            if let Some(oldest) = inner.order.pop_front() {
                inner.conversations.remove(&oldest);
            }
        }
    }

    fn hash(&self, said: &[impl Hash]) -> HistoryHash {
        (self.keys.0.hash_one(said), self.keys.1.hash_one(said))
    }

    fn inner(&self) -> MutexGuard<'_, ChatHistoryMap> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
