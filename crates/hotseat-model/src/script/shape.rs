//! What may be written in a script, as data: checks, JSON Schema and reference page come from here.

use hotseat_document::{Field, Kind, Shape};

/// The longest time that can be written: a day.
const MILLISECONDS: Kind = Kind::Integer { min: 0, max: 24 * 60 * 60 * 1000 };
const ORDINAL: Kind = Kind::Integer { min: 1, max: u32::MAX as i64 };
const TOKENS: Kind = Kind::Integer { min: 0, max: i64::MAX };
const USE: Kind = Kind::Choice(&["once", "always"]);

/// The failures that a script can play: all that a provider can have.
pub(super) const ERROR_KINDS: &[&str] =
    &["network", "timeout", "rate_limit", "server", "auth", "bad_request", "context_too_long", "decode"];

/// The reasons for which a scripted reply can end.
const STOPS: &[&str] = &["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal"];

/// A language model that answers what a file says.
pub static SCRIPT: Shape = Shape {
    name: "Script",
    doc: "A language model that answers what a file says: a list of rules. Of several that fit a request the first one \
          answers; a request that none fits is an error which names it. Texts of replies and arguments are templates: \
          `{{ user }}`, `{{ system }}`, `{{ notice }}`, `{{ result }}` (of the tool that `tool_result` names, else of \
          the last one that answered), `{{ results.NAME }}`, `{{ messages }}`, `{{ tools }}`, `{{ conversation }}`, \
          `{{ agent }}`, `{{ turn }}`, `{{ call }}`, `{{ attempt }}`, and the named groups of the patterns. An argument \
          that is one `{{ … }}` alone keeps the type of its value.",
    fields: &[
        Field::optional(
            "name",
            Kind::NonEmptyText,
            "What the model is called. Default: the name of the file.",
        ),
        Field::optional("use", USE, "How often rules answer that do not say it themselves.").default("once"),
        Field::required("rules", Kind::NonEmptyList(&Kind::Shape(&RULE)), "The rules, in order."),
    ],
};

pub(super) static RULE: Shape = Shape {
    name: "Rule",
    doc: "When the model answers what. It needs `reply` or `error`.",
    fields: &[
        Field::optional("name", Kind::NonEmptyText, "A name for messages."),
        Field::optional(
            "when",
            Kind::Shape(&CONDITIONS),
            "What must hold for the rule to answer. Without it the rule fits every request.",
        ),
        Field::optional(
            "expect",
            Kind::Shape(&CONDITIONS),
            "What must hold of the requests that the rule answers: one that does not fit is an error.",
        ),
        Field::optional(
            "use",
            USE,
            "How often it answers in each conversation. Default: what the script says.",
        ),
        Field::optional("delay_ms", MILLISECONDS, "The time until the answer is whole.").default("0"),
        Field::optional(
            "reply",
            Kind::OneOf(&[Kind::Text, Kind::Shape(&REPLY)]),
            "What the model answers: a text, or more.",
        ),
        Field::optional(
            "error",
            Kind::OneOf(&[Kind::Choice(ERROR_KINDS), Kind::Shape(&ERROR)]),
            "How the call fails instead: a kind of failure, or more.",
        ),
    ],
};

static CONDITIONS: Shape = Shape {
    name: "Conditions",
    doc: "What must hold of a request. Patterns are regular expressions that may match anywhere in the text.",
    fields: &[
        Field::optional("conversation", Kind::Text, "The id of the conversation."),
        Field::optional("agent", Kind::Text, "The id of the agent that speaks."),
        Field::optional("turn", ORDINAL, "The number of the turn in the conversation."),
        Field::optional("call", ORDINAL, "The number of the model call in the turn."),
        Field::optional("attempt", ORDINAL, "The number of the attempt at the call."),
        Field::optional("system", Kind::Pattern, "The system prompt matches."),
        Field::optional(
            "user",
            Kind::Pattern,
            "What the user said last matches. Without `call`, `tool_result` and `notice` only as long as the model has \
             not replied to it.",
        ),
        Field::optional("notice", Kind::Pattern, "A notice matches to which the model has not replied yet."),
        Field::optional(
            "tool_result",
            Kind::OneOf(&[Kind::Pattern, Kind::Shape(&RESULT)]),
            "A tool's answer matches to which the model has not replied yet.",
        ),
        Field::optional(
            "offered",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::List(&Kind::NonEmptyText)]),
            "This tool is, or all of these are, offered to the model.",
        ),
    ],
};

static RESULT: Shape = Shape {
    name: "ToolResult",
    doc: "What a tool's answer must be like.",
    fields: &[
        Field::optional("tool", Kind::NonEmptyText, "The name of the tool."),
        Field::optional("matches", Kind::Pattern, "The answer, as text, matches."),
        Field::optional("failed", Kind::Bool, "Whether the tool failed. Default: either."),
    ],
};

static REPLY: Shape = Shape {
    name: "Reply",
    doc: "What the model answers. It needs `text`, `json` or `tool_calls`; an empty reply is `reply: \"\"`.",
    fields: &[
        Field::optional("text", Kind::Text, "What it says, a template."),
        Field::optional("json", Kind::Json, "A value that it says as JSON; the texts in it are templates."),
        Field::optional("reasoning", Kind::Text, "What it thinks first, a template."),
        Field::optional(
            "tool_calls",
            Kind::List(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CALL)])),
            "The tools that it calls: the name of one without arguments, or more.",
        ),
        Field::optional(
            "stop",
            Kind::Choice(STOPS),
            "Why it ends. Default: `tool_use` with tool calls, otherwise `end_turn`.",
        ),
        Field::optional("usage", Kind::Shape(&USAGE), "What the call cost. Default: an estimate."),
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
            "Its arguments; the texts in them are templates. A text is sent as it is, as by a model that writes \
             something that is not JSON.",
        ),
        Field::optional("id", Kind::NonEmptyText, "The id of the call. Default: made from its position."),
    ],
};

static USAGE: Shape = Shape {
    name: "Usage",
    doc: "What a call cost, in tokens.",
    fields: &[
        Field::optional("input_tokens", TOKENS, "What was read.").default("0"),
        Field::optional("output_tokens", TOKENS, "What was written.").default("0"),
        Field::optional("cached_tokens", TOKENS, "What was read from a cache.").default("0"),
    ],
};

static ERROR: Shape = Shape {
    name: "Error",
    doc: "How a call fails.",
    fields: &[
        Field::required("kind", Kind::Choice(ERROR_KINDS), "What kind of failure it is."),
        Field::optional("message", Kind::Text, "What is said of it, a template."),
        Field::optional(
            "status",
            Kind::Integer { min: 100, max: 599 },
            "The status of HTTP. Default: the usual one of the kind.",
        ),
        Field::optional("retry_after_ms", MILLISECONDS, "The pause that the provider asks for."),
        Field::optional("body", Kind::Text, "The body of the answer."),
        Field::optional("after", Kind::Text, "Text that arrives before the failure, a template."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::SCRIPT.problems(), Vec::<String>::new());
    }
}
