//! Shapes of assertion blocks.

use crate::cases::limits::{MILLISECONDS, TIMES, TOKENS};
use hotseat_document::{Field, Kind, Shape};

const PATTERNS: Kind = Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]);
const NAMES: Kind = Kind::List(&Kind::NonEmptyText);
/// Patterns for arguments, and numbers and booleans that arguments equal.
pub(in crate::cases) const ARGUMENT_PATTERNS: Kind =
    Kind::Map(&Kind::OneOf(&[Kind::Pattern, Kind::Number, Kind::Bool]));

/// Shape of an assertion block. All assertions must pass.
pub static ASSERT: Shape = Shape {
    name: "Assert",
    doc: "Assertions, all of which must pass. Lists add to inherited ones, limits replace them, `false` discards them.",
    fields: &[
        Field::optional(
            "tools",
            Kind::OneOf(&[Kind::False, Kind::Shape(&TOOLS)]),
            "Assertions about tool calls.",
        ),
        Field::optional(
            "timing",
            Kind::OneOf(&[Kind::False, Kind::Shape(&TIMING)]),
            "Time limits of the turn or conversation.",
        ),
        Field::optional(
            "budget",
            Kind::OneOf(&[Kind::False, Kind::Shape(&BUDGET)]),
            "Usage limits of the turn or conversation.",
        ),
        Field::optional(
            "text",
            Kind::OneOf(&[Kind::False, Kind::Shape(&TEXT)]),
            "Assertions about the agent's text.",
        ),
    ],
};

/// Shape of assertions about tool calls.
pub static TOOLS: Shape = Shape {
    name: "Tools",
    doc: "Assertions about tool calls. Tool names are compared exactly.",
    fields: &[
        Field::optional("forbid", NAMES, "Tools that must not be called."),
        Field::optional(
            "require",
            Kind::List(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&REQUIRE)])),
            "Tools that must be called: names, or mappings with conditions. Each entry is evaluated separately.",
        ),
        Field::optional(
            "forbid_calls",
            Kind::List(&Kind::Shape(&FORBID_CALL)),
            "Calls that must not be made.",
        ),
    ],
};

/// The MCP server that a call must reach.
pub const SERVER: Field = Field::optional(
    "server",
    Kind::NonEmptyText,
    "Only calls that this MCP server of the test received: a name under `mcp`.",
);

/// Shape of a required tool call.
pub static REQUIRE: Shape = Shape {
    name: "Require",
    doc: "A required tool call. Calls that match `args_match` and `result_match` are counted.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Name of the tool."),
        SERVER,
        Field::optional("count", Kind::Shape(&COUNT), "Number of calls. Default: at least one."),
        Field::optional(
            "args_match",
            ARGUMENT_PATTERNS,
            "Patterns by argument; a number or boolean is compared by value. Paths select nested values: `cart.items.0.sku`.",
        ),
        Field::optional(
            "args_not_match",
            ARGUMENT_PATTERNS,
            "No call that matches `args_match` may have an argument that matches one of these.",
        ),
        Field::optional(
            "result_match",
            PATTERNS,
            "Patterns for the result; objects are matched as compact JSON.",
        ),
        Field::optional(
            "result_not_match",
            PATTERNS,
            "No call that matches `args_match` may have a matching result.",
        ),
        Field::optional(
            "after",
            Kind::NonEmptyText,
            "Each counted call must start after a call of this tool has started. With its own name: only calls after the first one count.",
        ),
    ],
};

/// Shape of a number of calls.
pub static COUNT: Shape = Shape {
    name: "Count",
    doc: "A number of calls: `exact`, or `min` and `max`. `max` alone also allows zero calls.",
    fields: &[
        Field::optional("exact", TIMES, "Exact number; 0 means never."),
        Field::optional("min", TIMES, "Minimum number."),
        Field::optional("max", TIMES, "Maximum number."),
    ],
};

/// Shape of a forbidden call.
pub static FORBID_CALL: Shape = Shape {
    name: "ForbidCall",
    doc: "A forbidden call: one that matches all keys.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Name of the tool."),
        SERVER,
        Field::optional("args_match", ARGUMENT_PATTERNS, "Patterns by argument; all must match."),
        Field::optional(
            "result_match",
            PATTERNS,
            "Patterns for the result. A call without a result never matches.",
        ),
    ],
};

/// Shape of time limits.
pub static TIMING: Shape = Shape {
    name: "Timing",
    doc: "Time limits, measured on a monotonic clock. Limits are inclusive.",
    fields: &[
        Field::optional(
            "max_duration_ms",
            MILLISECONDS,
            "Duration of the turn, or of the whole conversation. A turn is aborted at the limit.",
        ),
        Field::optional(
            "max_gap_ms",
            MILLISECONDS,
            "Idle time between two tool calls. A running tool is not idle.",
        ),
        Field::optional(
            "max_idle_ms",
            MILLISECONDS,
            "Idle time between two tool calls, before the first and after the last; without a call, the whole time.",
        ),
    ],
};

/// Shape of usage limits.
static BUDGET: Shape = Shape {
    name: "Budget",
    doc: "Usage limits of the turn, or of the whole conversation. Limits are inclusive. The check errors if usage is \
          not reported.",
    fields: &[
        Field::optional(
            "max_tokens",
            TOKENS,
            "Tokens of requests and replies, as reported by agent and models.",
        ),
        Field::optional(
            "max_cost",
            Kind::Number,
            "Cost of the tokens, by the prices of the project's connectors.",
        ),
        Field::optional("max_tool_calls", TIMES, "Number of tool calls."),
    ],
};

/// Shape of assertions about text.
pub static TEXT: Shape = Shape {
    name: "Text",
    doc: "Assertions about the agent's text. Several messages are joined by line breaks; patterns match anywhere.",
    fields: &[
        Field::optional("must_match", PATTERNS, "All of these patterns must match."),
        Field::optional("must_not_match", PATTERNS, "None of these patterns may match."),
        Field::optional(
            "with_tool_calls",
            Kind::Choice(&["forbid"]),
            "`forbid`: no message may contain both text and tool calls. The assertion fails if the agent does not report which message makes a call.",
        )
        .other_names(&["beside_calls"]),
    ],
};
