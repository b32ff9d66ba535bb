//! Messages of a request.

use serde::{Deserialize, Serialize};

use super::{ModelReply, ModelToolCall, ModelToolResult, ProviderParts};

/// A message of the conversation that a model continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ModelMessage {
    /// A user message.
    User {
        /// The text.
        text: String,
    },
    /// An earlier reply of the model.
    Assistant {
        /// The text; may be empty if the model only called tools.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// The tool calls, in the order of the reply.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ModelToolCall>,
        /// Parts for the provider of the reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_parts: Option<ProviderParts>,
    },
    /// A tool result.
    Tool(ModelToolResult),
    /// A message of the platform, for instance that an operation has finished. Providers get it as a user
    /// message; rule conditions on the user ignore it.
    Notice {
        /// The text.
        text: String,
    },
}

impl ModelMessage {
    /// Creates a user message.
    pub fn user(text: impl Into<String>) -> Self {
        ModelMessage::User { text: text.into() }
    }

    /// Creates a notice of the platform.
    pub fn notice(text: impl Into<String>) -> Self {
        ModelMessage::Notice { text: text.into() }
    }

    /// Creates the message for an earlier reply.
    pub fn assistant(reply: &ModelReply) -> Self {
        ModelMessage::Assistant {
            text: reply.text.clone(),
            tool_calls: reply.tool_calls.clone(),
            provider_parts: reply.provider_parts.clone(),
        }
    }

    /// Returns the tool calls of an assistant message; empty for others.
    pub fn tool_calls(&self) -> &[ModelToolCall] {
        match self {
            ModelMessage::Assistant { tool_calls, .. } => tool_calls,
            ModelMessage::User { .. } | ModelMessage::Tool(_) | ModelMessage::Notice { .. } => &[],
        }
    }

    /// Returns the text of the message; for a tool result, its content.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            ModelMessage::User { text }
            | ModelMessage::Assistant { text, .. }
            | ModelMessage::Notice { text } => text.into(),
            ModelMessage::Tool(result) => result.text(),
        }
    }
}
