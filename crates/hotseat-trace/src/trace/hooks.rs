//! Events of the two hook workflows of every turn: context assembly and memory extraction.

use super::view::pick;
use super::{ConversationView, TypedRecord};
use crate::{ContextAssembled, EventRecord, HookFailed, HookStarted, MemoryExtracted};

/// Context assembly events.
#[derive(Debug, Clone)]
pub struct ContextAssemblyEvents<'a>(pub(super) ConversationView<'a>);

/// Memory extraction events.
#[derive(Debug, Clone)]
pub struct MemoryExtractionEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> ContextAssemblyEvents<'a> {
    /// Returns the started runs.
    pub fn starts(&self) -> Vec<TypedRecord<'a, HookStarted>> {
        pick!(self.0, ContextAssemblyStarted)
    }

    /// Returns the completed runs.
    pub fn completions(&self) -> Vec<TypedRecord<'a, ContextAssembled>> {
        pick!(self.0, ContextAssemblyCompleted)
    }

    /// Returns the failed attempts.
    pub fn failures(&self) -> Vec<TypedRecord<'a, HookFailed>> {
        pick!(self.0, ContextAssemblyFailed)
    }

    /// Returns all context assembly events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "context_assembly").collect()
    }
}

impl<'a> MemoryExtractionEvents<'a> {
    /// Returns the started runs.
    pub fn starts(&self) -> Vec<TypedRecord<'a, HookStarted>> {
        pick!(self.0, MemoryExtractionStarted)
    }

    /// Returns the completed runs.
    pub fn completions(&self) -> Vec<TypedRecord<'a, MemoryExtracted>> {
        pick!(self.0, MemoryExtractionCompleted)
    }

    /// Returns the failed attempts.
    pub fn failures(&self) -> Vec<TypedRecord<'a, HookFailed>> {
        pick!(self.0, MemoryExtractionFailed)
    }

    /// Returns all memory extraction events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "memory_extraction").collect()
    }
}
