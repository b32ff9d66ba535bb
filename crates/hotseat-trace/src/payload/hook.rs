//! Payloads of context assembly and memory extraction events.

use std::sync::Arc;

use super::ErrorInfo;
use super::members::members;

members! {
    turn {
        /// `context_assembly.started`, `memory_extraction.started`
        HookStarted {
            /// The workflow.
            workflow_id: Arc<str>,
            /// Run of the workflow.
            run_id: Arc<str>,
            /// The attempt, from 1.
            attempt: u32,
        }
        /// `context_assembly.completed`
        ContextAssembled {
            /// Run that assembled the context.
            run_id: Arc<str>,
            /// Estimated size of the request, in tokens.
            token_count: u64,
        }
        /// `memory_extraction.completed`
        MemoryExtracted {
            /// Run that extracted the memory.
            run_id: Arc<str>,
        }
        /// `context_assembly.failed`, `memory_extraction.failed`
        HookFailed {
            /// The run that failed.
            run_id: Arc<str>,
            /// Error of the run.
            error: ErrorInfo,
            /// The attempt, from 1.
            attempt: u32,
            /// True if there are no further attempts.
            retries_exhausted: bool,
        }
    }
}
