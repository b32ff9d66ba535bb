//! The messages of a request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Reply;

/// One message of the conversation that a model continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the user said.
    User {
        /// The words.
        text: String,
    },
    /// What the model replied earlier.
    Assistant {
        /// The words; may be empty where the model only called tools.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// The calls, in the order in which the model made them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// What a tool answered to a call of the model.
    Tool(ToolResult),
    /// What the platform tells the model and no user said, for instance that an operation has finished. Providers
    /// get it as a message of the user; a rule that asks what the user said passes over it.
    Notice {
        /// The words.
        text: String,
    },
}

/// A call that a model wants made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// What the result refers to.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: an object, `{}` where the model gave none. A model that wrote something that is not JSON gave
    /// a string, which holds what it wrote; no schema of a tool accepts it.
    pub arguments: Value,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The name of the tool.
    pub name: String,
    /// The answer. A string is sent as it is, anything else as JSON.
    pub content: Value,
    /// The tool failed, and `content` says how.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl Message {
    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { text: text.into() }
    }

    /// A notice of the platform.
    pub fn notice(text: impl Into<String>) -> Self {
        Message::Notice { text: text.into() }
    }

    /// A reply, as it stands in the requests after it.
    pub fn assistant(reply: &Reply) -> Self {
        Message::Assistant { text: reply.text.clone(), tool_calls: reply.tool_calls.clone() }
    }

    /// The calls that the model made with this message.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Message::Assistant { tool_calls, .. } => tool_calls,
            Message::User { .. } | Message::Tool(_) | Message::Notice { .. } => &[],
        }
    }

    /// The words of the message; for a tool, of what it answered.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Message::User { text } | Message::Assistant { text, .. } | Message::Notice { text } => {
                text.into()
            }
            Message::Tool(result) => result.text(),
        }
    }
}

impl ToolCall {
    /// The arguments as a model writes them: JSON, or the text that was not JSON.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) if !reads_as_arguments(text) => text.clone(),
            arguments => arguments.to_string(),
        }
    }
}

/// Whether a text is taken for arguments, so that it needs quotes to stay a text.
fn reads_as_arguments(text: &str) -> bool {
    text.trim().is_empty() || serde_json::from_str::<Value>(text).is_ok()
}

impl ToolResult {
    /// The answer as it is sent: a string as it is, anything else as JSON.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match &self.content {
            Value::String(text) => text.into(),
            content => content.to_string().into(),
        }
    }
}
