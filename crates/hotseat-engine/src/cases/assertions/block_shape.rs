//! Shapes of assertion blocks.

use crate::cases::limits::{MILLISECONDS, TIMES, TOKENS};
use hotseat_document::{Kind, document_shape};

const PATTERNS: Kind = Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]);
const NAMES: Kind = Kind::NonEmptyList(&Kind::NonEmptyText);
/// Patterns for arguments, and numbers and booleans that arguments equal.
pub(in crate::cases) const ARGUMENT_PATTERNS: Kind =
    Kind::Map(&Kind::OneOf(&[Kind::Pattern, Kind::Number, Kind::Bool]));

document_shape! {
    /// Assertions, all of which must pass. Lists add to inherited ones, limits replace them, `false` discards
    /// them.
    pub static ASSERT "Assert" {
        /// Assertions about tool calls.
        optional "tools" = Kind::OneOf(&[Kind::False, Kind::Shape(&TOOLS)]),
        /// Time limits of the turn or conversation.
        optional "timing" = Kind::OneOf(&[Kind::False, Kind::Shape(&TIMING)]),
        /// Usage limits of the turn or conversation.
        optional "budget" = Kind::OneOf(&[Kind::False, Kind::Shape(&BUDGET)]),
        /// Assertions about the agent's text.
        optional "text" = Kind::OneOf(&[Kind::False, Kind::Shape(&TEXT)]),
    }

    /// Assertions about tool calls. Tool names are compared exactly.
    pub static TOOLS "Tools" {
        /// Tools that must not be called.
        optional "forbid" = NAMES,
        /// Tools that must be called: names, or mappings with conditions. Each entry is evaluated separately.
        optional "require" = Kind::NonEmptyList(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&REQUIRE)])),
        /// Calls that must not be made.
        optional "forbid_calls" = Kind::NonEmptyList(&Kind::Shape(&FORBID_CALL)),
    }
}

/// A number of calls, or its limits.
pub(super) const COUNT_KIND: Kind = Kind::OneOf(&[TIMES, Kind::Shape(&COUNT)]);

document_shape! {
    /// Only calls that this MCP server of the test received: a name under `mcp`.
    pub const SERVER: optional "server" = Kind::NonEmptyText,
}

document_shape! {
    /// A required tool call. Calls that match `args_match` and `result_match` are counted.
    pub static REQUIRE "Require" {
        /// Name of the tool.
        required "name" = Kind::NonEmptyText,
        ..SERVER,
        /// Number of calls; a number alone is the exact one. Default: at least one.
        optional "count" = COUNT_KIND,
        /// Patterns by argument; a number or boolean is compared by value. Paths select nested values:
        /// `cart.items.0.sku`.
        optional "args_match" = ARGUMENT_PATTERNS,
        /// No call that matches `args_match` may have an argument that matches one of these.
        optional "args_not_match" = ARGUMENT_PATTERNS,
        /// Patterns for the result; objects are matched as compact JSON.
        optional "result_match" = PATTERNS,
        /// No call that matches `args_match` may have a matching result.
        optional "result_not_match" = PATTERNS,
        /// Each counted call must start after a call of this tool has started. With its own name: there must be
        /// a second call.
        optional "after" = Kind::NonEmptyText,
    }

    /// A number of calls: `exact`, or `min` and `max`. `max` alone also allows zero calls.
    pub static COUNT "Count" {
        /// Exact number; 0 means never.
        optional "exact" = TIMES,
        /// Minimum number.
        optional "min" = TIMES,
        /// Maximum number.
        optional "max" = TIMES,
    }

    /// A forbidden call: one that matches all keys.
    pub static FORBID_CALL "ForbidCall" {
        /// Name of the tool.
        required "name" = Kind::NonEmptyText,
        ..SERVER,
        /// Patterns by argument; all must match.
        optional "args_match" = ARGUMENT_PATTERNS,
        /// Patterns for the result. A call without a result never matches.
        optional "result_match" = PATTERNS,
    }

    /// Time limits, measured on a monotonic clock. Limits are inclusive.
    pub static TIMING "Timing" {
        /// Duration of the turn, or of all turns of the conversation together. A turn is aborted at the limit.
        optional "max_duration_ms" = MILLISECONDS,
        /// Idle time between two tool calls. A running tool is not idle.
        optional "max_gap_ms" = MILLISECONDS,
        /// Idle time between two tool calls, before the first and after the last; without a call, the whole
        /// time.
        optional "max_idle_ms" = MILLISECONDS,
    }

    /// Usage limits of the turn, or of the whole conversation. Limits are inclusive. The check errors if
    /// usage is not reported.
    static BUDGET "Budget" {
        /// Tokens of requests and replies, as reported by agent and models.
        optional "max_tokens" = TOKENS,
        /// Cost of the tokens, by the prices of the project's connectors.
        optional "max_cost" = Kind::Number,
        /// Number of tool calls.
        optional "max_tool_calls" = TIMES,
    }

    /// Assertions about the agent's text. Several messages are joined by line breaks; patterns match
    /// anywhere.
    pub static TEXT "Text" {
        /// All of these patterns must match.
        optional "must_match" = PATTERNS,
        /// None of these patterns may match.
        optional "must_not_match" = PATTERNS,
        /// `forbid`: no message may contain both text and tool calls. The assertion fails if the agent does
        /// not report which message makes a call.
        optional "with_tool_calls" = Kind::Choice(&["forbid"]), other_names &["beside_calls"],
    }
}
