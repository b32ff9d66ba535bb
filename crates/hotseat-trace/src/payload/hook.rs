//! Members of context assembly and memory extraction events.

use std::sync::Arc;

use super::ErrorInfo;
use super::members::members;

members! {
    turn {
        /// `context_assembly.started`, `memory_extraction.started`
        HookStarted {
            /// The workflow.
            workflow_id: Arc<str>,
            /// This run of it.
            run_id: Arc<str>,
            /// The attempt, from 1.
            attempt: u32,
        }
        /// `context_assembly.completed`
        ContextAssembled {
            /// The run that brought it.
            run_id: Arc<str>,
            /// An estimate of the request's size.
            token_count: u64,
        }
        /// `memory_extraction.completed`
        MemoryExtracted {
            /// The run that did it.
            run_id: Arc<str>,
        }
        /// `context_assembly.failed`, `memory_extraction.failed`
        HookFailed {
            /// The run that failed.
            run_id: Arc<str>,
            /// Why.
            error: ErrorInfo,
            /// The attempt, from 1.
            attempt: u32,
            /// Whether no further attempt is made.
            retries_exhausted: bool,
        }
    }
}
