//! Shape of the answers of client-side tools and of tools of mocked MCP servers.

use super::assertions::ARGUMENT_PATTERNS;
use hotseat_document::{Field, Kind, Shape};

/// Shape of an answer.
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
