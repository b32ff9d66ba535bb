//! `forbid_calls`: calls with certain arguments or results are never made.

use hotseat_trace::Scope;

use super::calls::{self, CallFilter};
use super::{Decided, listed};

/// A call like this is never made. Arguments and result must both fit for a call to be meant.
#[derive(Debug, Clone)]
pub struct CallForbidden {
    /// Which calls are forbidden.
    pub calls: CallFilter,
}

impl CallForbidden {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("no call of {}", self.calls.describe())
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let made = scope.calls().filter(|(_, call)| self.calls.fits(call));
        let made: Vec<String> = made.map(|(turn, call)| calls::shown(turn, call)).collect();
        let unanswered =
            scope.calls().filter(|(_, call)| *call.name == *self.calls.name && call.result.is_none()).count();
        let actual = match (made.is_empty(), unanswered) {
            (false, _) => listed(&made),
            (true, 0) => "no such call".to_string(),
            (true, n) => format!("no such call; {n} without a result"),
        };
        Decided::of(made.is_empty(), actual)
    }
}
