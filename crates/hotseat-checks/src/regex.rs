//! `regex`: the text of the agent matches patterns.

use hotseat_trace::TurnScope;
use serde_json::Value;

use super::agent_text::{TurnSelection, agent_text};
use super::answer::format_text;
use super::pattern::Pattern;
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts};

/// The text of the agent matches one or several patterns.
#[derive(Debug, Clone)]
pub struct RegexCheck {
    /// The patterns.
    pub patterns: Vec<Pattern>,
    /// Number of patterns that must match.
    pub mode: MatchMode,
    /// Turns to read, if the scope has several.
    pub turns: Option<TurnSelection>,
}

/// Number of patterns that must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchMode {
    /// All patterns match, anywhere in the text.
    All,
    /// At least one pattern matches.
    Any,
}

impl MatchMode {
    /// Describes patterns.
    pub fn describe(self, patterns: &[Pattern]) -> String {
        let words: Vec<String> = patterns.iter().map(Pattern::to_string).collect();
        words.join(match self {
            MatchMode::All => " and ",
            MatchMode::Any => " or ",
        })
    }

    /// Returns true if a text matches.
    pub fn matches(self, patterns: &[Pattern], text: &str) -> bool {
        self.holds(patterns, |pattern| pattern.is_match(text))
    }

    /// Returns true if a JSON value matches, see [`Pattern::matches_value`].
    pub(super) fn matches_value(self, patterns: &[Pattern], value: &Value) -> bool {
        self.holds(patterns, |pattern| pattern.matches_value(value))
    }

    fn holds(self, patterns: &[Pattern], is_match: impl Fn(&Pattern) -> bool) -> bool {
        match self {
            MatchMode::All => patterns.iter().all(is_match),
            MatchMode::Any => patterns.iter().any(is_match),
        }
    }
}

impl CheckBehavior for RegexCheck {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_messages(negated)
    }

    fn describe(&self) -> String {
        format!("the agent's text to match {}", self.mode.describe(&self.patterns))
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        let reads_all = self.turns == Some(TurnSelection::All);
        // A pattern for the end of the text depends on what follows.
        let lasts = reads_all && !self.patterns.iter().any(Pattern::depends_on_end);
        lasts.then_some(CheckOutcome::Satisfied)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let said = agent_text(self.turns, scope);
        CheckDecision::new(self.mode.matches(&self.patterns, &said), format_text(&said))
    }

    fn read_all_turns(&mut self) {
        self.turns.get_or_insert(TurnSelection::All);
    }
}
