//! Shapes of MCP servers: mocks, proxies, replays and their faults.

use super::answer_shape::MCP_TOOL_ANSWER;
use super::assertions::ARGUMENT_PATTERNS;
use hotseat_document::{Field, Kind, Shape, TaggedShapes};

/// `mcp`: servers by name.
pub const MCP_KIND: Kind = Kind::Map(&Kind::Tagged(&MCP_SERVER));

/// An MCP server, or changes of an inherited one.
pub static MCP_SERVER: TaggedShapes =
    TaggedShapes { key: "type", shapes: &[&MCP_MOCK, &MCP_PROXY, &MCP_REPLAY], untagged: Some(&MCP_CHANGE) };

const TOOLS: Kind = Kind::NonEmptyList(&Kind::Shape(&MCP_TOOL));
static FAULT_KIND: Kind = Kind::Shape(&MCP_FAULT);
const FAULTS_FIELD: Field = Field::optional(
    "faults",
    Kind::NonEmptyList(&FAULT_KIND),
    "Faults in calls of this server, in addition to inherited ones. The first that selects a call applies. A fault that no call reaches fails the case as an error of the test.",
);
const UNMATCHED_FIELD: Field = Field::optional(
    "unmatched",
    Kind::Choice(&["fail", "error_result"]),
    "A call that no answer matches: `fail` ends the case as an error of the test, `error_result` hands an error to the agent.",
);

/// Shape of a mock.
pub static MCP_MOCK: Shape = Shape {
    name: "McpMock",
    doc: "An MCP server whose tools the test answers.",
    fields: &[
        Field::required("type", Kind::Choice(&["mock"]), "Type of the server."),
        Field::optional(
            "tools",
            TOOLS,
            "Its tools, in addition to those of `tools_from`; the same name replaces.",
        ),
        Field::optional(
            "tools_from",
            Kind::NonEmptyText,
            "A JSON file with the answer of a real server to `tools/list`. Searched next to the suite, next to the project file, and in the working directory.",
        ),
        Field::optional("instructions", Kind::NonEmptyText, "Instructions of the server for models."),
        Field::optional(
            "page_size",
            Kind::Integer { min: 1, max: 100_000 },
            "Maximum number of tools on one page of the list. Default: one page.",
        ),
        UNMATCHED_FIELD,
        FAULTS_FIELD,
    ],
};

/// Shape of a proxy.
pub static MCP_PROXY: Shape = Shape {
    name: "McpProxy",
    doc: "An MCP server that relays to a real one: a program or a URL.",
    fields: &[
        Field::required("type", Kind::Choice(&["proxy"]), "Type of the server."),
        Field::optional(
            "command",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments; it speaks on standard input and output. Runs without a shell, once for each conversation.",
        ),
        Field::optional("env", Kind::Map(&Kind::Text), "Additional environment variables of the program."),
        Field::optional("cwd", Kind::NonEmptyText, "Working directory, relative to the project file.")
            .default("."),
        Field::optional(
            "url",
            Kind::Url,
            "Instead of a program: the URL of a server that speaks streamable HTTP.",
        )
        .other_names(&["endpoint"]),
        Field::optional("headers", Kind::Map(&Kind::Text), "Headers of every request to `url`."),
        Field::optional(
            "record",
            Kind::NonEmptyText,
            "Records requests and answers of each case in this file, relative to the project file, for `type: replay`. Cases that do not run keep their recording.",
        ),
        FAULTS_FIELD,
    ],
};

/// Shape of a replay.
static MCP_REPLAY: Shape = Shape {
    name: "McpReplay",
    doc: "An MCP server that answers from a recording. Requests get the recorded answers to equal requests of the same case.",
    fields: &[
        Field::required("type", Kind::Choice(&["replay"]), "Type of the server."),
        Field::required(
            "from",
            Kind::NonEmptyText,
            "The recording: a file of `record` of a proxy or of `hotseat mcp record`. Searched next to the suite, next to the project file, and in the working directory.",
        ),
        UNMATCHED_FIELD,
        FAULTS_FIELD,
    ],
};

/// Shape of changes of an inherited server.
pub static MCP_CHANGE: Shape = Shape {
    name: "McpChange",
    doc: "Changes of a server that the suite or the project defines.",
    fields: &[
        Field::optional(
            "tools",
            TOOLS,
            "Further tools of a mock. With the name of an existing tool: its answers are replaced, and what is not set stays.",
        ),
        UNMATCHED_FIELD,
        FAULTS_FIELD,
    ],
};

