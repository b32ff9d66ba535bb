//! The time of a live conversation. Nothing else in this driver reads a clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hotseat_trace::Offset;
use tokio::time::Instant;

use crate::conversation::Millis;
use crate::world::Stamp;

/// Counts from the beginning of a conversation, also over restarts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    origin: Instant,
    /// What was counted before `origin`.
    before: Offset,
    /// Wall time at the beginning of the conversation, in milliseconds.
    began: i64,
}

impl Clock {
    /// The clock of a conversation that begins.
    pub(super) fn new() -> Self {
        Clock { origin: Instant::now(), before: Offset::default(), began: wall() }
    }

    /// The clock of a conversation of which these are the first and the last time. It counts the time in between
    /// by the wall clock, and never goes back.
    pub(super) fn resumed(first: Stamp, last: Stamp) -> Self {
        let began = first.timestamp;
        let passed = Offset::from_millis(u64::try_from(wall() - began).unwrap_or(0));
        Clock { origin: Instant::now(), before: passed.max(last.offset), began }
    }

    pub(super) fn stamp(&self) -> Stamp {
        let offset = Offset(self.before.0 + Offset::from(self.origin.elapsed()).0);
        let timestamp = self.began + i64::try_from(offset.0 / 1000).unwrap_or(i64::MAX / 2);
        Stamp { offset, timestamp }
    }

    /// When so many milliseconds will have been counted.
    pub(super) fn instant(&self, at: Millis) -> Instant {
        let counted = Duration::from_micros(self.before.0);
        // A far time is as good as never.
        let wait = Duration::from_millis(at.min(10 * 365 * 24 * 3600 * 1000)).saturating_sub(counted);
        self.origin + wait
    }
}

/// Wall time in milliseconds since the Unix epoch.
pub(super) fn wall() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(passed.as_millis()).unwrap_or(i64::MAX / 2)
}
