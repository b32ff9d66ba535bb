//! `max_gap_ms` and `max_idle_ms`: maximum idle time around tool calls.

use std::fmt;
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

/// An idle time, and the names of the events before and after it.
struct IdleTime {
    length: Duration,
    before: String,
    after: String,
}

impl fmt::Display for IdleTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms between {} and {}", self.length.as_millis(), self.before, self.after)
    }
}

impl MaxIdle {
    /// Returns the longest idle time. A call at an unknown time can only shorten an idle time, so without such calls it is the
    /// longest possible one.
    fn longest(&self, scope: TurnScope<'_>) -> Option<IdleTime> {
        let has_untimed = self.has_untimed_calls(scope);
        let timed = scope.calls().filter(|(_, call)| !has_untimed || call.has_times());
        let busy = timed.map(|(_, call)| (call.started, call.ended, call.name.to_string())).collect();
        self.longest_between(busy, scope, has_untimed)
    }

    /// Returns the longest idle time that is certain: a call at an unknown time may have lasted from the start of its turn until
    /// it was reported.
    fn longest_certain(&self, scope: TurnScope<'_>) -> Option<IdleTime> {
        let calls =
            scope.turns().iter().flat_map(|turn| turn.tool_calls.iter().map(move |call| (turn, call)));
        let busy = calls.map(|(turn, call)| {
            let started = if call.has_times() { call.started } else { turn.started };
            (started, call.ended, call.name.to_string())
        });
        self.longest_between(busy.collect(), scope, false)
    }

    fn longest_between(
        &self,
        mut busy: Vec<(TimeOffset, TimeOffset, String)>,
        scope: TurnScope<'_>,
        has_untimed: bool,
    ) -> Option<IdleTime> {
        busy.sort();
        let clock = scope.agent_clock();
        let mut busy: Vec<(Duration, Duration, String)> = busy
            .into_iter()
            .map(|(started, ended, name)| (clock.at(started), clock.at(ended), name))
            .collect();
        if self.idle == IdleScope::Anywhere || has_untimed {
            busy.insert(0, (Duration::ZERO, Duration::ZERO, "the start".to_string()));
            busy.push((clock.total(), clock.total(), "the end".to_string()));
        }
        let mut longest: Option<IdleTime> = None;
        let mut busy = busy.into_iter();
        let (_, mut until, mut before) = busy.next()?;
        for (started, ended, name) in busy {
            let length = started.saturating_sub(until);
            if longest.as_ref().is_none_or(|longest| length > longest.length) {
                longest = Some(IdleTime { length, before: before.clone(), after: name.clone() });
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

    /// Returns true if an idle time exceeds the limit.
    fn is_exceeded(&self, longest: Option<&IdleTime>) -> bool {
        longest.is_some_and(|longest| longest.length > self.limit)
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
        let certain = self.longest_certain(scope).filter(|certain| self.is_exceeded(Some(certain)));
        match certain.or_else(|| self.longest(scope)) {
            Some(longest) => CheckDecision::new(!self.is_exceeded(Some(&longest)), longest.to_string()),
            None => CheckDecision::new(true, "fewer than two tool calls".to_string()),
        }
    }

    fn undecided_reason(&self, scope: TurnScope<'_>) -> Option<String> {
        let (longest, certain) = (self.longest(scope), self.longest_certain(scope));
        if let Some(longest) = longest.as_ref().filter(|longest| self.is_exceeded(Some(longest)))
            && scope.unseen_calls().is_some()
        {
            return Some(format!(
                "nothing shows the tool calls of the agent, so it may have called tools in the {longest}; `max_duration_ms` limits the whole time"
            ));
        }
        let is_open = self.is_exceeded(longest.as_ref()) && !self.is_exceeded(certain.as_ref());
        let mut untimed = scope.calls().filter(|(_, call)| !call.has_times());
        let (turn, call) = untimed.next().filter(|_| is_open && self.has_untimed_calls(scope))?;
        Some(format!(
            "the time of the call of {} in turn {turn} is unknown: it arrived together with its result or the rest of the answer",
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
