//! Text of the agent in the turns that an assertion reads.

use hotseat_trace::{TurnScope, named};

named! {
    /// Turns of a scope whose text is read.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TurnSelection {
        /// The last turn.
        Last = "last",
        /// All turns.
        All = "all",
    }
}

/// Returns the text of the agent in the selected turns, by default in the last turn.
pub(super) fn agent_text(turns: Option<TurnSelection>, scope: TurnScope<'_>) -> String {
    match turns {
        Some(TurnSelection::All) => scope.text(),
        Some(TurnSelection::Last) | None => scope.last_turn().text(),
    }
}
