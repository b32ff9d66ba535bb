//! `after`: a tool is called only after another one.

use hotseat_trace::Scope;

use super::calls::{self, CallFilter};
use super::{Decided, listed};

/// Every call that is meant began after some call of another tool had begun. Calls made in parallel are in the
/// order in which they began. After itself a tool can only be called again, so there must be a second call.
#[derive(Debug, Clone)]
pub struct After {
    /// Which calls are looked at.
    pub calls: CallFilter,
    /// The tool that must have been called before.
    pub after: String,
}

impl After {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("{} is called only after {}", self.calls.describe(), self.after)
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let mut seen = false;
        let (mut early, mut late, mut unknown) = (Vec::new(), 0, Vec::new());
        for (turn, call) in scope.calls() {
            match (self.calls.fits(call), seen) {
                (true, true) => late += 1,
                (true, false) => early.push(calls::shown(turn, call)),
                // Behind the other tool it makes no difference, unless a second call is what is asked for.
                (false, false) if self.calls.is_unknown(call) => unknown.push(calls::shown(turn, call)),
                (false, true) if self.calls.is_unknown(call) && *self.after == *self.calls.name => {
                    unknown.push(calls::shown(turn, call));
                }
                (false, _) => {}
            }
            seen |= *call.name == *self.after;
        }
        if *self.after == *self.calls.name {
            // The first call can come after none; what is asked for is that there is another.
            let actual = if late > 0 { "called again".to_string() } else { listed(&early) };
            return match late == 0 && !unknown.is_empty() {
                true => Decided::unanswered(&unknown),
                false => Decided::of(late > 0, actual),
            };
        }
        if early.is_empty() && !unknown.is_empty() {
            return Decided::unanswered(&unknown);
        }
        let actual = match (early.as_slice(), seen) {
            ([], _) => "in order".to_string(),
            (early, true) => format!("before {}: {}", self.after, listed(early)),
            (early, false) => format!("{} was never called; {}", self.after, listed(early)),
        };
        Decided::of(early.is_empty(), actual)
    }
}
