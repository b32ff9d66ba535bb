//! Shapes of MCP servers: mocks, proxies, replays and their faults.

use super::answer_shape::MCP_TOOL_ANSWER;
use super::assertions::ARGUMENT_PATTERNS;
use hotseat_document::{Kind, TaggedShapes, document_shape};

/// `mcp`: servers by name.
pub const MCP_KIND: Kind = Kind::Map(&Kind::Tagged(&MCP_SERVER));

/// An MCP server, or changes of an inherited one.
pub static MCP_SERVER: TaggedShapes =
    TaggedShapes { key: "type", shapes: &[&MCP_MOCK, &MCP_PROXY, &MCP_REPLAY], untagged: Some(&MCP_CHANGE) };

const TOOLS: Kind = Kind::NonEmptyList(&Kind::Shape(&MCP_TOOL));
static FAULT_KIND: Kind = Kind::Shape(&MCP_FAULT);

document_shape! {
    /// Faults in calls of this server, in addition to inherited ones. The first that selects a call applies.
    /// A fault that no call reaches fails the case as an error of the test.
    const FAULTS_FIELD: optional "faults" = Kind::NonEmptyList(&FAULT_KIND),
    /// A call that no answer matches: `fail` ends the case as an error of the test, `error_result` hands an
    /// error to the agent.
    const UNMATCHED_FIELD: optional "unmatched" = Kind::Choice(&["fail", "error_result"]),
}

document_shape! {
    /// An MCP server whose tools the test answers.
    pub static MCP_MOCK "McpMock" {
        /// Type of the server.
        required "type" = Kind::Choice(&["mock"]),
        /// Its tools, in addition to those of `tools_from`; the same name replaces.
        optional "tools" = TOOLS,
        /// A JSON file with the answer of a real server to `tools/list`. Searched next to the suite, next to
        /// the project file, and in the working directory.
        optional "tools_from" = Kind::NonEmptyText,
        /// Instructions of the server for models.
        optional "instructions" = Kind::NonEmptyText,
        /// Maximum number of tools on one page of the list. Default: one page.
        optional "page_size" = Kind::Integer { min: 1, max: 100_000 },
        ..UNMATCHED_FIELD,
        ..FAULTS_FIELD,
    }

    /// An MCP server that relays to a real one: a program or a URL.
    pub static MCP_PROXY "McpProxy" {
        /// Type of the server.
        required "type" = Kind::Choice(&["proxy"]),
        /// The program and its arguments; it speaks on standard input and output. Runs without a shell, once
        /// for each conversation.
        optional "command" = Kind::NonEmptyList(&Kind::Text),
        /// Additional environment variables of the program.
        optional "env" = Kind::Map(&Kind::Text),
        /// Working directory, relative to the project file.
        optional "cwd" = Kind::NonEmptyText, shown ".",
        /// Instead of a program: the URL of a server that speaks streamable HTTP.
        optional "url" = Kind::Url, other_names &["endpoint"],
        /// Headers of every request to `url`.
        optional "headers" = Kind::Map(&Kind::Text),
        /// Records requests and answers of each case in this file, relative to the project file, for
        /// `type: replay`. Cases that do not run keep their recording.
        optional "record" = Kind::NonEmptyText,
        ..FAULTS_FIELD,
    }

    /// An MCP server that answers from a recording. Requests get the recorded answers to equal requests of
    /// the same case.
    static MCP_REPLAY "McpReplay" {
        /// Type of the server.
        required "type" = Kind::Choice(&["replay"]),
        /// The recording: a file of `record` of a proxy or of `hotseat mcp record`. Searched next to the
        /// suite, next to the project file, and in the working directory.
        required "from" = Kind::NonEmptyText,
        ..UNMATCHED_FIELD,
        ..FAULTS_FIELD,
    }

    /// Changes of a server that the suite or the project defines.
    pub static MCP_CHANGE "McpChange" {
        /// Further tools of a mock. With the name of an existing tool: its answers are replaced, and what is
        /// not set stays.
        optional "tools" = TOOLS,
        ..UNMATCHED_FIELD,
        ..FAULTS_FIELD,
    }

    /// A tool of a mocked MCP server.
    pub static MCP_TOOL "McpTool" {
        /// Its name.
        required "name" = Kind::NonEmptyText,
        /// Description of the tool for the agent.
        optional "description" = Kind::Text,
        /// JSON Schema of its arguments. A call that violates it gets an error, as from real servers.
        optional "inputSchema" = Kind::JsonMap, aliases &["parameters", "input_schema"],
        /// JSON Schema of its structured result.
        optional "outputSchema" = Kind::JsonMap, aliases &["output_schema"],
        /// Hints for clients, such as `readOnlyHint` and `idempotentHint`. A sweep of faults lets the agent
        /// repeat calls of such tools.
        optional "annotations" = Kind::JsonMap,
        /// A tool of the same server. The list contains this tool once that one took effect in the
        /// conversation; clients that listen are notified (`tools/list_changed`).
        optional "offered_after" = Kind::NonEmptyText,
        /// Answers of the tool: the first matching one is used.
        optional "answers" = Kind::NonEmptyList(&Kind::Shape(&MCP_TOOL_ANSWER)),
    }

    /// A fault in calls of an MCP server. Without `nth`, `every` and `rate` it breaks the first matching
    /// call.
    pub static MCP_FAULT "McpFault" {
        /// Only calls of this tool.
        optional "tool" = Kind::NonEmptyText,
        /// Only calls whose arguments match.
        optional "args_match" = ARGUMENT_PATTERNS,
        /// Only the matching call with this number.
        optional "nth" = Kind::Integer { min: 1, max: 1_000_000 },
        /// Every matching call whose number is a multiple; 1 selects all.
        optional "every" = Kind::Integer { min: 1, max: 1_000_000 },
        /// Matching calls at random, with this probability between 0 and 1.
        optional "rate" = Kind::Number,
        /// Seed of `rate`. The same seed selects the same calls.
        optional "seed" = Kind::Integer { min: 0, max: i64::MAX }, shown "0",
        /// The fault. `lost_answer`: the tool takes effect, and the connection closes without an answer.
        /// `timeout`: no answer, no effect. `disconnect`: the connection closes before the effect. `http`:
        /// status 503. `rpc_error`: a JSON-RPC error. `is_error`: the tool reports an error. `empty`: no
        /// content. `garbage`: no JSON. `truncate`: half an answer. `schema_violation`: a result of the wrong
        /// form. `huge`: 1 MiB of text. `duplicate_answer`: the answer twice. `stale`: the answer of the
        /// previous call. A mapping sets a value.
        required "do" = Kind::OneOf(&[Kind::Choice(FAULT_WORDS), Kind::Shape(&FAULT_ACTION)]),
    }

    /// A fault in calls of one of the MCP servers of a case.
    pub static CASE_FAULT "CaseFault" {
        /// The server. Default: the only one under `mcp`.
        optional "server" = Kind::NonEmptyText,
        ..(MCP_FAULT.fields[0]),
        ..(MCP_FAULT.fields[1]),
        ..(MCP_FAULT.fields[2]),
        ..(MCP_FAULT.fields[3]),
        ..(MCP_FAULT.fields[4]),
        ..(MCP_FAULT.fields[5]),
        ..(MCP_FAULT.fields[6]),
    }
}

