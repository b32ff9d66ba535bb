//! Payloads of language model events.

use std::sync::Arc;

use super::ErrorInfo;
use super::members::members;

members! {
    turn {
        /// `llm.call.started`
        LlmCallStarted {
            /// The model profile that answers.
            model_profile_id: Arc<str>,
            /// Estimated size of the request, in tokens.
            input_tokens: u64,
            /// Number of the call within the turn, from 1.
            call_no: u32,
            /// Attempt at this call, from 1.
            attempt: u32,
            /// Number of messages in the request.
            message_count: u32,
            /// Number of tools offered.
            tool_count: u32,
        }
        /// `llm.call.completed`
        LlmCallCompleted {
            /// Number of the call within the turn, from 1.
            call_no: u32,
            /// Size of the request in tokens, if the model reported it.
            input_tokens?: Option<u64>,
            /// Size of the reply in tokens.
            output_tokens: u64,
            /// Tokens of the request that were read from a cache.
            cached_tokens?: Option<u64>,
            /// True if a provider did not report its tokens, or only some: they are unknown.
            usage_unreported?: bool,
            /// True if the reply calls tools.
            has_tool_use: bool,
            /// Stop reason of the reply.
            stop_reason: Arc<str>,
            /// Duration of the call in milliseconds.
            duration_ms: u64,
        }
        /// `llm.call.failed`
        LlmCallFailed {
            /// Number of the call within the turn, from 1.
            call_no: u32,
            /// Attempt at this call, from 1.
            attempt: u32,
            /// Error of the call.
            error: ErrorInfo,
            /// True if another attempt follows.
            will_retry: bool,
        }
        /// `llm.fault_injected`
        LlmFaultInjected {
            /// Number of the call within the turn, from 1.
            call_no: u32,
            /// Name of the served model.
            model: Arc<str>,
            /// The fault, for instance `http 503`.
            fault: Arc<str>,
            /// Index of the fault among those of the model, from 0.
            rule: usize,
        }
    }
}
