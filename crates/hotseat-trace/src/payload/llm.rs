//! Members of language model events.

use std::sync::Arc;

use super::ErrorInfo;
use super::members::members;

members! {
    turn {
        /// `llm.call.started`
        LlmCallStarted {
            /// The model profile that answers.
            model_profile_id: Arc<str>,
            /// The size of the request: an estimate, for nobody has counted yet.
            input_tokens: u64,
            /// The call within the turn, from 1.
            call_no: u32,
            /// The attempt at this call, from 1.
            attempt: u32,
            /// How many messages the request has.
            message_count: u32,
            /// How many tools it offers.
            tool_count: u32,
        }
        /// `llm.call.completed`
        LlmCallCompleted {
            /// The call within the turn, from 1.
            call_no: u32,
            /// The size of the request, where the model has counted.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            input_tokens: Option<u64>,
            /// The size of the reply.
            output_tokens: u64,
            /// Whether it calls tools.
            has_tool_use: bool,
            /// Why the reply ends where it does.
            stop_reason: Arc<str>,
            /// How long the call took, in milliseconds.
            duration_ms: u64,
        }
        /// `llm.call.failed`
        LlmCallFailed {
            /// The call within the turn, from 1.
            call_no: u32,
            /// The attempt at this call, from 1.
            attempt: u32,
            /// Why.
            error: ErrorInfo,
            /// Whether another attempt follows.
            will_retry: bool,
        }
    }
}
