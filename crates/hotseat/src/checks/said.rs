//! What an agent said in the turns that an assertion looks at.

use hotseat_trace::Scope;

/// Of several turns, those whose words are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnsRead {
    /// The last one.
    Last,
    /// All of them.
    All,
}

impl TurnsRead {
    /// As they are written.
    pub const NAMES: &'static [&'static str] = &["last", "all"];

    /// The turns that a name stands for.
    pub fn named(name: &str) -> Option<TurnsRead> {
        match name {
            "last" => Some(TurnsRead::Last),
            "all" => Some(TurnsRead::All),
            _ => None,
        }
    }
}

/// Everything that the agent said in these turns; where no turns are named, in the last one.
pub(super) fn said(turns: Option<TurnsRead>, scope: Scope<'_>) -> String {
    match turns {
        Some(TurnsRead::All) => scope.text(),
        Some(TurnsRead::Last) | None => scope.last_turn().text(),
    }
}
