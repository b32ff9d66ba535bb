//! Payloads of memory events.

use std::sync::Arc;

use super::members::members;

members! {
    loose {
        /// `memory.written`
        MemoryWritten {
            /// Agent that owns the memory.
            agent_id: Arc<str>,
            /// Id of the memory.
            memory_id: Arc<str>,
            /// Kind of the memory.
            kind: Arc<str>,
            /// Text of the memory.
            content: String,
        }
        /// `memory.read`, `memory.deleted`
        MemoryTouched {
            /// Agent that owns the memory.
            agent_id: Arc<str>,
            /// Id of the memory.
            memory_id: Arc<str>,
        }
        /// `memory.searched`
        MemorySearched {
            /// Agent that owns the memory.
            agent_id: Arc<str>,
            /// Search query; empty if all memories were listed.
            query: String,
            /// Ids of the memories found, best match first.
            found: Vec<Arc<str>>,
        }
    }
}
