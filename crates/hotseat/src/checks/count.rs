//! How often a tool is called: `require`, `forbid`, and everything with a `count`.

use hotseat_trace::Scope;

use super::calls::CallFilter;
use super::{Decided, listed};

/// A tool is called so many times.
#[derive(Debug, Clone)]
pub struct ToolCount {
    /// Which calls are counted.
    pub calls: CallFilter,
    /// How many there must be.
    pub count: Count,
}

/// A number of calls between two bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// At least so many.
    pub min: u64,
    /// At most so many, if there is a bound.
    pub max: Option<u64>,
}

impl Count {
    /// Once or more often.
    pub const AT_LEAST_ONE: Count = Count { min: 1, max: None };
    /// Not once.
    pub const NONE: Count = Count { min: 0, max: Some(0) };

    pub(super) fn allows(self, counted: u64) -> bool {
        counted >= self.min && self.max.is_none_or(|max| counted <= max)
    }

    pub(super) fn describe(self) -> String {
        match (self.min, self.max) {
            (0, Some(0)) => "never called".to_string(),
            (1, None) => "called".to_string(),
            (min, None) => format!("called at least {}", times(min)),
            (0, Some(max)) => format!("called at most {}", times(max)),
            (min, Some(max)) if min == max => format!("called exactly {}", times(min)),
            (min, Some(max)) => format!("called {min} to {max} times"),
        }
    }
}

impl ToolCount {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("{} is {}", self.calls.describe(), self.count.describe())
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let counted = scope.calls().filter(|(_, call)| self.calls.fits(call)).count() as u64;
        let passed = self.count.allows(counted);
        let unknown = self.calls.unknown_calls(scope);
        let possible = counted..=counted + unknown.len() as u64;
        // Whether calls without a result are meant may make a difference.
        if possible.clone().any(|number| self.count.allows(number) != passed) {
            return Decided::unanswered(&unknown);
        }
        let all = self.calls.shown_calls(scope);
        let narrowed = all.len() as u64 != counted;
        let actual = match (counted, all.is_empty()) {
            (0, true) => match super::calls::names(scope).as_slice() {
                [] => "not called; no tool was".to_string(),
                names => format!("not called; called were {}", names.join(", ")),
            },
            _ if narrowed => format!("{counted} of {} fits: {}", calls(all.len()), listed(&all)),
            _ => format!("called {}: {}", times(counted), listed(&all)),
        };
        Decided::of(passed, actual)
    }
}

fn times(n: u64) -> String {
    match n {
        1 => "once".to_string(),
        2 => "twice".to_string(),
        n => format!("{n} times"),
    }
}

fn calls(n: usize) -> String {
    if n == 1 { "1 call".to_string() } else { format!("{n} calls") }
}
