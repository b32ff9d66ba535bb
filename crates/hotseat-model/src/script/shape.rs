//! Shapes of script files: the source of validation, JSON Schema and the reference page.

use hotseat_document::{Field, Kind, Shape};

/// Up to one day.
const MILLISECONDS: Kind = Kind::Integer { min: 0, max: 24 * 60 * 60 * 1000 };
const ORDINAL: Kind = Kind::Integer { min: 1, max: u32::MAX as i64 };
const TOKENS: Kind = Kind::Integer { min: 0, max: i64::MAX };
/// `use` of a script.
pub const USE: Kind = Kind::Choice(&["once", "always"]);

/// Names of the failures that a script can simulate.
pub(super) const ERROR_KINDS: &[&str] =
    &["network", "timeout", "rate_limit", "server", "auth", "bad_request", "context_too_long", "decode"];

/// Stop reasons of scripted replies.
const STOP_REASONS: &[&str] = &["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal"];

/// Shape of a script file.
pub static SCRIPT: Shape = Shape {
    name: "Script",
    doc: "A language model that answers from a file: a list of rules. The first rule that matches a request \
          answers; a request without a matching rule is an error. Texts of replies and arguments are templates: \
          `{{ user }}`, `{{ system }}`, `{{ notice }}`, `{{ result }}` (of the tool in `tool_result`, else of \
          the last tool that answered), `{{ results.NAME }}`, `{{ messages }}`, `{{ tools }}`, `{{ conversation }}`, \
          `{{ agent }}`, `{{ turn }}`, `{{ call }}`, `{{ attempt }}`, and the named groups of the patterns. An argument \
          that is a single `{{ … }}` keeps the type of its value.",
    fields: &[
        Field::optional("name", Kind::NonEmptyText, "Name of the model. Default: the name of the file."),
        Field::optional(
            "use",
            USE,
            "How often rules without their own `use` may answer in each conversation.",
        )
        .default("once"),
        Field::required("rules", Kind::NonEmptyList(&Kind::Shape(&RULE)), "The rules, in order."),
    ],
};

/// Shape of a rule.
pub static RULE: Shape = Shape {
    name: "Rule",
    doc: "A rule: conditions and an answer. It needs `reply` or `error`.",
    fields: &[
        Field::optional("name", Kind::NonEmptyText, "A name for messages."),
        Field::optional(
            "when",
            Kind::Shape(&CONDITIONS),
            "Conditions for the rule to answer. Without them the rule matches every request.",
        ),
        Field::optional(
            "expect",
            Kind::Shape(&CONDITIONS),
            "Conditions that every answered request must meet; otherwise the call is an error.",
        ),
        Field::optional(
            "use",
            USE,
            "How often it may answer in each conversation. Default: `use` of the script.",
        ),
        Field::optional("delay_ms", MILLISECONDS, "Duration of the answer in milliseconds.").default("0"),
        Field::optional(
            "reply",
            Kind::OneOf(&[Kind::Text, Kind::Shape(&REPLY)]),
            "The answer: a text, or a mapping.",
        ),
        Field::optional(
            "error",
            Kind::OneOf(&[Kind::Choice(ERROR_KINDS), Kind::Shape(&ERROR)]),
            "The failure instead of an answer: its kind, or a mapping.",
        ),
    ],
};

static CONDITIONS: Shape = Shape {
    name: "Conditions",
    doc: "Conditions on a request. Patterns are regular expressions that may match anywhere in the text.",
    fields: &[
        Field::optional("conversation", Kind::Text, "The id of the conversation."),
        Field::optional("agent", Kind::Text, "The id of the agent that makes the call."),
        Field::optional("turn", ORDINAL, "The number of the turn in the conversation."),
        Field::optional("call", ORDINAL, "The number of the model call in the turn."),
        Field::optional("attempt", ORDINAL, "The number of the attempt at the call."),
        Field::optional("system", Kind::Pattern, "Pattern for the system prompt."),
        Field::optional(
            "user",
            Kind::Pattern,
            "Pattern for the last user message. Without `call`, `tool_result` or `notice`, only if the model has \
             not replied to it yet.",
        ),
        Field::optional("notice", Kind::Pattern, "Pattern for a notice since the last reply."),
        Field::optional(
            "tool_result",
            Kind::OneOf(&[Kind::Pattern, Kind::Shape(&RESULT)]),
            "Pattern for a tool result since the last reply, or a mapping.",
        ),
        Field::optional(
            "offered",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::List(&Kind::NonEmptyText)]),
            "A tool, or several, that must be offered to the model.",
        ),
    ],
};

static RESULT: Shape = Shape {
    name: "ToolResultCondition",
    doc: "Conditions on a tool result.",
    fields: &[
        Field::optional("tool", Kind::NonEmptyText, "The name of the tool."),
        Field::optional("matches", Kind::Pattern, "Pattern for the result, as text."),
        Field::optional(
            "failed",
            Kind::Bool,
            "True if the tool must have failed, false if it must have succeeded. Default: either.",
        ),
    ],
};

static REPLY: Shape = Shape {
    name: "Reply",
    doc: "The answer of the model. It needs `text`, `json` or `tool_calls`; an empty reply is `reply: \"\"`.",
    fields: &[
        Field::optional("text", Kind::Text, "The text, a template."),
        Field::optional(
            "json",
            Kind::Json,
            "A value that is sent as JSON text; the strings in it are templates.",
        ),
        Field::optional("reasoning", Kind::Text, "The reasoning before the text, a template."),
        Field::optional(
            "tool_calls",
            Kind::List(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CALL)])),
            "The tool calls: the name of a tool without arguments, or a mapping.",
        ),
        Field::optional(
            "stop",
            Kind::Choice(STOP_REASONS),
            "The stop reason. Default: `tool_use` with tool calls, otherwise `end_turn`.",
        ),
        Field::optional("usage", Kind::Shape(&USAGE), "The token usage. Default: an estimate."),
    ],
};

pub(super) static CALL: Shape = Shape {
    name: "ToolCall",
    doc: "A tool that the model calls.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "The name of the tool."),
        Field::optional(
            "arguments",
            Kind::OneOf(&[Kind::JsonMap, Kind::Text]),
            "The arguments; the strings in them are templates. A plain string is sent unchanged, as from a model that writes \
             invalid JSON.",
        ),
        Field::optional("id", Kind::NonEmptyText, "The id of the call. Default: made from its position."),
    ],
};

static USAGE: Shape = Shape {
    name: "Usage",
    doc: "The token usage of a call.",
    fields: &[
        Field::optional("input_tokens", TOKENS, "Tokens of the request.").default("0"),
        Field::optional("output_tokens", TOKENS, "Tokens of the reply.").default("0"),
        Field::optional("cached_tokens", TOKENS, "Request tokens read from a cache.").default("0"),
    ],
};

static ERROR: Shape = Shape {
    name: "Error",
    doc: "A failure of a call.",
    fields: &[
        Field::required("kind", Kind::Choice(ERROR_KINDS), "The kind of failure."),
        Field::optional("message", Kind::Text, "The message, a template."),
        Field::optional(
            "status",
            Kind::Integer { min: 100, max: 599 },
            "The HTTP status. Default: the usual status of the kind.",
        ),
        Field::optional(
            "retry_after_ms",
            MILLISECONDS,
            "The delay in milliseconds that the provider requests.",
        ),
        Field::optional("body", Kind::Text, "The body of the response."),
        Field::optional("after", Kind::Text, "Text that arrives before the failure, a template."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::SCRIPT.problems(), Vec::<String>::new());
    }
}
