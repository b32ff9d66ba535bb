//! Text of the agent in the turns that an assertion reads.

use hotseat_trace::TurnScope;

/// Turns of a scope whose text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnSelection {
    /// The last turn.
    Last,
    /// All turns.
    All,
}

impl TurnSelection {
    /// Names in test files.
    pub const NAMES: &'static [&'static str] = &["last", "all"];

    /// Returns the selection for a name in a test file.
    pub fn from_name(name: &str) -> Option<TurnSelection> {
        match name {
            "last" => Some(TurnSelection::Last),
            "all" => Some(TurnSelection::All),
            _ => None,
        }
    }
}

/// Returns the text of the agent in the selected turns, by default in the last turn.
pub(super) fn agent_text(turns: Option<TurnSelection>, scope: TurnScope<'_>) -> String {
    match turns {
        Some(TurnSelection::All) => scope.text(),
        Some(TurnSelection::Last) | None => scope.last_turn().text(),
    }
}
