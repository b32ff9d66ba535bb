//! A store that lasts as long as its process.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hotseat_trace::Record;

use super::{Commit, Kept, Pending, Store, StoreError};
use crate::ids::{AgentId, ConversationId};
use crate::memory::{MemoryStore, MemoryUse, Recalled};

/// Keeps everything in this process.
#[derive(Debug, Default)]
pub struct InMemory {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    order: Vec<ConversationId>,
    conversations: BTreeMap<ConversationId, Conversation>,
    memory: MemoryStore,
}

#[derive(Debug, Default)]
struct Conversation {
    entries: Vec<Kept>,
    records: Vec<Record>,
}

impl InMemory {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing that is done under the lock can leave half of itself behind.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for InMemory {
    fn commit(&self, commit: Commit) -> Pending<()> {
        let Commit { conversation, number, kept, records } = commit;
        let mut held = self.held();
        let known = held.conversations.get(&conversation).map_or(0, |known| known.entries.len() as u64);
        if number != known + 1 {
            let message =
                format!("entry {number} of conversation {conversation} does not follow entry {known}");
            return Box::pin(ready(Err(StoreError::new(message))));
        }
        if known == 0 {
            held.order.push(conversation.clone());
        }
        let conversation = held.conversations.entry(conversation).or_default();
        conversation.entries.push(kept);
        conversation.records.extend(records);
        Box::pin(ready(Ok(())))
    }

    fn entries(&self, conversation: &ConversationId) -> Pending<Vec<Kept>> {
        let held = self.held();
        let entries = held.conversations.get(conversation).map(|known| known.entries.clone());
        Box::pin(ready(Ok(entries.unwrap_or_default())))
    }

    fn records(&self, conversation: &ConversationId) -> Pending<Vec<Record>> {
        let held = self.held();
        let records = held.conversations.get(conversation).map(|known| known.records.clone());
        Box::pin(ready(Ok(records.unwrap_or_default())))
    }

    fn conversations(&self) -> Pending<Vec<ConversationId>> {
        Box::pin(ready(Ok(self.held().order.clone())))
    }

    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> Pending<Recalled> {
        let recalled = self.held().memory.carry_out(&agent, &usage, timestamp);
        Box::pin(ready(Ok(recalled)))
    }
}
