//! What a call cost.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{Message, Reply, Request, ToolCall};

/// The tokens of one call, or the sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request, those from a cache included.
    pub input_tokens: u64,
    /// Tokens of the reply, reasoning included.
    pub output_tokens: u64,
    /// Tokens of the request that the provider had in a cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// The provider gave no figures and these are an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    /// Figures for a provider that gives none: one token for four bytes of text, rounded up, the same for the same
    /// request and reply. Good enough to see growth, not to pay by.
    pub fn estimate(request: &Request, reply: &Reply) -> Self {
        let system = request.system.as_deref().map_or(0, str::len);
        let messages: usize = request.messages.iter().map(message_bytes).sum();
        let tools: usize = request.tools.iter().map(tool_bytes).sum();
        let said = reply.text.len() + reply.reasoning.len();
        let called: usize = reply.tool_calls.iter().map(call_bytes).sum();
        Usage {
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

fn message_bytes(message: &Message) -> usize {
    let calls: usize = message.tool_calls().iter().map(call_bytes).sum();
    message.text().len() + calls
}

fn tool_bytes(tool: &super::Tool) -> usize {
    tool.name.len() + tool.description.len() + tool.input_schema.to_string().len()
}

fn call_bytes(call: &ToolCall) -> usize {
    call.name.len() + call.arguments.to_string().len()
}

impl AddAssign for Usage {
    /// The sum; an estimate if either is one.
    fn add_assign(&mut self, other: Usage) {
        *self = Usage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            estimated: self.estimated || other.estimated,
        };
    }
}
