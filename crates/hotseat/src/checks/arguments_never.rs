//! `args_not_match`: no arguments of a tool fit a pattern.

use hotseat_trace::Scope;

use super::calls::{self, ArgumentPatterns, CallFilter};
use super::{Decided, listed};

/// Of the calls that are meant, none has an argument that fits its pattern here.
#[derive(Debug, Clone)]
pub struct ArgumentsNever {
    /// Which calls are looked at.
    pub calls: CallFilter,
    /// What no argument must fit.
    pub arguments: ArgumentPatterns,
}

impl ArgumentsNever {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("no call of {} has {}", self.calls.describe(), self.arguments.describe())
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let meant = scope.calls().filter(|(_, call)| self.calls.fits(call));
        let bad = meant.filter_map(|(turn, call)| {
            let path = self.arguments.any_fits(&call.arguments)?;
            Some(format!("{} in {}", path, calls::shown(turn, call)))
        });
        let bad: Vec<String> = bad.collect();
        let unknown = scope.calls().filter(|(_, call)| {
            self.calls.is_unknown(call) && self.arguments.any_fits(&call.arguments).is_some()
        });
        let unknown: Vec<String> = unknown.map(|(turn, call)| calls::shown(turn, call)).collect();
        if bad.is_empty() && !unknown.is_empty() {
            return Decided::unanswered(&unknown);
        }
        let actual = if bad.is_empty() { "no such argument".to_string() } else { listed(&bad) };
        Decided::of(bad.is_empty(), actual)
    }
}
