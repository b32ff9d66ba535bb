//! `max_gap_ms` and `max_idle_ms`: maximum idle time around tool calls.

use std::time::Duration;

use hotseat_trace::{TimeOffset, TurnScope};

use super::{CheckBehavior, CheckDecision, CheckOutcome};

/// No idle time exceeds the limit. The run time of a tool is not idle; idle time starts at the end of the
/// calls before it.
#[derive(Debug, Clone)]
pub struct MaxIdle {
    /// Idle times that count.
    pub idle: IdleScope,
    /// Maximum idle time.
    pub limit: Duration,
}

/// Idle times that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleScope {
    /// Only the times between tool calls; there are none with fewer than two calls.
    BetweenCalls,
    /// Also the times before the first call and after the last call; without calls, the whole duration.
    Anywhere,
}

impl MaxIdle {
    /// Returns the longest idle time and the names of the events before and after it. A call at an unknown time can only
    /// shorten an idle time, so without such calls it is the longest possible one.
    fn longest(&self, scope: TurnScope<'_>) -> Option<(Duration, String, String)> {
        let has_untimed = self.has_untimed_calls(scope);
        let timed = scope.calls().filter(|(_, call)| !has_untimed || call.has_times());
        let mut busy: Vec<(TimeOffset, TimeOffset, String)> =
            timed.map(|(_, call)| (call.started, call.ended, call.name.to_string())).collect();
        busy.sort();
        if self.idle == IdleScope::Anywhere || has_untimed {
            busy.insert(0, (scope.started(), scope.started(), "the start".to_string()));
            busy.push((scope.ended(), scope.ended(), "the end".to_string()));
        }
        let mut longest = None;
        let mut busy = busy.into_iter();
        let (_, mut until, mut before) = busy.next()?;
        for (started, ended, name) in busy {
            let idle = started - until;
            if longest.as_ref().is_none_or(|(length, _, _)| idle > *length) {
                longest = Some((idle, before.clone(), name.clone()));
            }
            if ended >= until {
                (until, before) = (ended, name);
            }
        }
        longest
    }

    /// Returns true if times of calls that count are unknown.
    fn has_untimed_calls(&self, scope: TurnScope<'_>) -> bool {
        let counts = self.idle == IdleScope::Anywhere || scope.calls().nth(1).is_some();
        counts && scope.calls().any(|(_, call)| !call.has_times())
    }
}

impl CheckBehavior for MaxIdle {
    fn describe(&self) -> String {
        match self.idle {
            IdleScope::BetweenCalls => {
                format!("at most {} ms between two tool calls", self.limit.as_millis())
            }
            IdleScope::Anywhere => {
                format!("at most {} ms before, between and after tool calls", self.limit.as_millis())
            }
        }
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let Some((longest, from, to)) = self.longest(scope) else {
            return CheckDecision::new(true, "fewer than two tool calls".to_string());
        };
        let actual = format!("{} ms between {from} and {to}", longest.as_millis());
        CheckDecision::new(longest <= self.limit, actual)
    }

    fn undecided_reason(&self, scope: TurnScope<'_>) -> Option<String> {
        let is_exceeded = self.longest(scope).is_some_and(|(longest, ..)| longest > self.limit);
        let mut untimed = scope.calls().filter(|(_, call)| !call.has_times());
        let (turn, call) = untimed.next().filter(|_| is_exceeded && self.has_untimed_calls(scope))?;
        Some(format!(
            "the time of the call of {} in turn {turn} is unknown: it arrived together with the rest of the answer",
            call.name
        ))
    }

    fn is_timing(&self) -> bool {
        true
    }

    fn reads_calls(&self) -> bool {
        self.idle == IdleScope::BetweenCalls
    }
}
