//! The language model calls of a conversation.

use super::view::pick;
use super::{Typed, View};
use crate::{LlmCallCompleted, LlmCallFailed, LlmCallStarted, Record};

/// Language model events.
#[derive(Debug, Clone)]
pub struct Llm<'a>(pub(super) View<'a>);

impl<'a> Llm<'a> {
    /// Where a model was asked; every attempt counts.
    pub fn calls(&self) -> Vec<Typed<'a, LlmCallStarted>> {
        pick!(self.0, LlmCallStarted)
    }

    /// Where it replied.
    pub fn completions(&self) -> Vec<Typed<'a, LlmCallCompleted>> {
        pick!(self.0, LlmCallCompleted)
    }

    /// Where it did not reply.
    pub fn failures(&self) -> Vec<Typed<'a, LlmCallFailed>> {
        pick!(self.0, LlmCallFailed)
    }

    /// All three kinds, of one turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a Record> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "llm").collect()
    }
}
