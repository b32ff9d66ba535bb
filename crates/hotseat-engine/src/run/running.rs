//! Conversations that are running now, for readers in other threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotseat_targets::recorder::{SharedEvents, wall_millis};
use hotseat_trace::Millis;

/// Conversations that are running now.
#[derive(Debug, Default)]
pub struct RunningConversations(Mutex<RunningState>);

#[derive(Debug, Default)]
struct RunningState {
    /// Number of conversations so far, which orders them by their start.
    started: u64,
    running: BTreeMap<u64, RunningConversation>,
}

/// A conversation that is running.
#[derive(Debug, Clone)]
pub struct RunningConversation {
    /// Number of the conversation in its run.
    pub number: u64,
    /// Index of the case in the run.
    pub case_index: usize,
    /// Number of the attempt, from 1.
    pub attempt: usize,
    /// Start time.
    pub started_at: Millis,
    /// Its events so far.
    pub events: SharedEvents,
}

/// Removes a conversation when it is dropped.
#[derive(Debug)]
pub(super) struct RunningGuard {
    conversations: Arc<RunningConversations>,
    number: u64,
}

impl RunningConversations {
    /// Adds a conversation until the guard is dropped.
    pub(super) fn add(
        self: &Arc<Self>,
        case_index: usize,
        attempt: usize,
        events: SharedEvents,
    ) -> RunningGuard {
        let mut state = self.lock();
        state.started += 1;
        let (number, started_at) = (state.started, wall_millis());
        state.running.insert(number, RunningConversation { number, case_index, attempt, started_at, events });
        RunningGuard { conversations: self.clone(), number }
    }

    /// Returns the number of conversations, and the first `most` of them in the order in which they started.
    pub fn list(&self, most: usize) -> (usize, Vec<RunningConversation>) {
        let state = self.lock();
        (state.running.len(), state.running.values().take(most).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, RunningState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.conversations.lock().running.remove(&self.number);
    }
}
