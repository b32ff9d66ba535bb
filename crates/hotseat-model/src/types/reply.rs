//! Replies of a model.

use std::fmt;

use hotseat_trace::optional_members;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ModelToolCall, ReplyDelta, TokenUsage};

optional_members! {
    /// A complete reply.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ModelReply {
        /// Text for the user; may be empty.
        pub text?: String,
        /// Reasoning, if the provider shows it; not part of `text`.
        pub reasoning?: String,
        /// Tool calls, in the model's order.
        pub tool_calls?: Vec<ModelToolCall>,
        /// Stop reason.
        pub stop: StopReason,
        /// Token usage of the call.
        pub usage: TokenUsage,
        /// Model that replied, as named by the provider; for instance a dated version of the requested one.
        pub model?: Option<String>,
        /// Parts of a reply with tool calls that are sent back to the provider.
        pub provider_parts?: Option<ProviderParts>,
    }
}

/// Parts of a reply that only its provider understands. Providers may reject the results of tools without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderParts {
    /// Members of a message of chat completions, such as `reasoning_content`.
    ChatMembers(Map<String, Value>),
    /// Blocks with the signed reasoning of Anthropic's messages API.
    ThinkingBlocks(Vec<Value>),
}

/// Reason why a reply ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StopReason {
    /// The model finished.
    #[default]
    EndTurn,
    /// The model waits for the results of its tool calls.
    ToolUse,
    /// The reply reached the maximum length and is truncated.
    MaxTokens,
    /// The reply reached a stop sequence.
    StopSequence,
    /// The model or its provider refused to reply.
    Refusal,
    /// A reason unknown to this version, as sent by the provider.
    Other(String),
}

impl ModelReply {
    /// Creates a reply with text only and no usage.
    pub fn text(text: impl Into<String>) -> Self {
        ModelReply { text: text.into(), ..ModelReply::default() }
    }

    /// Creates a reply with tool calls only and no usage.
    pub fn tool_calls(tool_calls: Vec<ModelToolCall>) -> Self {
        ModelReply { tool_calls, stop: StopReason::ToolUse, ..ModelReply::default() }
    }

    /// Returns the reply in pieces, as streamed by a provider: word by word, and each call in two pieces.
    pub fn deltas(&self) -> Vec<ReplyDelta> {
        let reasoning = words(&self.reasoning).map(|text| ReplyDelta::Reasoning { text: text.to_owned() });
        let said = words(&self.text).map(|text| ReplyDelta::Text { text: text.to_owned() });
        let calls = self.tool_calls.iter().enumerate().flat_map(|(index, call)| {
            let started = ReplyDelta::ToolCallStarted { index, id: call.id.clone(), name: call.name.clone() };
            [started, ReplyDelta::ToolCallArguments { index, text: call.arguments_text() }]
        });
        reasoning.chain(said).chain(calls).collect()
    }
}

/// Splits a text into words, each with the space behind it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

impl StopReason {
    /// Reads the reason that a provider gives for the end of a reply, in letters of any case, with words separated by `_`, `-`,
    /// spaces or nothing. Gemini puts the name of a filter before some reasons: `function_call_filter: MALFORMED_FUNCTION_CALL`.
    pub fn from_provider(name: &str) -> StopReason {
        match bare_reason(name).as_str() {
            "stop" | "endturn" | "eos" | "eostoken" | "complete" => StopReason::EndTurn,
            "toolcalls" | "toolcall" | "functioncall" | "tooluse" => StopReason::ToolUse,
            "length" | "maxtokens" | "maxoutputtokens" | "modellength" | "modelcontextwindowexceeded" => {
                StopReason::MaxTokens
            }
            "stopsequence" => StopReason::StopSequence,
            "contentfilter"
            | "contentfiltered"
            | "guardrailintervened"
            | "refusal"
            | "sensitive"
            | "safety"
            | "imagesafety"
            | "recitation"
            | "blocklist"
            | "prohibitedcontent"
            | "errortoxic"
            | "spii" => StopReason::Refusal,
            _ => StopReason::Other(name.to_string()),
        }
    }

    /// Returns the reason that counts of those that a reply reports one after another, as the provider names them. A reply that
    /// was cut stays so, whatever the stream adds; a failure ends any reply.
    pub fn later_name<T: AsRef<str>>(known: Option<T>, new: Option<T>) -> Option<T> {
        let is_regular = |name: &T| StopReason::from_provider(name.as_ref()) == StopReason::EndTurn;
        let is_failure = |name: &T| StopReason::from_provider(name.as_ref()).is_failure();
        match known.as_ref().is_none_or(is_regular) || new.as_ref().is_some_and(is_failure) {
            true => new.or(known),
            false => known,
        }
    }

    /// Returns true if the reason says that the provider failed or gave up, so the reply is incomplete. Providers have many
    /// names for it, so a part of the name decides, such as `error` in `server_error`.
    pub fn is_failure(&self) -> bool {
        let StopReason::Other(name) = self else { return false };
        let reason = bare_reason(name);
        let parts = ["error", "fail", "abort", "cancel", "malformed", "overloaded", "timeout", "timedout"];
        parts.iter().any(|part| reason.contains(part))
            || matches!(
                reason.as_str(),
                "insufficientsystemresource" | "toomanytoolcalls" | "unexpectedtoolcall"
            )
    }

    /// Returns true if the reason says that the reply was stopped where it was, so that its end is missing.
    pub fn is_cut(&self) -> bool {
        matches!(self, StopReason::MaxTokens | StopReason::Refusal) || self.is_unfinished()
    }

    /// Returns true if the reason says that the reply is not finished: the model continues it if it is asked again.
    pub fn is_unfinished(&self) -> bool {
        let StopReason::Other(name) = self else { return false };
        matches!(bare_reason(name).as_str(), "pauseturn" | "incomplete")
    }

    /// Returns the name used in recordings, scripts and traces.
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

/// Returns a reason in lower case, without separators of words and the name of a filter before it.
fn bare_reason(name: &str) -> String {
    let reason = name.rsplit(": ").next().unwrap_or(name);
    reason.replace(['-', '_', ' '], "").to_ascii_lowercase()
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
