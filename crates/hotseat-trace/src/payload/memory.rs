//! Members of events about an agent's memory.

use std::sync::Arc;

use super::members::members;

members! {
    loose {
        /// `memory.written`
        MemoryWritten {
            /// Whose memory.
            agent_id: Arc<str>,
            /// The record.
            memory_id: Arc<str>,
            /// Its kind.
            kind: Arc<str>,
            /// What it says.
            content: String,
        }
        /// `memory.read`, `memory.deleted`
        MemoryTouched {
            /// Whose memory.
            agent_id: Arc<str>,
            /// The record.
            memory_id: Arc<str>,
        }
        /// `memory.searched`
        MemorySearched {
            /// Whose memory.
            agent_id: Arc<str>,
            /// What was asked; empty where everything was listed.
            query: String,
            /// The records found, best first.
            found: Vec<Arc<str>>,
        }
    }
}
