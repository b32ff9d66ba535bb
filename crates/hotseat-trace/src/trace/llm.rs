//! Language model events.

use super::view::picks;
use super::{ConversationView, TypedRecord};
use crate::{EventRecord, LlmCallCompleted, LlmCallFailed, LlmCallStarted};

/// Language model events.
#[derive(Debug, Clone)]
pub struct LlmCallEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> LlmCallEvents<'a> {
    picks! {
        /// Returns the started calls, including every retry.
        calls: LlmCallStarted = LlmCallStarted;
        /// Returns the completed calls.
        completions: LlmCallCompleted = LlmCallCompleted;
        /// Returns the failed calls.
        failures: LlmCallFailed = LlmCallFailed;
    }

    /// Returns all language model events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "llm").collect()
    }
}
