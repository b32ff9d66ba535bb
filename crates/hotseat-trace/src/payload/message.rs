//! Payloads of message events.

use std::sync::Arc;

use serde_json::Value;

use super::Origin;
use super::members::members;
use crate::TimeOffset;

members! {
    turn {
        /// `message.user`
        #[derive(Default)]
        UserMessage {
            /// Id of the message in the conversation.
            message_id: Arc<str>,
            /// Text of the message.
            content: String,
            /// Names of the attachments.
            attachments?: Vec<String>,
            /// Options sent to the agent with the message.
            options?: Option<Value>,
        }
        /// `message.assistant`
        #[derive(Default)]
        AssistantMessage {
            /// Id of the message in the conversation.
            message_id: Arc<str>,
            /// The whole text of the message.
            content: Arc<str>,
            /// True if the message also calls tools; absent if unknown when it ends.
            has_tool_use?: Option<bool>,
            /// Arrival of the first part; the event itself marks the end of the message.
            started_us?: Option<TimeOffset>,
            /// Source of the event.
            origin?: Origin,
            /// Sub-agent that wrote the message; absent for the agent itself.
            subagent?: Option<Arc<str>>,
        }
        /// `message.reasoning`
        ReasoningMessage {
            /// Id of the message in the conversation.
            message_id: Arc<str>,
            /// The whole text.
            content: Arc<str>,
            /// Sub-agent that produced the reasoning; absent for the agent itself.
            subagent?: Option<Arc<str>>,
        }
    }
}
