//! The one place where a session learns what time it is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hotseat_trace::{Millis, Offset};

/// A clock that started when the session was opened.
///
/// The wall time is read once; later ones are that time plus what the monotonic clock says, so the two can
/// never contradict each other.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    opened: Instant,
    opened_at: Millis,
    /// How much time has passed that nobody has waited for.
    skipped: Duration,
    /// Where time stands still: what it is then.
    stands: Option<(Offset, Millis)>,
    /// When that arrived which is taken in now.
    arrived: Option<Offset>,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        let opened_at = wall_millis();
        Clock { opened: Instant::now(), opened_at, skipped: Duration::ZERO, stands: None, arrived: None }
    }

    /// What has passed since the start, and the wall time that goes with it.
    pub fn now(&self) -> (Offset, Millis) {
        if let Some(then) = self.stands {
            return then;
        }
        let offset = self.arrived.unwrap_or_else(|| Offset::from(self.opened.elapsed() + self.skipped));
        (offset, self.opened_at + Millis::try_from(offset.0 / 1000).unwrap_or(Millis::MAX))
    }

    /// What happens from now on is what arrived at `at`; it did not happen before `earliest`.
    pub fn as_of(&mut self, at: Instant, earliest: Offset) {
        let offset = Offset::from(at.saturating_duration_since(self.opened) + self.skipped);
        self.arrived = Some(offset.max(earliest));
    }

    /// What happens from now on happens when it is told.
    pub fn as_of_now(&mut self) {
        self.arrived = None;
    }

    /// Lets time pass until `offset` without waiting for it, where that is not over yet.
    pub fn skip_to(&mut self, offset: Offset) {
        self.skipped += offset - self.now().0;
    }

    /// It is then, and stays so until something else is said: what happened before happens again when it did.
    pub fn stand_at(&mut self, offset: Offset, wall: Millis) {
        self.stands = Some((offset, wall));
    }

    /// Time passes again.
    pub fn go_on(&mut self) {
        self.stands = None;
    }

    /// How much time has passed that nobody has waited for.
    pub fn skipped(&self) -> Duration {
        self.skipped
    }
}

/// The wall time in milliseconds since the Unix epoch.
pub fn wall_millis() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}
