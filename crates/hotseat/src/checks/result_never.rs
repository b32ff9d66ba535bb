//! `result_not_match`: no result of a tool fits a pattern.

use hotseat_trace::Scope;

use super::calls::{self, CallFilter};
use super::pattern::Pattern;
use super::{Decided, listed};

/// No result of the calls that are meant fits: one bad result of two is one too many. Of a call whose result never came
/// nobody knows whether it fits.
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
        let unanswered = scope.calls().filter(|(_, call)| {
            self.calls.is_unknown(call) || (self.calls.fits(call) && call.result.is_none())
        });
        let unanswered: Vec<String> = unanswered.map(|(turn, call)| calls::shown(turn, call)).collect();
        if bad.is_empty() && !unanswered.is_empty() {
            return Decided::unanswered(&unanswered);
        }
        let actual = match (bad.is_empty(), meant.count()) {
            (false, _) => listed(&bad),
            (true, 0) => "no such call".to_string(),
            (true, 1) => "the one result does not fit".to_string(),
            (true, n) => format!("none of {n} results fits"),
        };
        Decided::of(bad.is_empty(), actual)
    }
}
