//! `regex`: what the agent says fits a pattern.

use hotseat_trace::Scope;

use super::Decided;
use super::answer::shown;
use super::pattern::Pattern;

/// What the agent says in the last turn fits a pattern.
#[derive(Debug, Clone)]
pub struct Regex {
    /// The pattern.
    pub pattern: Pattern,
}

impl Regex {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        format!("what the agent says fits {}", self.pattern)
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let said = scope.last_turn().text();
        Decided::of(self.pattern.fits(&said), shown(&said))
    }
}
