//! `must_match` and `must_not_match`: patterns for the text of the agent.

use hotseat_trace::TurnScope;

use super::answer::format_text;
use super::pattern::Pattern;
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts};

/// The text of the agent matches a pattern, or does not. Reasoning is not text. Several messages are joined
/// by line breaks.
#[derive(Debug, Clone)]
pub struct TextPattern {
    /// The pattern.
    pub pattern: Pattern,
    /// Expected result of the match.
    pub expected: TextMatch,
}

/// Expected result of a pattern match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMatch {
    /// The pattern must match.
    Match,
    /// The pattern must not match.
    NoMatch,
}

impl CheckBehavior for TextPattern {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_messages((self.expected == TextMatch::Match) == negated)
    }

    fn describe(&self) -> String {
        match self.expected {
            TextMatch::Match => format!("the agent to say something that matches {}", self.pattern),
            TextMatch::NoMatch => format!("the agent to say nothing that matches {}", self.pattern),
        }
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        // A pattern for the end of the text depends on what follows.
        let lasts = self.expected == TextMatch::NoMatch && !self.pattern.depends_on_end();
        lasts.then_some(CheckOutcome::Violated)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let text = scope.text();
        let passed = self.pattern.is_match(&text) == (self.expected == TextMatch::Match);
        CheckDecision::new(passed, format_text(&text))
    }
}
