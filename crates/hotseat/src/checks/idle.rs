//! `max_gap_ms` and `max_idle_ms`: how long nothing may happen around tool calls.

use std::time::Duration;

use hotseat_trace::{Offset, Scope};

use super::Decided;

/// No idle time is longer than this. A tool that runs is not idle: time counts from the end of what ran before.
#[derive(Debug, Clone)]
pub struct MaxIdle {
    /// Which idle times count.
    pub idle: Idle,
    /// The longest one that is allowed.
    pub limit: Duration,
}

/// Which idle times count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Only those between tool calls; with fewer than two calls there are none.
    BetweenCalls,
    /// Also the one before the first call and the one after the last; without a call, the whole time.
    Anywhere,
}

impl MaxIdle {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match self.idle {
            Idle::BetweenCalls => format!("at most {} ms between two tool calls", self.limit.as_millis()),
            Idle::Anywhere => {
                format!("at most {} ms before, between and after tool calls", self.limit.as_millis())
            }
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let Some((longest, from, to)) = self.longest(scope) else {
            return Decided::of(true, "fewer than two tool calls".to_string());
        };
        let actual = format!("{} ms between {from} and {to}", longest.as_millis());
        Decided::of(longest <= self.limit, actual)
    }

    /// The longest idle time and what it lies between.
    fn longest(&self, scope: Scope<'_>) -> Option<(Duration, String, String)> {
        let mut busy: Vec<(Offset, Offset, String)> =
            scope.calls().map(|(_, call)| (call.started, call.ended, call.name.to_string())).collect();
        busy.sort();
        if self.idle == Idle::Anywhere {
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
}
