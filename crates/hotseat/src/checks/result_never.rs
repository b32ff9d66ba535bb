//! `result_not_match`: no result of a tool fits a pattern.

use hotseat_trace::Scope;

use super::calls::{self, CallFilter};
use super::pattern::Pattern;
use super::{Decided, listed};

/// No result of the calls that are meant fits: one bad result of two is one too many. A call without a result
/// has none that could fit.
#[derive(Debug, Clone)]
pub struct ResultNever {
    /// Which calls are looked at.
    pub calls: CallFilter,
    /// What their results must not fit.
    pub pattern: Pattern,
}

impl ResultNever {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("no result of {} fits {}", self.calls.describe(), self.pattern)
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let fits = |call: &hotseat_trace::ToolCall| {
            call.result.as_ref().is_some_and(|r| self.pattern.fits(&r.text()))
        };
        let meant = scope.calls().filter(|(_, call)| self.calls.fits(call));
        let bad: Vec<String> = meant
            .clone()
            .filter(|(_, call)| fits(call))
            .map(|(turn, call)| calls::shown(turn, call))
            .collect();
        let (answered, unanswered): (Vec<_>, Vec<_>) = meant.partition(|(_, call)| call.result.is_some());
        let actual = match (bad.is_empty(), answered.len(), unanswered.len()) {
            (false, ..) => listed(&bad),
            (true, 0, 0) => "no such call".to_string(),
            (true, 0, _) => "no result".to_string(),
            (true, 1, _) => "the one result does not fit".to_string(),
            (true, n, _) => format!("none of {n} results fits"),
        };
        Decided::of(bad.is_empty(), actual)
    }
}
