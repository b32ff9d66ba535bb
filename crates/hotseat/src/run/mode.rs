//! The kinds of conversations, which decide how a case is shown.

use serde::{Deserialize, Serialize};

use super::Attempt;
use crate::cases::Case;
use crate::checks::Reference;
use crate::session::OnMissingInput;

/// What kind of conversation a case is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
            () if case.is_dynamic => Mode::Dynamic,
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

impl Attempt {
    /// What kind of conversation it was. A person who answers can make one of several turns of any.
    pub fn mode(&self) -> Mode {
        match self.selected.case.mode {
            Mode::Standard if self.conversation.turns.len() > 1 => Mode::MultiTurn,
            mode => mode,
        }
    }
}

/// Which kinds there are in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    /// Whether some case has several turns.
    pub multi_turn: bool,
    /// Whether some case has a simulated user and checkpoints.
    pub dynamic: bool,
    /// The simulated users, each once; none stands for the one that the project or the command line names.
    pub simulators: Vec<Option<Reference>>,
}

impl Modes {
    /// Those of another run are added.
    pub(crate) fn join(&mut self, other: &Modes) {
        self.multi_turn |= other.multi_turn;
        self.dynamic |= other.dynamic;
        for simulator in &other.simulators {
            if !self.simulators.contains(simulator) {
                self.simulators.push(simulator.clone());
            }
        }
    }

    pub(super) fn add(&mut self, case: &Case) {
        match Mode::of(case) {
            Mode::Standard => {}
            Mode::MultiTurn => self.multi_turn = true,
            Mode::Dynamic => self.dynamic = true,
        }
        let simulator = case.simulator.as_ref().map(|simulator| &simulator.reference);
        if let Some(reference) = simulator.filter(|reference| !self.simulators.contains(reference)) {
            self.simulators.push(reference.clone());
        }
    }
}
