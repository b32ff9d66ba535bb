//! Token usage of a call.

use std::ops::AddAssign;

use hotseat_trace::optional_members;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

optional_members! {
    /// Token counts of one call, or a sum of several.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct TokenUsage {
        /// Tokens of the request, including cached ones.
        pub input_tokens: u64,
        /// Tokens of the reply, including reasoning.
        pub output_tokens: u64,
        /// Tokens of the request that were read from a cache.
        pub cached_tokens?: u64,
        /// True if the provider sent no counts and these are an estimate.
        pub estimated?: bool,
        /// True if a provider was to send counts and did not, or only some: the counts do not decide anything.
        pub unreported?: bool,
    }
}

impl TokenUsage {
    /// Returns the counts as the member `usage` of a chat completion.
    pub fn to_completion(self) -> Value {
        json!({
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens.saturating_add(self.output_tokens),
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        })
    }
}

impl AddAssign for TokenUsage {
    /// Returns the sum; an estimate if either is one.
    fn add_assign(&mut self, other: TokenUsage) {
        *self = TokenUsage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            estimated: self.estimated || other.estimated,
            unreported: self.unreported || other.unreported,
        };
    }
}
