//! The moves of a conversation.

use super::view::pick;
use super::{Typed, View};
use crate::{MoveRecorded, MoveResult};

/// Move events.
#[derive(Debug, Clone)]
pub struct Moves<'a>(pub(super) View<'a>);

impl<'a> Moves<'a> {
    /// Every move.
    pub fn all(&self) -> Vec<Typed<'a, MoveRecorded>> {
        pick!(self.0, MoveRecorded)
    }

    /// The moves of one turn, in their own order.
    pub fn for_turn(&self, turn_id: &str) -> Vec<Typed<'a, MoveRecorded>> {
        let mut moves: Vec<_> = self.all().into_iter().filter(|p| &*p.turn_id == turn_id).collect();
        moves.sort_by_key(|p| p.payload.sequence);
        moves
    }

    /// The results that were added to moves later.
    pub fn results(&self) -> Vec<Typed<'a, MoveResult>> {
        pick!(self.0, MoveResult)
    }

    /// The results that were added to the moves of one turn later.
    pub fn results_for_turn(&self, turn_id: &str) -> Vec<Typed<'a, MoveResult>> {
        self.results().into_iter().filter(|p| &*p.turn_id == turn_id).collect()
    }
}
