//! Conversations that were unloaded a short time ago, so that the next turn need not read them from the store.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::clock::ConversationClock;
use super::core::ConversationCore;
use crate::ids::ConversationId;

/// Maximum number of idle conversations that are kept. Of those used less recently, only the store has the content.
const MAX_IDLE_CONVERSATIONS: usize = 64;

/// An unloaded conversation.
pub(super) struct IdleConversation {
    pub(super) id: ConversationId,
    pub(super) core: ConversationCore,
    pub(super) clock: ConversationClock,
    /// Number of its entries in the store.
    pub(super) entries: u64,
}

/// The conversations that were unloaded last, oldest first.
#[derive(Default)]
pub(super) struct IdleConversations {
    kept: Mutex<VecDeque<IdleConversation>>,
}

impl IdleConversations {
    /// Adds a conversation, in place of an earlier state of it or of the oldest one.
    pub(super) fn add(&self, idle: IdleConversation) {
        let replaced = self.take(&idle.id);
        let mut kept = self.kept();
        let oldest = if kept.len() == MAX_IDLE_CONVERSATIONS { kept.pop_front() } else { None };
        kept.push_back(idle);
        // Large conversations are dropped without the lock.
        drop(kept);
        drop((replaced, oldest));
    }

    /// Removes and returns a conversation.
    pub(super) fn take(&self, id: &ConversationId) -> Option<IdleConversation> {
        let mut kept = self.kept();
        let place = kept.iter().position(|idle| idle.id == *id)?;
        kept.remove(place)
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<IdleConversation>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
