//! Shapes of the answers of client-side tools and of tools of mocked MCP servers.

use super::assertions::ARGUMENT_PATTERNS;
use hotseat_document::{Field, Kind, Shape};

/// Shape of an answer of a client-side tool.
pub static TOOL_ANSWER: Shape = Shape {
    name: "ToolAnswer",
    doc: "Answer of a tool: one of `content`, `error` and `use`.",
    fields: &[
        Field::optional("args_match", ARGUMENT_PATTERNS, "Only for calls whose arguments match."),
        Field::optional("content", Kind::Json, "The result: text, or JSON."),
        Field::optional("error", Kind::NonEmptyText, "Makes the tool fail with this message."),
        Field::optional(
            "use",
            Kind::NonEmptyText,
            "A function of a script that computes the answer, as `scripts:path.function`. It gets the arguments and a context, and returns an object with `content` or `error`. If it fails or returns anything else, the case fails with `script_error`.",
        )
        .aliases(&["script"]),
        Field::optional("once", Kind::Bool, "Used for one call only.").default("false"),
    ],
};

/// Shape of an answer of a tool of a mocked MCP server.
pub static MCP_TOOL_ANSWER: Shape = Shape {
    name: "McpToolAnswer",
    doc: "Answer of a tool of a mock: one of `content`, `error` and `use`, after the questions of `ask`.",
    fields: &[
        TOOL_ANSWER.fields[0],
        TOOL_ANSWER.fields[1],
        TOOL_ANSWER.fields[2],
        TOOL_ANSWER.fields[3],
        TOOL_ANSWER.fields[4],
        Field::optional(
            "ask",
            Kind::Map(&Kind::Shape(&MCP_QUESTION)),
            "Questions to the user of the client, by names. The answer is given when all of them are accepted; a question that is declined or cancelled makes the tool fail.",
        ),
    ],
};

/// Shape of a question.
pub static MCP_QUESTION: Shape = Shape {
    name: "McpQuestion",
    doc: "A question of a mock to the user of the client.",
    fields: &[
        Field::required("message", Kind::NonEmptyText, "The question."),
        Field::optional(
            "schema",
            Kind::JsonMap,
            "JSON Schema of the answer, with `type: object`. A response that violates it is an error. Without it the user only accepts or declines.",
        ),
    ],
};
