//! Usage limits: `max_tokens`, `max_cost`, `max_tool_calls`.

use super::block::read_budget;
use super::prelude::*;
use crate::cases::limits::{TIMES, TOKENS};

assertion_type! {
    /// The turn, or the whole conversation, uses at most this number of tokens, as reported by agent and
    /// models. The check errors if usage is not reported.
    MAX_TOKENS "MaxTokens" "max_tokens" {
        /// The maximum allowed.
        required "value" = TOKENS,
    }
    |map, diagnostics| read_limit("max_tokens", map, diagnostics)
}

assertion_type! {
    /// The turn, or the whole conversation, costs at most this, by the prices of the project's connectors.
    /// The check errors if the cost is unknown.
    MAX_COST "MaxCost" "max_cost" {
        /// The maximum allowed.
        required "value" = Kind::Number,
    }
    |map, diagnostics| read_limit("max_cost", map, diagnostics)
}

assertion_type! {
    /// The turn, or the whole conversation, makes at most this number of tool calls.
    MAX_TOOL_CALLS "MaxToolCalls" "max_tool_calls" {
        /// The maximum allowed.
        required "value" = TIMES,
    }
    |map, diagnostics| read_limit("max_tool_calls", map, diagnostics)
}

fn read_limit(name: &str, map: &MapView<'_>, diagnostics: &mut Diagnostics) -> Option<Vec<Check>> {
    check_at(map, "value", CheckKind::UsageBudget(read_budget(name, map.get("value")?, diagnostics)?))
}
