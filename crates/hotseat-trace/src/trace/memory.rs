//! Memory events.

use super::view::pick;
use super::{ConversationView, TypedRecord};
use crate::{MemorySearched, MemoryTouched, MemoryWritten};

/// Memory events.
#[derive(Debug, Clone)]
pub struct MemoryEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> MemoryEvents<'a> {
    /// Returns the written memories.
    pub fn written(&self) -> Vec<TypedRecord<'a, MemoryWritten>> {
        pick!(self.0, MemoryWritten)
    }

    /// Returns the memories read.
    pub fn read(&self) -> Vec<TypedRecord<'a, MemoryTouched>> {
        pick!(self.0, MemoryRead)
    }

    /// Returns the deleted memories.
    pub fn deleted(&self) -> Vec<TypedRecord<'a, MemoryTouched>> {
        pick!(self.0, MemoryDeleted)
    }

    /// Returns the searches.
    pub fn searched(&self) -> Vec<TypedRecord<'a, MemorySearched>> {
        pick!(self.0, MemorySearched)
    }
}
