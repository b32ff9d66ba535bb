//! `contains` and `not_contains`: the text of the agent contains a given text, or does not.

use hotseat_document::quote;
use hotseat_trace::TurnScope;

use super::agent_text::{TurnSelection, agent_text};
use super::answer::format_text;
use super::call_text::truncate;
use super::{CheckBehavior, CheckDecision, CheckOutcome, ForbiddenTexts};

/// The text of the agent in the last turn contains a text, or does not. Case-sensitive.
#[derive(Debug, Clone)]
pub struct ContainsText {
    /// The text to look for.
    pub text: String,
    /// True if the text must be present, false if it must be absent.
    pub must_contain: bool,
    /// Turns to read, if the scope has several.
    pub turns: Option<TurnSelection>,
}

impl CheckBehavior for ContainsText {
    fn forbidden_texts(&self, negated: bool) -> ForbiddenTexts {
        ForbiddenTexts::in_messages(self.must_contain == negated)
    }

    fn describe(&self) -> String {
        let what = if self.must_contain { "to contain" } else { "not to contain" };
        format!("the agent's text {what} {}", quote(&truncate(&self.text)))
    }

    fn lasting_outcome(&self, _: TurnScope<'_>) -> Option<CheckOutcome> {
        let outcome = if self.must_contain { CheckOutcome::Satisfied } else { CheckOutcome::Violated };
        (self.turns == Some(TurnSelection::All)).then_some(outcome)
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        let said = agent_text(self.turns, scope);
        CheckDecision::new(said.contains(&self.text) == self.must_contain, format_text(&said))
    }

    fn read_all_turns(&mut self) {
        self.turns.get_or_insert(TurnSelection::All);
    }
}
