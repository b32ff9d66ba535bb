//! Memory events.

use super::view::picks;
use super::{ConversationView, TypedRecord};
use crate::{MemorySearched, MemoryTouched, MemoryWritten};

/// Memory events.
#[derive(Debug, Clone)]
pub struct MemoryEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> MemoryEvents<'a> {
    picks! {
        /// Returns the written memories.
        written: MemoryWritten = MemoryWritten;
        /// Returns the memories read.
        read: MemoryTouched = MemoryRead;
        /// Returns the deleted memories.
        deleted: MemoryTouched = MemoryDeleted;
        /// Returns the searches.
        searched: MemorySearched = MemorySearched;
    }
}
