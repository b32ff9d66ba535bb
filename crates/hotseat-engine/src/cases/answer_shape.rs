//! Shapes of the answers of client-side tools and of tools of mocked MCP servers.

use super::assertions::ARGUMENT_PATTERNS;
use hotseat_document::{Kind, document_shape};

document_shape! {
    /// Answer of a tool: one of `content`, `error` and `use`.
    pub static TOOL_ANSWER "ToolAnswer" {
        /// Only for calls whose arguments match.
        optional "args_match" = ARGUMENT_PATTERNS,
        /// The result: text, or JSON.
        optional "content" = Kind::Json,
        /// Makes the tool fail with this message.
        optional "error" = Kind::NonEmptyText,
        /// A function of a script that computes the answer, as `scripts:path.function`. It gets the arguments
        /// and a context, and returns an object with `content` or `error`. If it fails or returns anything
        /// else, the case fails with `script_error`.
        optional "use" = Kind::NonEmptyText, aliases &["script"],
        /// Used for one call only.
        optional "once" = Kind::Bool, shown "false",
    }

    /// Answer of a tool of a mock: one of `content`, `error` and `use`, after the questions of `ask`.
    pub static MCP_TOOL_ANSWER "McpToolAnswer" {
        ..(TOOL_ANSWER.fields[0]),
        ..(TOOL_ANSWER.fields[1]),
        ..(TOOL_ANSWER.fields[2]),
        ..(TOOL_ANSWER.fields[3]),
        ..(TOOL_ANSWER.fields[4]),
        /// Questions to the user of the client, by names. The answer is given when all of them are accepted;
        /// a question that is declined or cancelled makes the tool fail.
        optional "ask" = Kind::Map(&Kind::Shape(&MCP_QUESTION)),
    }

    /// A question of a mock to the user of the client.
    pub static MCP_QUESTION "McpQuestion" {
        /// The question.
        required "message" = Kind::NonEmptyText,
        /// JSON Schema of the answer, with `type: object`. A response that violates it is an error. Without
        /// it the user only accepts or declines.
        optional "schema" = Kind::JsonMap,
    }
}
