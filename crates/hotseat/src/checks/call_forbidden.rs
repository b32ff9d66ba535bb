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
        let unknown = self.calls.unknown_calls(scope);
        match (made.is_empty(), unknown.is_empty()) {
            (false, _) => Decided::of(false, listed(&made)),
            (true, false) => Decided::unanswered(&unknown),
            (true, true) => Decided::of(true, "no such call".to_string()),
        }
    }
}
