//! `max_duration_ms`: time limit of a turn or of the whole conversation.

use std::time::Duration;

use hotseat_trace::TurnScope;

use super::{CheckBehavior, CheckDecision, CheckOutcome};

/// Time of all turns of the scope, at most the limit (inclusive). A turn that is still running at the limit is aborted.
#[derive(Debug, Clone)]
pub struct MaxDuration {
    /// Maximum duration.
    pub limit: Duration,
}

impl CheckBehavior for MaxDuration {
    fn describe(&self) -> String {
        format!("a duration of at most {} ms", self.limit.as_millis())
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let taken = scope.agent_clock().total();
        CheckDecision::new(taken <= self.limit, format!("{} ms", taken.as_millis()))
    }

    fn is_timing(&self) -> bool {
        true
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(self.limit)
    }
}
