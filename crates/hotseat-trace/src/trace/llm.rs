//! Language model events.

use super::view::pick;
use super::{ConversationView, TypedRecord};
use crate::{EventRecord, LlmCallCompleted, LlmCallFailed, LlmCallStarted};

/// Language model events.
#[derive(Debug, Clone)]
pub struct LlmCallEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> LlmCallEvents<'a> {
    /// Returns the started calls, including every retry.
    pub fn calls(&self) -> Vec<TypedRecord<'a, LlmCallStarted>> {
        pick!(self.0, LlmCallStarted)
    }

    /// Returns the completed calls.
    pub fn completions(&self) -> Vec<TypedRecord<'a, LlmCallCompleted>> {
        pick!(self.0, LlmCallCompleted)
    }

    /// Returns the failed calls.
    pub fn failures(&self) -> Vec<TypedRecord<'a, LlmCallFailed>> {
        pick!(self.0, LlmCallFailed)
    }

    /// Returns all language model events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "llm").collect()
    }
}
