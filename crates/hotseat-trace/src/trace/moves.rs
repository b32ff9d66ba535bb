//! Move events.

use super::view::pick;
use super::{ConversationView, TypedRecord};
use crate::{MoveRecorded, MoveResult};

/// Move events.
#[derive(Debug, Clone)]
pub struct MoveEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> MoveEvents<'a> {
    /// Returns all moves.
    pub fn all(&self) -> Vec<TypedRecord<'a, MoveRecorded>> {
        pick!(self.0, MoveRecorded)
    }

    /// Returns the moves of a turn, by their numbers.
    pub fn for_turn(&self, turn_id: &str) -> Vec<TypedRecord<'a, MoveRecorded>> {
        let mut moves: Vec<_> = self.all().into_iter().filter(|p| &*p.turn_id == turn_id).collect();
        moves.sort_by_key(|p| p.payload.sequence);
        moves
    }

    /// Returns the results that were added to moves later.
    pub fn results(&self) -> Vec<TypedRecord<'a, MoveResult>> {
        pick!(self.0, MoveResult)
    }
}
