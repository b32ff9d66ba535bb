//! What is asked of a model.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Message, Tool};

/// One call to a language model.
///
/// Which model answers, where it is and with what key belongs to the [`Model`](crate::Model), so the same request
/// can be answered by a provider, by a script or by a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Where in the conversation the call is made. It is never sent to a provider.
    #[serde(default)]
    pub position: Position,
    /// What the model is told about itself before the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// The form that the text of the reply must have; free text if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// How freely the model chooses its words, from 0; the provider's default if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The longest reply, in tokens; the model's default if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// Where in a conversation a call is made: what caused it, not when it happened to be made.
///
/// Parallel turns and agents that call each other reach a model in any order; their positions are always the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The conversation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub conversation: String,
    /// The agent that asks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The turn within the conversation, from 1.
    #[serde(default)]
    pub turn: u32,
    /// The call within the turn, from 1.
    #[serde(default)]
    pub call: u32,
    /// The attempt at this call, from 1: more than one where a caller retries what failed.
    #[serde(default)]
    pub attempt: u32,
}

/// A form that the text of a reply must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseFormat {
    /// A name for the form: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// The JSON Schema of the text, read as JSON.
    pub schema: Value,
    /// The provider is to enforce the schema where it can. Such a schema requires every member and allows no others;
    /// without this, it is advice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

impl Request {
    /// The text of the last message that a user wrote.
    pub fn last_user_text(&self) -> Option<&str> {
        self.messages.iter().rev().find_map(|message| match message {
            Message::User { text } => Some(text.as_str()),
            Message::Assistant { .. } | Message::Tool(_) | Message::Notice { .. } => None,
        })
    }

    /// The messages that came since the model last replied: what the next reply is a reply to.
    pub fn news(&self) -> &[Message] {
        let replied = self.messages.iter().rposition(|message| matches!(message, Message::Assistant { .. }));
        &self.messages[replied.map_or(0, |last| last + 1)..]
    }

    /// An id for a tool call where the model gives none, the same for the same request: `call_2_1_1` for the first
    /// call (`index` 0) of the reply to turn 2, call 1. Where the position is not known, the calls of the
    /// conversation are counted: `call_3` after two others.
    pub fn call_id(&self, index: usize) -> String {
        let Position { turn, call, .. } = self.position;
        if turn > 0 {
            return format!("call_{turn}_{call}_{}", index + 1);
        }
        let earlier: usize = self.messages.iter().map(|message| message.tool_calls().len()).sum();
        format!("call_{}", earlier + index + 1)
    }

    /// The offered tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

impl fmt::Display for Position {
    /// For instance `conversation c1, agent clerk, turn 2, call 1`; the attempt is named from the second on, and what
    /// is not known is left out.
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
