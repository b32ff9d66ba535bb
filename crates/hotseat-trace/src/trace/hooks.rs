//! Events of the two hook workflows of every turn: context assembly and memory extraction.

use super::view::picks;
use super::{ConversationView, TypedRecord};
use crate::{ContextAssembled, EventRecord, HookFailed, HookStarted, MemoryExtracted};

/// Context assembly events.
#[derive(Debug, Clone)]
pub struct ContextAssemblyEvents<'a>(pub(super) ConversationView<'a>);

/// Memory extraction events.
#[derive(Debug, Clone)]
pub struct MemoryExtractionEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> ContextAssemblyEvents<'a> {
    picks! {
        /// Returns the started runs.
        starts: HookStarted = ContextAssemblyStarted;
        /// Returns the completed runs.
        completions: ContextAssembled = ContextAssemblyCompleted;
        /// Returns the failed attempts.
        failures: HookFailed = ContextAssemblyFailed;
    }

    /// Returns all context assembly events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "context_assembly").collect()
    }
}

impl<'a> MemoryExtractionEvents<'a> {
    picks! {
        /// Returns the started runs.
        starts: HookStarted = MemoryExtractionStarted;
        /// Returns the completed runs.
        completions: MemoryExtracted = MemoryExtractionCompleted;
        /// Returns the failed attempts.
        failures: HookFailed = MemoryExtractionFailed;
    }

    /// Returns all memory extraction events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "memory_extraction").collect()
    }
}
