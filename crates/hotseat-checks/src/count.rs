//! Number of calls of a tool: `require`, `forbid`, and every assertion with a `count`.

use hotseat_trace::{TurnScope, format_count};

use super::calls::{CallFilter, NamedTools, called_tools};
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

/// A tool is called a given number of times.
#[derive(Debug, Clone)]
pub struct ToolCount {
    /// Selects the calls to count.
    pub calls: CallFilter,
    /// Allowed number of calls.
    pub count: CallCount,
}

/// Inclusive range of the number of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCount {
    /// Minimum number of calls.
    pub min: u64,
    /// Maximum number of calls, if bounded.
    pub max: Option<u64>,
}

impl CallCount {
    /// At least one call.
    pub const AT_LEAST_ONE: CallCount = CallCount { min: 1, max: None };
    /// No call.
    pub const NONE: CallCount = CallCount { min: 0, max: Some(0) };

    pub(super) fn allows(self, counted: u64) -> bool {
        counted >= self.min && self.max.is_none_or(|max| counted <= max)
    }

    /// The outcome that further calls cannot change.
    pub(super) fn lasting_outcome(self, counted: u64) -> Option<CheckOutcome> {
        match self.max {
            None => Some(CheckOutcome::Satisfied),
            Some(max) => (counted > max).then_some(CheckOutcome::Violated),
        }
    }

    pub(super) fn describe(self) -> String {
        match (self.min, self.max) {
            (0, Some(0)) => "never to be called".to_string(),
            (1, None) => "to be called".to_string(),
            (min, None) => format!("to be called at least {}", times(min)),
            (0, Some(max)) => format!("to be called at most {}", times(max)),
            (min, Some(max)) if min == max => format!("to be called exactly {}", times(min)),
            (min, Some(max)) => format!("to be called {min} to {max} times"),
        }
    }
}

impl ToolCount {
    fn count_calls(&self, scope: TurnScope<'_>) -> u64 {
        scope.calls().filter(|(_, call)| self.calls.matches(call)).count() as u64
    }
}

impl CheckBehavior for ToolCount {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_calls((negated || self.count.max.is_some()) && self.calls.reads_texts())
    }

    fn lasting_outcome(&self, scope: TurnScope<'_>) -> Option<CheckOutcome> {
        self.count.lasting_outcome(self.count_calls(scope))
    }

    fn describe(&self) -> String {
        format!("{} {}", self.calls.describe(), self.count.describe())
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        vec![self.calls.named_tools()]
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let counted = self.count_calls(scope);
        let passed = self.count.allows(counted);
        let unknown = self.calls.undecided_calls(scope);
        let possible = counted..=counted + unknown.len() as u64;
        // Calls without a result or with invalid arguments may change the outcome.
        if possible.clone().any(|number| self.count.allows(number) != passed) {
            return CheckDecision::undecided_calls(&unknown);
        }
        if counted < self.count.min
            && let Some(comparison) = self.calls.compare(scope)
            && !comparison.missing.is_empty()
        {
            return CheckDecision::violated(comparison);
        }
        let all = self.calls.list_calls(scope);
        let narrowed = all.len() as u64 != counted;
        let actual = match (counted, all.is_empty()) {
            (0, true) => match called_tools(scope, std::slice::from_ref(&self.calls.name)) {
                names if names.is_empty() => "no call of any tool".to_string(),
                names => format!("no call; tools called: {names}"),
            },
            (0, false) => format!("none of {} matching", format_count(all.len(), "call")),
            _ if narrowed => {
                let matching = self.calls.list_matching(scope);
                format!(
                    "{counted} of {} matching: {}",
                    format_count(all.len(), "call"),
                    format_list(&matching)
                )
            }
            _ => format!("{}: {}", format_count(all.len(), "call"), format_list(&all)),
        };
        CheckDecision::new(passed, actual)
    }

    fn expected_tool(&self) -> Option<&str> {
        (self.count.min > 0).then_some(&*self.calls.name)
    }
}

/// Writes how often: `once`, `twice`, `3 times`.
pub(super) fn times(n: u64) -> String {
    match n {
        1 => "once".to_string(),
        2 => "twice".to_string(),
        n => format!("{n} times"),
    }
}
