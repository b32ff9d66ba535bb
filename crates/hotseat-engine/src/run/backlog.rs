//! Back-pressure from reporters to the dispatcher.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Back-pressure: stops starting conversations while reporters lag. Running conversations are never delayed,
/// since that would distort their timings.
#[derive(Debug)]
pub struct ReportBacklog {
    max_events: usize,
    pending: AtomicUsize,
    drained: Notify,
}

impl ReportBacklog {
    /// Creates a backlog that holds about `most` events.
    pub fn new(most: usize) -> ReportBacklog {
        ReportBacklog { max_events: most, pending: AtomicUsize::new(0), drained: Notify::new() }
    }

    /// Adds a pending event.
    pub fn add(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes `count` handled events.
    pub fn remove(&self, count: usize) {
        self.pending.fetch_sub(count, Ordering::Relaxed);
        self.drained.notify_waiters();
    }

    /// True if a new conversation may start.
    pub(super) fn has_room(&self) -> bool {
        self.pending.load(Ordering::Relaxed) < self.max_events
    }

    /// Waits until a new conversation may start.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let notified = self.drained.notified();
            if self.has_room() {
                return;
            }
            notified.await;
        }
    }
}

impl Default for ReportBacklog {
    /// Creates a backlog without a limit.
    fn default() -> Self {
        ReportBacklog::new(usize::MAX)
    }
}