/// Faults that need no value.
const FAULT_WORDS: &[&str] = &[
    "lost_answer",
    "timeout",
    "disconnect",
    "http",
    "rpc_error",
    "is_error",
    "empty",
    "garbage",
    "truncate",
    "schema_violation",
    "huge",
    "duplicate_answer",
    "stale",
];

document_shape! {
    /// A fault with a value: one of these keys.
    pub static FAULT_ACTION "FaultAction" {
        /// The answer arrives this much later.
        optional "delay_ms" = super::limits::MILLISECONDS,
        /// The answer arrives in small pieces over this time.
        optional "slow_stream_ms" = super::limits::MILLISECONDS,
        /// HTTP status of the answer.
        optional "http" = Kind::Integer { min: 400, max: 599 },
        /// Code of the JSON-RPC error.
        optional "rpc_error" = Kind::Integer { min: -100_000, max: 100_000 },
        /// Error text of the tool.
        optional "is_error" = Kind::NonEmptyText,
        /// Size of the text in the answer.
        optional "huge_bytes" = Kind::Integer { min: 1, max: 268_435_456 },
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_fault_has_a_word() {
        let keys = super::FAULT_ACTION.fields.iter().map(|field| field.key);
        let words: Vec<&str> = super::FAULT_WORDS.iter().copied().chain(keys).collect();
        for name in hotseat_mcp::FaultKind::NAMES {
            assert!(words.iter().any(|word| word.starts_with(name)), "{name}");
        }
    }
}
