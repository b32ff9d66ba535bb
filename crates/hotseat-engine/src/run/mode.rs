//! Conversation modes, which decide the presentation of a case in reports.

use hotseat_trace::named;
use serde::{Deserialize, Serialize};

use crate::cases::{OnMissingInput, TestCase};
use hotseat_checks::RoleReference;

named! {
    /// Conversation mode of a case.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ConversationMode {
        /// One input, one answer.
        Standard = "standard",
        /// Several turns, or an open number of turns.
        MultiTurn = "multi_turn",
        /// A simulated user that talks until all checkpoints are reached.
        Dynamic = "dynamic",
    }
}

impl ConversationMode {
    /// Returns the mode of a case.
    pub fn from_case(case: &TestCase) -> ConversationMode {
        let is_open_ended = case.simulator.is_some()
            || case.interactive.is_some()
            || case.on_missing_input != OnMissingInput::End;
        match () {
            () if case.is_dynamic => ConversationMode::Dynamic,
            () if case.turns.len() > 1 || is_open_ended => ConversationMode::MultiTurn,
            () => ConversationMode::Standard,
        }
    }
}

/// Conversation modes used in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunModes {
    /// True if a case has several turns.
    pub multi_turn: bool,
    /// True if a case has a simulated user and checkpoints.
    pub dynamic: bool,
    /// Simulated users without duplicates. `None` is the default of the project or the command line.
    pub simulators: Vec<Option<RoleReference>>,
}

impl RunModes {
    /// Adds the modes of another run.
    pub fn merge(&mut self, other: &RunModes) {
        self.multi_turn |= other.multi_turn;
        self.dynamic |= other.dynamic;
        for simulator in &other.simulators {
            if !self.simulators.contains(simulator) {
                self.simulators.push(simulator.clone());
            }
        }
    }

    pub(super) fn add_case(&mut self, case: &TestCase) {
        match ConversationMode::from_case(case) {
            ConversationMode::Standard => {}
            ConversationMode::MultiTurn => self.multi_turn = true,
            ConversationMode::Dynamic => self.dynamic = true,
        }
        let simulator = case.simulator.as_ref().map(|simulator| &simulator.reference);
        if let Some(reference) = simulator.filter(|reference| !self.simulators.contains(reference)) {
            self.simulators.push(reference.clone());
        }
    }
}
