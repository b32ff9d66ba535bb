//! What a model replied.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Delta, ToolCall, Usage};

/// A whole reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The words for the user; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What the model says it thought, where the provider shows it. Never part of what it said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The calls that the model wants made, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Why the reply ends where it does.
    pub stop: StopReason,
    /// What the call cost.
    pub usage: Usage,
    /// The model that replied, in the provider's words; for instance a dated version of the one that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Why a reply ends where it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StopReason {
    /// The model was done.
    #[default]
    EndTurn,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The reply reached its longest length; it is cut.
    MaxTokens,
    /// The reply reached a sequence that was to stop it.
    StopSequence,
    /// The model or its provider would not reply.
    Refusal,
    /// A reason that this version does not know, in the provider's words.
    Other(String),
}

impl Reply {
    /// A reply of words alone, with a usage of nothing.
    pub fn text(text: impl Into<String>) -> Self {
        Reply { text: text.into(), ..Reply::default() }
    }

    /// A reply of calls alone, with a usage of nothing.
    pub fn tool_calls(tool_calls: Vec<ToolCall>) -> Self {
        Reply { tool_calls, stop: StopReason::ToolUse, ..Reply::default() }
    }

    /// The reply in pieces, as a provider would stream it: word by word, and each call in two pieces.
    pub fn deltas(&self) -> Vec<Delta> {
        let reasoning = words(&self.reasoning).map(|text| Delta::Reasoning { text: text.to_owned() });
        let said = words(&self.text).map(|text| Delta::Text { text: text.to_owned() });
        let calls = self.tool_calls.iter().enumerate().flat_map(|(index, call)| {
            let started = Delta::ToolCallStarted { index, id: call.id.clone(), name: call.name.clone() };
            [started, Delta::ToolCallArguments { index, text: call.arguments_text() }]
        });
        reasoning.chain(said).chain(calls).collect()
    }
}

/// Each word with the space behind it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

impl StopReason {
    /// The name in recordings, scripts and traces.
    pub fn as_str(&self) -> &str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::ToolUse => "tool_use",
            StopReason::MaxTokens => "max_tokens",
            StopReason::StopSequence => "stop_sequence",
            StopReason::Refusal => "refusal",
            StopReason::Other(name) => name,
        }
    }
}

impl From<String> for StopReason {
    fn from(name: String) -> Self {
        match name.as_str() {
            "end_turn" => StopReason::EndTurn,
            "tool_use" => StopReason::ToolUse,
            "max_tokens" => StopReason::MaxTokens,
            "stop_sequence" => StopReason::StopSequence,
            "refusal" => StopReason::Refusal,
            _ => StopReason::Other(name),
        }
    }
}

impl From<StopReason> for String {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Other(name) => name,
            known => known.as_str().to_string(),
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
