//! Shape of the answers of tools that the test answers.

use hotseat_document::{Field, Kind, Shape};

/// Patterns by the path of an argument.
pub(super) const ARGUMENTS: Kind = Kind::Map(&Kind::Pattern);

/// Shape of the answer of a client-side tool.
pub static TOOL_ANSWER: Shape = Shape {
    name: "ToolAnswer",
    doc: "Answer of a client-side tool: either `content` or `error`.",
    fields: &[
        Field::optional("args_match", ARGUMENTS, "Only for calls whose arguments match."),
        Field::optional("content", Kind::Json, "The result: text, or JSON."),
        Field::optional("error", Kind::NonEmptyText, "Makes the tool fail with this message."),
        Field::optional("once", Kind::Bool, "Used for one call only.").default("false"),
    ],
};
