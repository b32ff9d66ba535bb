//! `max_duration_ms`: a turn, or the whole conversation, does not take longer than this.

use std::time::Duration;

use hotseat_trace::Scope;

use super::Decided;

/// From sending the first input of the scope to the end of its last turn. The limit itself is allowed. A turn
/// that is still going on at the limit is given up there.
#[derive(Debug, Clone)]
pub struct MaxDuration {
    /// The longest time that is allowed.
    pub limit: Duration,
}

impl MaxDuration {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("it takes at most {} ms", self.limit.as_millis())
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let taken = scope.duration();
        Decided::of(taken <= self.limit, format!("{} ms", taken.as_millis()))
    }
}
