//! How far whoever is told of a run lags behind it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Keeps a run from getting far ahead of those who are told of it: while too much waits to be told, no new conversation
/// begins. Those that go on are never held up, for their agents would be judged by how fast somebody reads.
#[derive(Debug)]
pub struct Pace {
    most: usize,
    waiting: AtomicUsize,
    told: Notify,
}

impl Pace {
    /// At most about so many events may wait.
    pub fn new(most: usize) -> Pace {
        Pace { most, waiting: AtomicUsize::new(0), told: Notify::new() }
    }

    /// Another event waits.
    pub fn add(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// So many have been told.
    pub fn take(&self, count: usize) {
        self.waiting.fetch_sub(count, Ordering::Relaxed);
        self.told.notify_waiters();
    }

    /// Whether there is room for what a new conversation will say.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < self.most
    }

    /// Waits until there is.
    pub(super) async fn room(&self) {
        loop {
            let told = self.told.notified();
            if self.has_room() {
                return;
            }
            told.await;
        }
    }
}

impl Default for Pace {
    /// Nobody lags behind.
    fn default() -> Self {
        Pace::new(usize::MAX)
    }
}
