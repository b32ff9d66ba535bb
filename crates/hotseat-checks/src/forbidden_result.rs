//! `result_not_match`: no result of a tool matches a pattern.

use hotseat_trace::{AgentToolCall, TurnScope};

use super::call_text::format_calls;
use super::calls::{CallFilter, NamedTools};
use super::pattern::Pattern;
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

/// No result of the matching calls matches the pattern; a single bad result fails the check. A call without a
/// result cannot be decided.
#[derive(Debug, Clone)]
pub struct ForbiddenResult {
    /// Selects the calls to check.
    pub calls: CallFilter,
    /// Pattern that no result may match.
    pub pattern: Pattern,
}

impl CheckBehavior for ForbiddenResult {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_calls(!negated)
    }

    fn describe(&self) -> String {
        format!("no result of {} to match {}", self.calls.describe(), self.pattern)
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        vec![self.calls.named_tools()]
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let fits = |call: &AgentToolCall| {
            call.result.as_ref().is_some_and(|r| self.pattern.matches_result(&r.value))
        };
        let meant = scope.calls().filter(|(_, call)| self.calls.matches(call));
        let bad = format_calls(meant.clone().filter(|(_, call)| fits(call)));
        let may_be_bad =
            |call: &AgentToolCall| self.calls.may_match(call) && (call.result.is_none() || fits(call));
        let unknown: Vec<_> = scope.calls().filter(|(_, call)| may_be_bad(call)).collect();
        if bad.is_empty() && !unknown.is_empty() {
            return CheckDecision::undecided_calls(&unknown);
        }
        let actual = match (bad.is_empty(), meant.count()) {
            (false, _) => format_list(&bad),
            (true, 0) => "no such call".to_string(),
            (true, 1) => "one result, which does not match".to_string(),
            (true, n) => format!("{n} results, none of which matches"),
        };
        CheckDecision::new(bad.is_empty(), actual)
    }
}
