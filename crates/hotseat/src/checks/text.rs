//! `must_match` and `must_not_match`: what the agent says.

use hotseat_trace::Scope;

use super::Decided;
use super::calls::cut;
use super::pattern::Pattern;

/// What the agent says fits a pattern, or does not. Reasoning is not something it says. Several messages are
/// joined by line ends.
#[derive(Debug, Clone)]
pub struct Text {
    /// The pattern.
    pub pattern: Pattern,
    /// Whether it must fit.
    pub must: TextMatch,
}

/// Whether a pattern must fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMatch {
    /// It must.
    Fit,
    /// It must not.
    NotFit,
}

impl Text {
    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        match self.must {
            TextMatch::Fit => format!("the agent says something that fits {}", self.pattern),
            TextMatch::NotFit => format!("the agent says nothing that fits {}", self.pattern),
        }
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        let text = scope.text();
        let passed = self.pattern.fits(&text) == (self.must == TextMatch::Fit);
        let actual =
            if text.is_empty() { "it says nothing".to_string() } else { format!("{:?}", cut(&text)) };
        Decided::of(passed, actual)
    }
}
