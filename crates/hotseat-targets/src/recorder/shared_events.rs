//! Events of a recorder, which other threads can read while the conversation is running.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotseat_trace::{EventRecord, Payload};

/// Maximum number of events that one read looks at, so that a reader never delays the conversation.
const MAX_EVENTS_PER_READ: usize = 256;

/// Recorded events of one conversation. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SharedEvents(Arc<Mutex<Vec<EventRecord>>>);

impl SharedEvents {
    pub(super) fn push(&self, record: EventRecord) {
        self.lock().push(record);
    }

    /// Removes and returns all events.
    pub(super) fn take(&self) -> Vec<EventRecord> {
        std::mem::take(&mut self.lock())
    }

    /// Returns events of the conversation after the first `known` ones, and the number of events that are known then. The
    /// raw data that an agent sent is left out: a secret in it may be divided between events, and is redacted only at the
    /// end.
    pub fn after(&self, known: usize) -> (Vec<EventRecord>, usize) {
        let records = self.lock();
        let end = records.len().min(known.saturating_add(MAX_EVENTS_PER_READ));
        let new = records.get(known..end).unwrap_or_default();
        let shown = new.iter().filter(|record| record.execution.is_none());
        let shown = shown.filter(|record| !matches!(record.event.payload, Payload::Raw(_)));
        (shown.cloned().collect(), known + new.len())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<EventRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
