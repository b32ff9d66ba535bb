//! `forbid_calls`: calls with given arguments or results are never made.

use hotseat_trace::TurnScope;

use super::calls::{CallFilter, NamedTools};
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts, format_list};

/// No matching call is made. A call matches only if both its arguments and its result match.
#[derive(Debug, Clone)]
pub struct ForbiddenCall {
    /// Selects the forbidden calls.
    pub calls: CallFilter,
}

impl CheckBehavior for ForbiddenCall {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_calls(!negated && self.calls.reads_texts())
    }

    fn describe(&self) -> String {
        format!("no call of {}", self.calls.describe())
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        Some(CheckOutcome::Violated)
    }

    fn named_tools(&self) -> Vec<NamedTools<'_>> {
        vec![self.calls.named_tools()]
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let made = self.calls.list_matching(scope);
        let unknown = self.calls.undecided_calls(scope);
        match (made.is_empty(), unknown.is_empty()) {
            (false, _) => CheckDecision::new(false, format_list(&made)),
            (true, false) => CheckDecision::undecided_calls(&unknown),
            (true, true) => CheckDecision::new(true, "no such call".to_string()),
        }
    }
}