/// Shape of a tool of a mock.
pub static MCP_TOOL: Shape = Shape {
    name: "McpTool",
    doc: "A tool of a mocked MCP server.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Its name."),
        Field::optional("description", Kind::Text, "Description of the tool for the agent."),
        Field::optional(
            "inputSchema",
            Kind::JsonMap,
            "JSON Schema of its arguments. A call that violates it gets an error, as from real servers.",
        )
        .aliases(&["parameters", "input_schema"]),
        Field::optional("outputSchema", Kind::JsonMap, "JSON Schema of its structured result.")
            .aliases(&["output_schema"]),
        Field::optional(
            "annotations",
            Kind::JsonMap,
            "Hints for clients, such as `readOnlyHint` and `idempotentHint`. A sweep of faults lets the agent repeat such tools.",
        ),
        Field::optional(
            "offered_after",
            Kind::NonEmptyText,
            "A tool of the same server. The list contains this tool once that one took effect in the conversation; clients that listen are notified (`tools/list_changed`).",
        ),
        Field::optional(
            "answers",
            Kind::NonEmptyList(&Kind::Shape(&MCP_TOOL_ANSWER)),
            "Answers of the tool: the first matching one is used.",
        ),
    ],
};

/// Shape of a fault.
pub static MCP_FAULT: Shape = Shape {
    name: "McpFault",
    doc: "A fault in calls of an MCP server. Without `nth`, `every` and `rate` it breaks the first matching call.",
    fields: &[
        Field::optional("tool", Kind::NonEmptyText, "Only calls of this tool."),
        Field::optional("args_match", ARGUMENT_PATTERNS, "Only calls whose arguments match."),
        Field::optional(
            "nth",
            Kind::Integer { min: 1, max: 1_000_000 },
            "Only the matching call with this number.",
        ),
        Field::optional(
            "every",
            Kind::Integer { min: 1, max: 1_000_000 },
            "Every matching call whose number is a multiple; 1 selects all.",
        ),
        Field::optional(
            "rate",
            Kind::Number,
            "Matching calls at random, with this probability between 0 and 1.",
        ),
        Field::optional(
            "seed",
            Kind::Integer { min: 0, max: i64::MAX },
            "Seed of `rate`. The same seed selects the same calls.",
        )
        .default("0"),
        Field::required(
            "do",
            Kind::OneOf(&[Kind::Choice(FAULT_WORDS), Kind::Shape(&FAULT_ACTION)]),
            FAULT_DOC,
        ),
    ],
};

/// Shape of a fault of a case, which names its server.
pub static CASE_FAULT: Shape = Shape {
    name: "CaseFault",
    doc: "A fault in calls of one of the MCP servers of a case.",
    fields: &[
        Field::optional("server", Kind::NonEmptyText, "The server. Default: the only one under `mcp`."),
        MCP_FAULT.fields[0],
        MCP_FAULT.fields[1],
        MCP_FAULT.fields[2],
        MCP_FAULT.fields[3],
        MCP_FAULT.fields[4],
        MCP_FAULT.fields[5],
        MCP_FAULT.fields[6],
    ],
};

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

const FAULT_DOC: &str = "The fault. `lost_answer`: the tool takes effect, and the connection closes without an answer. `timeout`: no answer, no effect. `disconnect`: the connection closes before the effect. `http`: status 503. `rpc_error`: a JSON-RPC error. `is_error`: the tool reports an error. `empty`: no content. `garbage`: no JSON. `truncate`: half an answer. `schema_violation`: a result of the wrong form. `huge`: 1 MiB of text. `duplicate_answer`: the answer twice. `stale`: the answer of the previous call. A mapping sets a value.";

/// Shape of a fault with a value.
pub static FAULT_ACTION: Shape = Shape {
    name: "FaultAction",
    doc: "A fault with a value: one of these keys.",
    fields: &[
        Field::optional("delay_ms", super::limits::MILLISECONDS, "The answer arrives this much later."),
        Field::optional(
            "slow_stream_ms",
            super::limits::MILLISECONDS,
            "The answer arrives in small pieces over this time.",
        ),
        Field::optional("http", Kind::Integer { min: 400, max: 599 }, "HTTP status of the answer."),
        Field::optional(
            "rpc_error",
            Kind::Integer { min: -100_000, max: 100_000 },
            "Code of the JSON-RPC error.",
        ),
        Field::optional("is_error", Kind::NonEmptyText, "Error text of the tool."),
        Field::optional(
            "huge_bytes",
            Kind::Integer { min: 1, max: 268_435_456 },
            "Size of the text in the answer.",
        ),
    ],
};

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
