//! `contains` and `not_contains`: a text that the agent says, or does not.

use hotseat_trace::Scope;

use super::Decided;
use super::answer::shown;
use super::calls::cut;
use super::said::{TurnsRead, said};

/// The agent says this text in the last turn, or does not. Case matters.
#[derive(Debug, Clone)]
pub struct Contains {
    /// The text.
    pub text: String,
    /// Whether it must be there.
    pub there: bool,
    /// Of several turns, those that are read.
    pub turns: Option<TurnsRead>,
}

impl Contains {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        let what = if self.there { "contains" } else { "does not contain" };
        format!("what the agent says {what} {:?}", cut(&self.text))
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let said = said(self.turns, scope);
        Decided::of(said.contains(&self.text) == self.there, shown(&said))
    }
}
