//! Requests to a model.

use std::fmt;

use hotseat_trace::optional_members;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ModelMessage, ModelTool, ModelToolResult};

optional_members! {
    /// A call to a language model.
    ///
    /// Model, address and key belong to the [`Model`](crate::Model), so the same request can be answered by a
    /// provider or a script.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct ModelRequest {
        /// Position of the call in the conversation. It is never sent to a provider.
        #[serde(default)]
        pub position: CallPosition,
        /// System prompt.
        pub system?: Option<String>,
        /// The conversation so far, oldest first.
        pub messages: Vec<ModelMessage>,
        /// Tools that the model may call.
        pub tools?: Vec<ModelTool>,
        /// Required format of the reply; free text if None.
        pub response_format?: Option<ResponseFormat>,
        /// Sampling temperature; the provider's default if None.
        pub temperature?: Option<f64>,
        /// Maximum length of the reply in tokens; the model's default if None.
        pub max_tokens?: Option<u32>,
    }
}

/// Logical position of a call in a conversation, independent of timing.
///
/// Parallel turns and agents that call each other reach a model in any order; their positions are always the
/// same.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallPosition {
    /// The conversation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub conversation: String,
    /// Agent that makes the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// Number of the turn within the conversation, from 1.
    #[serde(default)]
    pub turn: u32,
    /// Number of the call within the turn, from 1.
    #[serde(default)]
    pub call: u32,
    /// Attempt at this call, from 1.
    #[serde(default)]
    pub attempt: u32,
}

/// Required JSON format of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseFormat {
    /// Name of the format: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// JSON Schema of the reply.
    pub schema: Value,
    /// True to have the provider enforce the schema where supported. Such a schema requires every member and
    /// allows no others; otherwise it is a hint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

impl ModelRequest {
    /// Returns the text of the last user message.
    pub fn last_user_text(&self) -> Option<&str> {
        self.messages.iter().rev().find_map(|message| match message {
            ModelMessage::User { text } => Some(text.as_str()),
            ModelMessage::Assistant { .. } | ModelMessage::Tool(_) | ModelMessage::Notice { .. } => None,
        })
    }

    /// Returns the messages since the last reply.
    pub fn new_messages(&self) -> &[ModelMessage] {
        let replied =
            self.messages.iter().rposition(|message| matches!(message, ModelMessage::Assistant { .. }));
        &self.messages[replied.map_or(0, |last| last + 1)..]
    }

    /// Returns the results of tool calls since the last reply.
    pub fn new_results(&self) -> Vec<ModelToolResult> {
        let results = self.new_messages().iter().filter_map(|message| match message {
            ModelMessage::Tool(result) => Some(result.clone()),
            ModelMessage::User { .. } | ModelMessage::Assistant { .. } | ModelMessage::Notice { .. } => None,
        });
        results.collect()
    }

    /// Returns the ids and the tools of the calls that have a result since the last user message.
    pub fn answered_calls(&self) -> Vec<(String, String)> {
        let since = self.messages.iter().rev();
        let since = since.take_while(|message| !matches!(message, ModelMessage::User { .. }));
        let answered = since.filter_map(|message| match message {
            ModelMessage::Tool(result) => Some((result.call_id.clone(), result.name.clone())),
            ModelMessage::User { .. } | ModelMessage::Assistant { .. } | ModelMessage::Notice { .. } => None,
        });
        answered.collect()
    }

    /// Returns a deterministic id for a tool call without one: `call_2_1_1` for the first call (`index` 0) of
    /// turn 2, call 1. If the position is unknown, the calls of the conversation are counted: `call_3` after
    /// two others.
    pub fn call_id(&self, index: usize) -> String {
        let CallPosition { turn, call, .. } = self.position;
        if turn > 0 {
            return format!("call_{turn}_{call}_{}", index + 1);
        }
        let earlier: usize = self.messages.iter().map(|message| message.tool_calls().len()).sum();
        format!("call_{}", earlier + index + 1)
    }

    /// Returns the offered tool with this name.
    pub fn tool(&self, name: &str) -> Option<&ModelTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

impl fmt::Display for CallPosition {
    /// Formats the position, for instance `conversation c1, agent clerk, turn 2, call 1`. The attempt is
    /// shown from 2 on; unknown parts are omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.conversation.is_empty() {
            write!(f, "conversation {}, ", self.conversation)?;
        }
        if !self.agent.is_empty() {
            write!(f, "agent {}, ", self.agent)?;
        }
        if self.turn == 0 {
            return f.write_str("a call without a position");
        }
        write!(f, "turn {}, call {}", self.turn, self.call)?;
        if self.attempt > 1 {
            write!(f, ", attempt {}", self.attempt)?;
        }
        Ok(())
    }
}
