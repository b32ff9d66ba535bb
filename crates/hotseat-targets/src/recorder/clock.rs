//! The only source of time of a session.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hotseat_trace::{Millis, TimeOffset};

/// A clock that starts when the session is opened.
///
/// The wall time is read once; later times add the elapsed monotonic time, so that both never contradict each
/// other.
#[derive(Debug, Clone, Copy)]
pub struct SessionClock {
    opened: Instant,
    opened_at: Millis,
    /// Total skipped time.
    skipped: Duration,
    /// The fixed time, while a recorded time is set.
    fixed: Option<(TimeOffset, Millis)>,
    /// Arrival time of the data being processed.
    arrived: Option<TimeOffset>,
}

impl SessionClock {
    /// Starts the clock now.
    pub fn start() -> Self {
        let opened_at = wall_millis();
        SessionClock {
            opened: Instant::now(),
            opened_at,
            skipped: Duration::ZERO,
            fixed: None,
            arrived: None,
        }
    }

    /// Returns the time since the start and the matching wall time.
    pub fn now(&self) -> (TimeOffset, Millis) {
        if let Some(then) = self.fixed {
            return then;
        }
        let offset = self.arrived.unwrap_or_else(|| TimeOffset::from(self.opened.elapsed() + self.skipped));
        (offset, self.opened_at + Millis::try_from(offset.0 / 1000).unwrap_or(Millis::MAX))
    }

    /// Sets the arrival time of following events to `at`, but not before `earliest`.
    pub fn set_arrival(&mut self, at: Instant, earliest: TimeOffset) {
        let offset = TimeOffset::from(at.saturating_duration_since(self.opened) + self.skipped);
        self.arrived = Some(offset.max(earliest));
    }

    /// Returns the time of an arrival.
    pub fn offset_of(&self, at: Instant) -> TimeOffset {
        TimeOffset::from(at.saturating_duration_since(self.opened) + self.skipped)
    }

    /// Returns the instant of a time of this clock.
    pub fn instant_of(&self, offset: TimeOffset) -> Instant {
        self.opened + Duration::from_micros(offset.0).saturating_sub(self.skipped)
    }

    /// Uses the current time for following events again.
    pub fn clear_arrival(&mut self) {
        self.arrived = None;
    }

    /// Advances the clock to `offset` without waiting, if it is in the future.
    pub fn advance_to(&mut self, offset: TimeOffset) {
        self.skipped += offset - self.now().0;
    }

    /// Fixes the time to a recorded one until it is changed.
    pub fn set_time(&mut self, offset: TimeOffset, wall: Millis) {
        self.fixed = Some((offset, wall));
    }

    /// Releases the fixed time.
    pub fn resume(&mut self) {
        self.fixed = None;
    }

    /// Returns the total skipped time.
    pub fn skipped(&self) -> Duration {
        self.skipped
    }
}

/// Maximum time by which a start is moved, for very many that arrive together.
const MAX_START_SHIFT: Duration = Duration::from_millis(1);

/// The starts of texts and calls. Those that arrive together are told apart by a microsecond, so that times tell their order.
#[derive(Debug, Default)]
pub(crate) struct StartTimes {
    last: TimeOffset,
}

impl StartTimes {
    /// Returns the start of the next text or call, which arrived at `at`.
    pub(crate) fn next(&mut self, at: TimeOffset) -> TimeOffset {
        let next = TimeOffset(self.last.0 + 1);
        self.last = if next > at && next - at < MAX_START_SHIFT { next } else { at };
        self.last
    }
}

/// Returns the wall time in milliseconds since the Unix epoch.
pub fn wall_millis() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
