//! Token usage of a call.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{ModelMessage, ModelReply, ModelRequest, ModelToolCall};

/// Token counts of one call, or a sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens of the request, including cached ones.
    pub input_tokens: u64,
    /// Tokens of the reply, including reasoning.
    pub output_tokens: u64,
    /// Tokens of the request that were read from a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// True if the provider sent no counts and these are an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl TokenUsage {
    /// Estimates the usage: one token per four bytes of text, rounded up, deterministic. Suitable for
    /// spotting growth, not for billing.
    pub fn estimate(request: &ModelRequest, reply: &ModelReply) -> Self {
        let system = request.system.as_deref().map_or(0, str::len);
        let messages: usize = request.messages.iter().map(message_bytes).sum();
        let tools: usize = request.tools.iter().map(tool_bytes).sum();
        let said = reply.text.len() + reply.reasoning.len();
        let called: usize = reply.tool_calls.iter().map(call_bytes).sum();
        TokenUsage {
            input_tokens: tokens(system + messages + tools),
            output_tokens: tokens(said + called),
            cached_tokens: 0,
            estimated: true,
        }
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

fn message_bytes(message: &ModelMessage) -> usize {
    let calls: usize = message.tool_calls().iter().map(call_bytes).sum();
    message.text().len() + calls
}

fn tool_bytes(tool: &super::ModelTool) -> usize {
    tool.name.len() + tool.description.len() + tool.input_schema.to_string().len()
}

fn call_bytes(call: &ModelToolCall) -> usize {
    call.name.len() + call.arguments.to_string().len()
}

impl AddAssign for TokenUsage {
    /// Returns the sum; an estimate if either is one.
    fn add_assign(&mut self, other: TokenUsage) {
        *self = TokenUsage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            estimated: self.estimated || other.estimated,
        };
    }
}
