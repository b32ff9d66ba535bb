//! A store in memory.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hotseat_trace::EventRecord;
use serde::de::DeserializeOwned;

use super::{ConversationStore, ConversationStoreError, EntryCommit, LogEntry, StoreFuture, StoredEntry};
use crate::ids::{AgentId, ConversationId};
use crate::memory::{MemoryLimits, MemoryResult, MemoryStore, MemoryUse};
use crate::world::DeliveryTime;

/// Store in the memory of this process. Above its bounds it deletes the least recently used conversations and
/// memories of agents.
#[derive(Debug)]
pub struct InMemoryStore {
    bounds: StoreBounds,
    contents: Mutex<StoreContents>,
}

/// Limits of a store in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreBounds {
    /// Maximum number of conversations.
    pub conversations: usize,
    /// Maximum size of entries and records, in bytes of JSON.
    pub bytes: usize,
    /// How much agents may remember, over all of them.
    pub memories: MemoryLimits,
}

impl Default for StoreBounds {
    /// 10,000 conversations and 256 MiB, and what agents remember as [`MemoryLimits`] says.
    fn default() -> Self {
        let memories = MemoryLimits::default();
        StoreBounds { conversations: 10_000, bytes: 256 * 1024 * 1024, memories }
    }
}

#[derive(Debug, Default)]
struct StoreContents {
    conversations: BTreeMap<ConversationId, SerializedConversation>,
    /// Unloaded conversations, by time of unloading.
    released: BTreeMap<u64, ConversationId>,
    bytes: usize,
    /// Counter that orders events.
    count: u64,
    memory: MemoryStore,
}

/// Conversation in serialised form, so that its size is known.
#[derive(Debug, Default)]
struct SerializedConversation {
    created: u64,
    /// Order of unloading; `None` while it is loaded.
    released: Option<u64>,
    entries: Vec<(DeliveryTime, Box<str>)>,
    records: Vec<Box<str>>,
    bytes: usize,
}

impl Default for InMemoryStore {
    fn default() -> Self {
        InMemoryStore::with_bounds(StoreBounds::default())
    }
}

impl InMemoryStore {
    /// Creates a store with these limits.
    pub fn with_bounds(bounds: StoreBounds) -> Self {
        InMemoryStore { bounds, contents: Mutex::default() }
    }

    fn contents(&self) -> MutexGuard<'_, StoreContents> {
        // No operation under the lock can leave the contents inconsistent.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, commit: &EntryCommit) -> Result<(), ConversationStoreError> {
        let EntryCommit { conversation: id, number, stored: kept, records } = commit;
        let entry = to_json(&kept.entry)?;
        let records = records.iter().map(to_json).collect::<Result<Vec<_>, _>>()?;
        let size = entry.len() + records.iter().map(|record| record.len()).sum::<usize>();
        let mut contents = self.contents();
        let known = contents.conversations.get(id).map_or(0, |known| known.entries.len() as u64);
        if *number != known + 1 {
            let message = format!("entry {number} of conversation {id} does not follow entry {known}");
            return Err(ConversationStoreError::new(message));
        }
        contents.mark_loaded(id);
        contents.make_room(self.bounds, usize::from(known == 0), size)?;
        contents.count += 1;
        contents.bytes += size;
        let began = contents.count;
        let known = contents.conversations.entry(id.clone()).or_insert_with(|| SerializedConversation {
            created: began,
            ..SerializedConversation::default()
        });
        known.bytes += size;
        known.entries.push((kept.stamp, entry));
        known.records.extend(records);
        Ok(())
    }

    fn stored_entries(&self, id: &ConversationId) -> Result<Vec<StoredEntry>, ConversationStoreError> {
        let mut contents = self.contents();
        contents.mark_loaded(id);
        let Some(known) = contents.conversations.get(id) else { return Ok(Vec::new()) };
        let entries = known.entries.iter();
        entries
            .map(|(stamp, entry)| Ok(StoredEntry { stamp: *stamp, entry: from_json::<LogEntry>(entry)? }))
            .collect()
    }

    fn stored_records(&self, id: &ConversationId) -> Result<Vec<EventRecord>, ConversationStoreError> {
        let contents = self.contents();
        let Some(known) = contents.conversations.get(id) else { return Ok(Vec::new()) };
        known.records.iter().map(|record| from_json(record)).collect()
    }
}

impl StoreContents {
    fn mark_loaded(&mut self, id: &ConversationId) {
        if let Some(known) = self.conversations.get_mut(id)
            && let Some(at) = known.released.take()
        {
            self.released.remove(&at);
        }
    }

    /// Deletes unloaded conversations until there is space for `size` more bytes.
    fn make_room(
        &mut self,
        bounds: StoreBounds,
        more: usize,
        size: usize,
    ) -> Result<(), ConversationStoreError> {
        while self.conversations.len() + more > bounds.conversations || self.bytes + size > bounds.bytes {
            let Some((_, oldest)) = self.released.pop_first() else {
                let message = format!(
                    "the store is full: {} conversations with {} bytes are in use, the limits are {} and {}",
                    self.conversations.len(),
                    self.bytes,
                    bounds.conversations,
                    bounds.bytes
                );
                return Err(ConversationStoreError::full(message));
            };
            if let Some(forgotten) = self.conversations.remove(&oldest) {
                self.bytes -= forgotten.bytes;
            }
        }
        Ok(())
    }
}

fn to_json(value: &impl serde::Serialize) -> Result<Box<str>, ConversationStoreError> {
    let text =
        serde_json::to_string(value).map_err(|error| ConversationStoreError::new(error.to_string()))?;
    Ok(text.into_boxed_str())
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, ConversationStoreError> {
    serde_json::from_str(text).map_err(|error| ConversationStoreError::new(error.to_string()))
}

impl ConversationStore for InMemoryStore {
    fn commit(&self, commit: EntryCommit) -> StoreFuture<()> {
        Box::pin(ready(self.add(&commit)))
    }

    fn entries(&self, conversation: &ConversationId) -> StoreFuture<Vec<StoredEntry>> {
        Box::pin(ready(self.stored_entries(conversation)))
    }

    fn entry_count(&self, conversation: &ConversationId) -> StoreFuture<u64> {
        let mut contents = self.contents();
        contents.mark_loaded(conversation);
        let known = contents.conversations.get(conversation);
        Box::pin(ready(Ok(known.map_or(0, |known| known.entries.len() as u64))))
    }

    fn records(&self, conversation: &ConversationId) -> StoreFuture<Vec<EventRecord>> {
        Box::pin(ready(self.stored_records(conversation)))
    }

    fn conversations(&self) -> StoreFuture<Vec<ConversationId>> {
        let contents = self.contents();
        let mut known: Vec<_> = contents.conversations.iter().collect();
        known.sort_by_key(|(_, conversation)| conversation.created);
        Box::pin(ready(Ok(known.into_iter().map(|(id, _)| id.clone()).collect())))
    }

    fn release(&self, id: &ConversationId) {
        let mut contents = self.contents();
        contents.count += 1;
        let at = contents.count;
        let Some(known) = contents.conversations.get_mut(id) else { return };
        let before = known.released.replace(at);
        if let Some(before) = before {
            contents.released.remove(&before);
        }
        contents.released.insert(at, id.clone());
    }

    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> StoreFuture<MemoryResult> {
        let mut held = self.contents();
        let recalled = held.memory.execute(&agent, &usage, timestamp);
        held.memory.forget_beyond(self.bounds.memories);
        drop(held);
        Box::pin(ready(Ok(recalled)))
    }
}
