//! `args_not_match`: no arguments of a tool match a pattern.

use hotseat_trace::{AgentToolCall, TurnScope};

use super::call_text::format_call;
use super::calls::{ArgumentPatterns, CallFilter, NamedTools};
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

/// No matching call has an argument that matches its pattern.
#[derive(Debug, Clone)]
pub struct ForbiddenArguments {
    /// Selects the calls to check.
    pub calls: CallFilter,
    /// Patterns that no argument may match.
    pub arguments: ArgumentPatterns,
}

impl CheckBehavior for ForbiddenArguments {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_calls(!negated)
    }

    fn describe(&self) -> String {
        format!("no call of {} to have {}", self.calls.describe(), self.arguments.describe())
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        vec![self.calls.named_tools()]
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let meant = scope.calls().filter(|(_, call)| self.calls.matches(call) && !call.arguments_broken);
        let bad = meant.filter_map(|(turn, call)| {
            let path = self.arguments.first_match(&call.arguments)?;
            Some(format!("{} in {}", path, format_call(turn, call)))
        });
        let bad: Vec<String> = bad.collect();
        let may_be_bad = |call: &AgentToolCall| {
            call.arguments_broken || self.arguments.first_match(&call.arguments).is_some()
        };
        let unknown: Vec<_> =
            scope.calls().filter(|(_, call)| self.calls.may_match(call) && may_be_bad(call)).collect();
        if bad.is_empty() && !unknown.is_empty() {
            return CheckDecision::undecided_calls(&unknown);
        }
        let actual = if bad.is_empty() { "no such argument".to_string() } else { format_list(&bad) };
        CheckDecision::new(bad.is_empty(), actual)
    }
}
