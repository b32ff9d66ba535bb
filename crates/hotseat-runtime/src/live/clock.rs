//! Clock of a live conversation. Nothing else in this driver reads the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hotseat_trace::TimeOffset;
use tokio::time::Instant;

use crate::conversation::Millis;
use crate::world::DeliveryTime;

/// Measures time since the start of a conversation, across restarts.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConversationClock {
    origin: Instant,
    /// Time before `origin`.
    before: TimeOffset,
    /// Wall-clock time at the start of the conversation, in milliseconds.
    started_at: i64,
}

impl ConversationClock {
    /// Creates the clock of a new conversation.
    pub(super) fn new() -> Self {
        ConversationClock { origin: Instant::now(), before: TimeOffset::default(), started_at: wall_millis() }
    }

    /// Creates the clock of a stored conversation with these first and last times. The time in between is
    /// measured by the wall clock and never runs backwards.
    pub(super) fn resume(first: DeliveryTime, last: DeliveryTime) -> Self {
        let began = first.timestamp;
        let passed = TimeOffset::from_millis(u64::try_from(wall_millis() - began).unwrap_or(0));
        ConversationClock { origin: Instant::now(), before: passed.max(last.offset), started_at: began }
    }

    pub(super) fn stamp(&self) -> DeliveryTime {
        let offset = TimeOffset(self.before.0 + TimeOffset::from(self.origin.elapsed()).0);
        let timestamp = self.started_at + i64::try_from(offset.0 / 1000).unwrap_or(i64::MAX / 2);
        DeliveryTime { offset, timestamp }
    }

    /// Returns the instant for a time of this clock.
    pub(super) fn instant(&self, at: Millis) -> Instant {
        let counted = Duration::from_micros(self.before.0);
        // Very distant times are clamped.
        let wait = Duration::from_millis(at.min(10 * 365 * 24 * 3600 * 1000)).saturating_sub(counted);
        self.origin + wait
    }
}

/// Returns the wall-clock time in milliseconds since the Unix epoch.
pub(super) fn wall_millis() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(passed.as_millis()).unwrap_or(i64::MAX / 2)
}
