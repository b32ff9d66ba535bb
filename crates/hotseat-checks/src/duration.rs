//! `max_duration_ms`: time limit of a turn or of the whole conversation.

use std::time::Duration;

use hotseat_trace::TurnScope;

use super::CheckDecision;

/// Time from the first input of the scope to the end of its last turn, at most the limit (inclusive). A turn
/// that is still running at the limit is aborted.
#[derive(Debug, Clone)]
pub struct MaxDuration {
    /// Maximum duration.
    pub limit: Duration,
}

impl MaxDuration {
    /// Describes the expectation.
    pub fn describe(&self) -> String {
        format!("a duration of at most {} ms", self.limit.as_millis())
    }

    pub(super) fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let taken = scope.duration();
        CheckDecision::new(taken <= self.limit, format!("{} ms", taken.as_millis()))
    }
}
