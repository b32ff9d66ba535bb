//! Messages of a request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelReply;

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

/// A tool call requested by a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelToolCall {
    /// Id of the call, to which the result refers.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments: an object, `{}` if the model gave none. Invalid JSON is kept as a string, which no tool
    /// schema accepts.
    pub arguments: Value,
}

/// A tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelToolResult {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// The result. Strings are sent unchanged, other values as JSON.
    pub content: Value,
    /// True if the tool failed; `content` then holds the error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
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
        ModelMessage::Assistant { text: reply.text.clone(), tool_calls: reply.tool_calls.clone() }
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

impl ModelToolCall {
    /// Returns the arguments as a model writes them: JSON, or the original text if it was not JSON.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) if !parses_as_arguments(text) => text.clone(),
            arguments => arguments.to_string(),
        }
    }
}

/// Returns true if a text would be parsed as arguments, so that it must be quoted to stay a string.
fn parses_as_arguments(text: &str) -> bool {
    text.trim().is_empty() || serde_json::from_str::<Value>(text).is_ok()
}

impl ModelToolResult {
    /// Returns the content as sent: strings unchanged, other values as JSON.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match &self.content {
            Value::String(text) => text.into(),
            content => content.to_string().into(),
        }
    }
}
