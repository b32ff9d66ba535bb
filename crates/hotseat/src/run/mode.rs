//! The kinds of conversations, which decide how a case is shown.

use crate::cases::Case;
use crate::session::OnMissingInput;

/// What kind of conversation a case is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One input, one answer.
    Standard,
    /// Several turns, or as many as it takes.
    MultiTurn,
    /// A simulated user talks until the checkpoints are reached.
    Dynamic,
}

impl Mode {
    /// The kind of a case.
    pub fn of(case: &Case) -> Mode {
        let goes_on = case.simulator.is_some()
            || case.interactive.is_some()
            || case.on_missing_input != OnMissingInput::End;
        match () {
            () if case.simulator.is_some() && !case.checkpoints.is_empty() => Mode::Dynamic,
            () if case.turns.len() > 1 || goes_on => Mode::MultiTurn,
            () => Mode::Standard,
        }
    }

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Standard => "standard",
            Mode::MultiTurn => "multi_turn",
            Mode::Dynamic => "dynamic",
        }
    }
}

/// Which kinds there are in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// Whether some case has several turns.
    pub multi_turn: bool,
    /// Whether some case has a simulated user and checkpoints.
    pub dynamic: bool,
}

impl Modes {
    pub(super) fn add(&mut self, mode: Mode) {
        match mode {
            Mode::Standard => {}
            Mode::MultiTurn => self.multi_turn = true,
            Mode::Dynamic => self.dynamic = true,
        }
    }
}
