//! What was done with the memories of agents.

use super::view::pick;
use super::{Typed, View};
use crate::{MemorySearched, MemoryTouched, MemoryWritten};

/// Memory events.
#[derive(Debug, Clone)]
pub struct MemoryEvents<'a>(pub(super) View<'a>);

impl<'a> MemoryEvents<'a> {
    /// Records that were written.
    pub fn written(&self) -> Vec<Typed<'a, MemoryWritten>> {
        pick!(self.0, MemoryWritten)
    }

    /// Records that were read.
    pub fn read(&self) -> Vec<Typed<'a, MemoryTouched>> {
        pick!(self.0, MemoryRead)
    }

    /// Records that were deleted.
    pub fn deleted(&self) -> Vec<Typed<'a, MemoryTouched>> {
        pick!(self.0, MemoryDeleted)
    }

    /// Searches.
    pub fn searched(&self) -> Vec<Typed<'a, MemorySearched>> {
        pick!(self.0, MemorySearched)
    }
}
