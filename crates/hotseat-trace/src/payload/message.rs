//! Members of message events.

use std::sync::Arc;

use serde_json::Value;

use super::Origin;
use super::members::members;
use crate::Offset;

members! {
    turn {
        /// `message.user`
        UserMessage {
            /// Id of the message in the conversation.
            message_id: Arc<str>,
            /// What was said.
            content: String,
            /// What was attached, as it is called.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            attachments: Vec<String>,
            /// What the agent was told beside it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            options: Option<Value>,
        }
        /// `message.assistant`
        AssistantMessage {
            /// Id of the message in the conversation.
            message_id: Arc<str>,
            /// The whole text of the message.
            content: String,
            /// Whether the same message called tools; absent where that is not known when it ends.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            has_tool_use: Option<bool>,
            /// When its first part arrived; the event itself marks the end of the message.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            started_us: Option<Offset>,
            /// Where it was seen.
            #[serde(default, skip_serializing_if = "Origin::is_stream")]
            origin: Origin,
            /// The sub-agent that said it; absent for the agent itself.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            subagent: Option<Arc<str>>,
        }
        /// `message.reasoning`
        ReasoningMessage {
            /// Id of the message in the conversation.
            message_id: Arc<str>,
            /// The whole text.
            content: String,
            /// The sub-agent that thought it; absent for the agent itself.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            subagent: Option<Arc<str>>,
        }
    }
}
