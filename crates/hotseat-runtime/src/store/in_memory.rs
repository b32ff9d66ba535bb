//! A store that lasts as long as its process.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hotseat_trace::Record;
use serde::de::DeserializeOwned;

use super::{Commit, Kept, Pending, Store, StoreError};
use crate::ids::{AgentId, ConversationId};
use crate::live::Entry;
use crate::memory::{MemoryLimits, MemoryStore, MemoryUse, Recalled};
use crate::world::Stamp;

/// Keeps everything in this process, up to a bound: then the conversations that nobody has held for longest are
/// forgotten, and the memories of agents that were used longest ago.
#[derive(Debug)]
pub struct InMemory {
    bounds: MemoryBounds,
    held: Mutex<Held>,
}

/// How much a store in memory keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBounds {
    /// How many conversations.
    pub conversations: usize,
    /// How many bytes of entries and records, written as JSON.
    pub bytes: usize,
    /// How much agents may remember, over all of them.
    pub memories: MemoryLimits,
}

impl Default for MemoryBounds {
    /// 10,000 conversations and 256 MiB, and what agents remember as [`MemoryLimits`] says.
    fn default() -> Self {
        let memories = MemoryLimits::default();
        MemoryBounds { conversations: 10_000, bytes: 256 * 1024 * 1024, memories }
    }
}

#[derive(Debug, Default)]
struct Held {
    conversations: BTreeMap<ConversationId, Conversation>,
    /// Those that nobody holds, the one that was released first at the beginning.
    released: BTreeMap<u64, ConversationId>,
    bytes: usize,
    /// Counts what happens, for the order.
    count: u64,
    memory: MemoryStore,
}

/// What is kept is kept as text, so that its size is known.
#[derive(Debug, Default)]
struct Conversation {
    began: u64,
    /// When it was released; none while somebody holds it.
    released: Option<u64>,
    entries: Vec<(Stamp, Box<str>)>,
    records: Vec<Box<str>>,
    bytes: usize,
}

impl Default for InMemory {
    fn default() -> Self {
        InMemory::bounded(MemoryBounds::default())
    }
}

impl InMemory {
    /// A store that keeps no more than this.
    pub fn bounded(bounds: MemoryBounds) -> Self {
        InMemory { bounds, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing that is done under the lock can leave half of itself behind.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, commit: &Commit) -> Result<(), StoreError> {
        let Commit { conversation: id, number, kept, records } = commit;
        let entry = text(&kept.entry)?;
        let records = records.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let size = entry.len() + records.iter().map(|record| record.len()).sum::<usize>();
        let mut held = self.held();
        let known = held.conversations.get(id).map_or(0, |known| known.entries.len() as u64);
        if *number != known + 1 {
            let message = format!("entry {number} of conversation {id} does not follow entry {known}");
            return Err(StoreError::new(message));
        }
        held.hold(id);
        held.make_room(self.bounds, usize::from(known == 0), size)?;
        held.count += 1;
        held.bytes += size;
        let began = held.count;
        let known = held
            .conversations
            .entry(id.clone())
            .or_insert_with(|| Conversation { began, ..Conversation::default() });
        known.bytes += size;
        known.entries.push((kept.stamp, entry));
        known.records.extend(records);
        Ok(())
    }

    fn kept(&self, id: &ConversationId) -> Result<Vec<Kept>, StoreError> {
        let mut held = self.held();
        held.hold(id);
        let Some(known) = held.conversations.get(id) else { return Ok(Vec::new()) };
        let entries = known.entries.iter();
        entries.map(|(stamp, entry)| Ok(Kept { stamp: *stamp, entry: parsed::<Entry>(entry)? })).collect()
    }

    fn told(&self, id: &ConversationId) -> Result<Vec<Record>, StoreError> {
        let held = self.held();
        let Some(known) = held.conversations.get(id) else { return Ok(Vec::new()) };
        known.records.iter().map(|record| parsed(record)).collect()
    }
}

impl Held {
    /// Somebody holds the conversation.
    fn hold(&mut self, id: &ConversationId) {
        if let Some(known) = self.conversations.get_mut(id)
            && let Some(at) = known.released.take()
        {
            self.released.remove(&at);
        }
    }

    /// Forgets conversations that nobody holds until so much more can be kept.
    fn make_room(&mut self, bounds: MemoryBounds, more: usize, size: usize) -> Result<(), StoreError> {
        while self.conversations.len() + more > bounds.conversations || self.bytes + size > bounds.bytes {
            let Some((_, oldest)) = self.released.pop_first() else {
                let message = format!(
                    "no room for more: {} conversations with {} bytes are in use, of {} and {}",
                    self.conversations.len(),
                    self.bytes,
                    bounds.conversations,
                    bounds.bytes
                );
                return Err(StoreError::full(message));
            };
            if let Some(forgotten) = self.conversations.remove(&oldest) {
                self.bytes -= forgotten.bytes;
            }
        }
        Ok(())
    }
}

fn text(value: &impl serde::Serialize) -> Result<Box<str>, StoreError> {
    let text = serde_json::to_string(value).map_err(|error| StoreError::new(error.to_string()))?;
    Ok(text.into_boxed_str())
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::new(error.to_string()))
}

impl Store for InMemory {
    fn commit(&self, commit: Commit) -> Pending<()> {
        Box::pin(ready(self.add(&commit)))
    }

    fn entries(&self, conversation: &ConversationId) -> Pending<Vec<Kept>> {
        Box::pin(ready(self.kept(conversation)))
    }

    fn records(&self, conversation: &ConversationId) -> Pending<Vec<Record>> {
        Box::pin(ready(self.told(conversation)))
    }

    fn conversations(&self) -> Pending<Vec<ConversationId>> {
        let held = self.held();
        let mut known: Vec<_> = held.conversations.iter().collect();
        known.sort_by_key(|(_, conversation)| conversation.began);
        Box::pin(ready(Ok(known.into_iter().map(|(id, _)| id.clone()).collect())))
    }

    fn release(&self, id: &ConversationId) {
        let mut held = self.held();
        held.count += 1;
        let at = held.count;
        let Some(known) = held.conversations.get_mut(id) else { return };
        let before = known.released.replace(at);
        if let Some(before) = before {
            held.released.remove(&before);
        }
        held.released.insert(at, id.clone());
    }

    fn remember(&self, agent: AgentId, usage: MemoryUse, timestamp: u64) -> Pending<Recalled> {
        let mut held = self.held();
        let recalled = held.memory.carry_out(&agent, &usage, timestamp);
        held.memory.forget_beyond(self.bounds.memories);
        drop(held);
        Box::pin(ready(Ok(recalled)))
    }
}
