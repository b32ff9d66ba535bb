//! The two workflows that belong to every turn: before a model call, and at the end.

use super::view::pick;
use super::{Typed, View};
use crate::{ContextAssembled, HookFailed, HookStarted, MemoryExtracted, Record};

/// Context assembly events.
#[derive(Debug, Clone)]
pub struct ContextAssembly<'a>(pub(super) View<'a>);

/// Memory extraction events.
#[derive(Debug, Clone)]
pub struct MemoryExtraction<'a>(pub(super) View<'a>);

impl<'a> ContextAssembly<'a> {
    /// Where it was started.
    pub fn starts(&self) -> Vec<Typed<'a, HookStarted>> {
        pick!(self.0, ContextAssemblyStarted)
    }

    /// Where it brought a request.
    pub fn completions(&self) -> Vec<Typed<'a, ContextAssembled>> {
        pick!(self.0, ContextAssemblyCompleted)
    }

    /// Where an attempt failed.
    pub fn failures(&self) -> Vec<Typed<'a, HookFailed>> {
        pick!(self.0, ContextAssemblyFailed)
    }

    /// All three kinds, of one turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a Record> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "context_assembly").collect()
    }
}

impl<'a> MemoryExtraction<'a> {
    /// Where it was started.
    pub fn starts(&self) -> Vec<Typed<'a, HookStarted>> {
        pick!(self.0, MemoryExtractionStarted)
    }

    /// Where it was done.
    pub fn completions(&self) -> Vec<Typed<'a, MemoryExtracted>> {
        pick!(self.0, MemoryExtractionCompleted)
    }

    /// Where an attempt failed.
    pub fn failures(&self) -> Vec<Typed<'a, HookFailed>> {
        pick!(self.0, MemoryExtractionFailed)
    }

    /// All three kinds, of one turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a Record> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "memory_extraction").collect()
    }
}
