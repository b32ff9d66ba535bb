//! Shapes of the project file.

use crate::cases::shape::{AWAITING, CLIENT_TOOL, CONTEXT, RELIABILITY_KIND, RETRIES};
use crate::cases::topic_shape::{GRAPH_FIELD, SIMULATE_FIELD, TOPICS_FIELD};
use crate::cases::{ASSERT_KIND, CRITERIA_KIND, JUDGE_KIND};
use hotseat_document::{Field, Kind, Shape, TaggedShapes};
use hotseat_runtime::files::CONNECTOR;

/// Range of a number of bytes, events or calls.
const AMOUNT: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000_000 };
const MILLISECONDS: Kind = Kind::Integer { min: 1, max: 7 * 24 * 3600 * 1000 };

/// Shape of the project file.
pub static PROJECT: Shape = Shape {
    name: "Project",
    doc: "The project file `hotseat.yaml`: the agent under test, and defaults for all its suites.",
    fields: &[
        Field::optional(
            "target",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Tagged(&TARGET)]),
            "The agent under test, or the name of one of `agents`. Default: the only one of `agents`.",
        ),
        Field::optional(
            "agents",
            Kind::Map(&Kind::Tagged(&TARGET)),
            "Agents by name. `hotseat test -n NAME` tests one of them.",
        ),
        Field::optional(
            "connectors",
            Kind::Map(&Kind::Tagged(&CONNECTOR)),
            "Language models by name, for embedded agents and `options.connector`. Variables and files of unused ones need not exist.",
        ),
        Field::optional(
            "hooks",
            Kind::Map(&Kind::Shape(&NAMED_HOOK)),
            "Commands and script functions by name, for `before` and `after` of cases, and for `--before` and `--after`. Commands run in the folder of the project file.",
        ),
        Field::optional(
            "scripts",
            Kind::Shape(&SCRIPTS),
            "Permissions of script functions. Anything not granted here is denied.",
        ),
        Field::optional(
            "simulator",
            Kind::NonEmptyText,
            "Default simulator: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the built-in prompt.",
        ),
        Field::optional(
            "judge",
            JUDGE_KIND,
            "Default judge: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the built-in prompts; or a mapping with further settings.",
        ),
        TOPICS_FIELD,
        GRAPH_FIELD,
        SIMULATE_FIELD,
        Field::optional(
            "criteria",
            CRITERIA_KIND,
            "Criteria by name, for `satisfy` in all suites; suites and cases can add or replace criteria.",
        ),
        Field::optional(
            "suites",
            Kind::NonEmptyList(&Kind::NonEmptyText),
            "Globs of the files that `hotseat test` runs by default, relative to the project file.",
        )
        .default("['**/*.test.{yaml,yml,json,jsonl}', '**/*_test.{ts,mts,js,mjs}']"),
        Field::optional(
            "parallel",
            Kind::Integer { min: 1, max: 10_000 },
            "Maximum number of concurrent conversations.",
        )
        .default("8"),
        Field::optional(
            "runs",
            Kind::Integer { min: 1, max: 10_000 },
            "Number of attempts per case, to measure its stability.",
        )
        .default("1"),
        Field::optional(
            "min_pass_rate",
            Kind::Number,
            "Minimum pass rate of a case that is repeated, from 0 to 1.",
        )
        .default("1"),
        Field::optional(
            "retries",
            RETRIES,
            "Number of retries of a failed case that is not repeated.",
        )
        .default("0"),
        Field::optional(
            "reliability",
            RELIABILITY_KIND,
            "Default required pass rate: each case is repeated until the rate is confirmed or refuted.",
        ),
        Field::optional(
            "max_invalid",
            Kind::Integer { min: 0, max: 10_000 },
            "Maximum number of invalid attempts of a repeated case that are replaced, for example after an error of a role or the machine. Default: one for each ten runs, and at least 3.",
        )
        .renamed_from("redraws"),
        Field::optional(
            "limits",
            Kind::Shape(&LIMITS),
            "Traffic limits of agents. A case whose agent exceeds a limit fails (`limit`); data received until then is kept.",
        ),
        Field::optional(
            "store",
            Kind::OneOf(&[Kind::Bool, Kind::Shape(&STORE)]),
            "Storage of runs in `.hotseat/runs.db` next to this file: `false` disables it, a mapping sets limits.",
        )
        .default("true"),
        Field::optional(
            "secrets",
            Kind::List(&Kind::NonEmptyText),
            "Variables whose values are redacted in all output: `ENV.NAME`, or `NAME` for variables set by hooks. Variables used in headers and keys, and variables with names of secrets, are detected automatically.",
        ),
    ],
};

/// Shape of `scripts`.
pub static SCRIPTS: Shape = Shape {
    name: "Scripts",
    doc: "Permissions of script functions. Anything not granted here is denied.",
    fields: &[
        Field::optional(
            "hosts",
            Kind::List(&Kind::NonEmptyText),
            "Hosts that `fetch` may contact: `api.example.com`, `*.example.com` for all subdomains, `127.0.0.1:8080` for one port only. Redirects to other hosts are not followed.",
        ),
        Field::optional(
            "read",
            Kind::List(&Kind::NonEmptyText),
            "Files and folders that `files` may read, relative to the project file; `.` is the whole project. Files outside of the project folder cannot be read.",
        ),
        Field::optional(
            "write",
            Kind::List(&Kind::NonEmptyText),
            "Files and folders that `files` may read and write.",
        ),
        Field::optional(
            "env",
            Kind::List(&Kind::NonEmptyText),
            "Names of environment variables visible in `process.env`.",
        ),
        Field::optional(
            "processes",
            Kind::Map(&Kind::Shape(&PROCESS)),
            "Commands and requests by name, for `Process(name, …)`. `models.*` matches every name that starts with `models.`.",
        ),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "Default time limit of a function call, including everything it waits for. Default: 10 s for functions that judge, 30 s for hooks, 120 s for simulated users, judges and generators.",
        ),
        Field::optional(
            "memory_mb",
            Kind::Integer { min: 1, max: 4096 },
            "Memory limit of a function call in MiB.",
        )
        .default("64"),
    ],
};

/// Shape of a hook.
pub static NAMED_HOOK: Shape = Shape {
    name: "NamedHook",
    doc: "A command or script function that runs before or after cases or runs.",
    fields: &[
        Field::optional(
            "cmd",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. Runs without a shell, so nothing is expanded.",
        ),
        Field::optional(
            "use",
            Kind::NonEmptyText,
            "Instead of a command: a script function, as `scripts:path.function`. A function needs an entry here only for a name or a `timeout_ms` of its own.",
        ),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "Time limit. A command is killed with its children. Default: 30 s, for functions `timeout_ms` under `scripts`.",
        ),
        Field::optional("env", Kind::Map(&Kind::Text), "Additional environment variables of the command."),
        Field::optional(
            "cwd",
            Kind::NonEmptyText,
            "Working directory of the command, relative to the project file.",
        )
        .default("."),
    ],
};

/// Shape of a process.
pub static PROCESS: Shape = Shape {
    name: "Process",
    doc: "A command or request that scripts call by name. It receives `{name, args, ctx}` as JSON, on standard input or in the body. Its output or response is parsed as JSON; an empty one is null.",
    fields: &[
        Field::optional(
            "cmd",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. Runs without a shell, so nothing is expanded.",
        ),
        Field::optional(
            "cwd",
            Kind::NonEmptyText,
            "Working directory of the command, relative to the project file.",
        )
        .default("."),
        Field::optional("env", Kind::Map(&Kind::Text), "Additional environment variables of the command."),
        Field::optional("url", Kind::Url, "URL of the request. Redirects are not followed."),
        Field::optional("method", Kind::NonEmptyText, "HTTP method of the request.").default("POST"),
        HEADERS,
        Field::optional("timeout_ms", MILLISECONDS, "Time limit of the process.").default("30000"),
    ],
};

/// Shape of traffic limits.
pub static LIMITS: Shape = Shape {
    name: "Limits",
    doc: "Traffic limits of agents.",
    fields: &[
        Field::optional(
            "turn",
            Kind::Shape(&BOUNDS),
            "In one turn. Default: 100000000 bytes, 500000 events, 200000 calls.",
        ),
        Field::optional(
            "conversation",
            Kind::Shape(&BOUNDS),
            "In one conversation. Default: 400000000 bytes, 2000000 events, 500000 calls.",
        ),
        Field::optional(
            "run",
            Kind::Shape(&BOUNDS),
            "In all conversations of a run together. Default: 1000000000000 bytes, 1000000000 events, 100000000 calls.",
        ),
    ],
};

/// Shape of the traffic limits of one scope.
pub static BOUNDS: Shape = Shape {
    name: "Bounds",
    doc: "Traffic limits of one scope.",
    fields: &[
        Field::optional(
            "bytes",
            AMOUNT,
            "Bytes received, or the approximate size of the recorded data if that is larger.",
        ),
        Field::optional("events", AMOUNT, "Events recorded in the trace."),
        Field::optional("calls", AMOUNT, "Tool calls."),
    ],
};

/// Shape of the store settings.
pub static STORE: Shape = Shape {
    name: "Store",
    doc: "Limits of stored runs. The oldest runs are deleted first; the latest run is never deleted.",
    fields: &[
        Field::optional("max_age", Kind::NonEmptyText, "Maximum age: `90d`, `12h`, `4w`.")
            .default("\"90d\"")
            .renamed_from("keep"),
        Field::optional("max_size", Kind::NonEmptyText, "Maximum total size: `1GB`, `500MB`.")
            .default("\"1GB\""),
    ],
};

/// Shapes of targets by type.
pub static TARGET: TaggedShapes = TaggedShapes {
    key: "type",
    shapes: &[&AG_UI_TARGET, &OPENAI_TARGET, &HTTP_TARGET, &COMMAND_TARGET, &EMBEDDED_TARGET, &REPLAY_TARGET],
    untagged: None,
};

const HEADERS: Field = Field::optional("headers", Kind::Map(&Kind::Text), "Headers of every request.");
static CLIENT_TOOL_KIND: Kind = Kind::Shape(&CLIENT_TOOL);
const TOOLS: Field = Field::optional(
    "tools",
    Kind::List(&CLIENT_TOOL_KIND),
    "Client-side tools that are offered to the agent.",
);
const TIMEOUT: Field = Field::optional("timeout_ms", MILLISECONDS, "Time limit of a turn.").default("120000");
const IDLE_TIMEOUT: Field =
    Field::optional("idle_timeout_ms", MILLISECONDS, "Maximum time without any received data.")
        .default("60000");
const FOLDER: Field = Field::optional(
    "folder",
    Kind::NonEmptyText,
    "For an entry of `agents`: suites below this folder test it, regardless of `target`. Relative to the project file.",
);
const DESCRIPTION: Field =
    Field::optional("description", Kind::Text, "Purpose of the agent, passed to the generator of cases.");
const STARTED: Field = Field::optional(
    "start",
    Kind::Shape(&START),
    "Starts the agent before the first case and stops it after the last.",
);
const ASSERTED: Field =
    Field::optional("assert", ASSERT_KIND, "Assertions about every conversation as a whole.");
const AWAITED: Field = Field::optional(
    "awaiting",
    Kind::Shape(&AWAITING),
    "Markers that show that the agent waits for input, if it does not report this itself.",
);
const TURN_ASSERTED: Field = Field::optional("turn_assert", ASSERT_KIND, "Assertions about every turn.");

/// Shape of an AG-UI target.
pub static AG_UI_TARGET: Shape = Shape {
    name: "AgUiTarget",
    doc: "An agent that speaks AG-UI.",
    fields: &[
        Field::optional("type", Kind::Choice(&["ag_ui", "ag-ui"]), "Type of the target.").default("ag_ui"),
        Field::required("endpoint", Kind::Url, "URL to which runs are posted."),
        HEADERS,
        Field::optional(
            "envelope",
            Kind::Choice(&["none", "copilotkit"]),
            "Envelope of the run input: `copilotkit` for the single route of CopilotKit's runtime.",
        )
        .default("none"),
        Field::optional("agentId", Kind::NonEmptyText, "With `copilotkit`: name of the agent in the runtime."),
        Field::optional("threadId", Kind::NonEmptyText, "Id of every conversation. Default: a new id for each case."),
        Field::optional("state", Kind::Json, "The shared state before the first turn.").default("{}"),
        Field::optional("context", Kind::List(&Kind::Shape(&CONTEXT)), "Context entries.").default("[]"),
        Field::optional("forwardedProps", Kind::JsonMap, "Properties forwarded to the agent.").default("{}"),
        TOOLS,
        Field::optional(
            "protocol",
            Kind::Choice(&["lenient", "strict"]),
            "`strict`: events that violate the order required by the protocol are errors. `lenient`: they are notes.",
        )
        .default("lenient"),
        Field::optional("timing", Kind::Shape(&TIMING), "Source of event times."),
        TIMEOUT,
        IDLE_TIMEOUT,
        DESCRIPTION,
        FOLDER,
        STARTED,
        ASSERTED,
        TURN_ASSERTED,
        AWAITED,
    ],
};

/// Shape of the time source of events.
pub static TIMING: Shape = Shape {
    name: "EventTiming",
    doc: "Source of event times.",
    fields: &[Field::optional(
        "source",
        Kind::Choice(&["arrival", "events"]),
        "`arrival`: the arrival time. `events`: the `timestamp` of an event, in Unix milliseconds; from the first timestamp that is not between the request and the arrival, arrival times are used.",
    )
    .default("arrival")],
};

/// Shape of a target with OpenAI-compatible chat completions.
pub static OPENAI_TARGET: Shape = Shape {
    name: "OpenAiTarget",
    doc: "An agent behind an OpenAI-compatible chat completions API.",
    fields: &[
        Field::required("type", Kind::Choice(&["openai"]), "Type of the target."),
        Field::required(
            "base_url",
            Kind::Url,
            "URL of the server; `/chat/completions` is appended if missing.",
        ),
        Field::required("model", Kind::NonEmptyText, "Name of the model on the server."),
        Field::optional("api_key", Kind::Text, "Sent as `Authorization: Bearer …` and redacted in output. An empty key is not sent."),
        HEADERS,
        Field::optional("system", Kind::Text, "A system message at the start of the conversation."),
        Field::optional("stream", Kind::Bool, "Whether replies are streamed.").default("true"),
        Field::optional("temperature", Kind::Number, "The temperature. Default: the server's."),
        Field::optional(
            "body",
            Kind::JsonMap,
            "Further members of every request. They replace members of the same name; `null` removes one. `{{conversation_id}}`, `{{turn}}`, `{{user}}`, `{{team}}`, `{{locale}}`, `{{ctx}}` and `{{options}}` are filled in, and their members.",
        ),
        Field::optional(
            "history",
            Kind::Choice(&["full", "delta", "auto"]),
            "`full`: every request carries the whole conversation, as the protocol expects. `delta`: only new messages, for a server that stores conversations. `auto` is `full`.",
        )
        .default("auto"),
        TOOLS,
        TIMEOUT,
        IDLE_TIMEOUT,
        DESCRIPTION,
        FOLDER,
        STARTED,
        ASSERTED,
        TURN_ASSERTED,
        AWAITED,
    ],
};

/// Shape of a target with a custom HTTP interface.
pub static HTTP_TARGET: Shape = Shape {
    name: "HttpTarget",
    doc: "An agent with a custom HTTP interface: a template defines the request, paths select values of the response.",
    fields: &[
        Field::required("type", Kind::Choice(&["http"]), "Type of the target."),
        Field::required(
            "endpoint",
            Kind::Url,
            "URL to which each turn is sent. Placeholders are percent-encoded.",
        ),
        Field::optional("method", Kind::Choice(&["POST", "PUT", "PATCH", "GET"]), "The method.")
            .default("POST"),
        Field::optional(
            "headers",
            Kind::Map(&Kind::Text),
            "Headers of every request. Placeholders are supported.",
        ),
        Field::optional(
            "body",
            Kind::Json,
            "The body as JSON. `{{message}}`, `{{messages}}`, `{{history}}`, `{{attachments}}`, `{{options}}`, `{{conversation_id}}`, `{{turn}}`, `{{state}}`, `{{context}}`, `{{forwardedProps}}`, `{{user}}`, `{{team}}`, `{{locale}}`, `{{ctx}}` and their members (`{{options.connector}}`) are supported; a text that consists of one placeholder becomes its value.",
        ),
        Field::optional(
            "map",
            Kind::Shape(&HTTP_MAP),
            "Mapping of the response. Default: the whole body is the agent's reply.",
        ),
        Field::optional(
            "stream",
            Kind::Choice(&["none", "sse", "ndjson"]),
            "Format of the response: `none`: one document. `sse`: server-sent events. `ndjson`: one JSON document a line. `map` then applies to each event, and the agent's text arrives in chunks.",
        )
        .default("none"),
        Field::optional(
            "history",
            Kind::Choice(&["full", "delta", "auto"]),
            "`full`: `{{messages}}` and `{{history}}` contain the whole conversation. `delta`: only messages not sent yet. `auto` is `full`.",
        )
        .default("auto"),
        TIMEOUT,
        IDLE_TIMEOUT,
        DESCRIPTION,
        FOLDER,
        STARTED,
        ASSERTED,
        TURN_ASSERTED,
        AWAITED,
    ],
};

/// Shape of the mapping of an HTTP response.
pub static HTTP_MAP: Shape = Shape {
    name: "HttpMap",
    doc: "Mapping of an agent's JSON response, with JSONPath (RFC 9535).",
    fields: &[
        Field::required(
            "reply",
            Kind::NonEmptyText,
            "The agent's text. A path that selects several texts yields several messages; an object or a list becomes JSON text. It must select a value unless the agent called a tool.",
        ),
        Field::optional(
            "tool_calls",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_CALLS)]),
            "The tool calls: a path to the calls, or to a list of them.",
        ),
        Field::optional(
            "awaiting",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_AWAITING)]),
            "Whether the agent waits for input: a path to `true` or `false`, or to a text.",
        ),
        Field::optional("hint", Kind::NonEmptyText, "Description of the awaited input."),
        Field::optional(
            "conversation_id",
            Kind::NonEmptyText,
            "Conversation id assigned by the server: the first response must contain it, later requests send it.",
        ),
        Field::optional("usage", Kind::NonEmptyText, "Usage of the turn."),
        Field::optional("finish_reason", Kind::NonEmptyText, "Finish reason of the reply."),
        Field::optional(
            "error",
            Kind::NonEmptyText,
            "An error: a text, or an object with `message` and optional `code`. `null`, `false` and empty values mean no error.",
        ),
        Field::optional(
            "done",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_AWAITING)]),
            "With `stream`: marks the last event: the path selects a value other than `null` and `false`, or the value given with `equals`. Server-sent events may end with `[DONE]` instead.",
        ),
    ],
};

/// Shape of the mapping of tool calls.
pub static HTTP_CALLS: Shape = Shape {
    name: "HttpToolCalls",
    doc: "Mapping of tool calls.",
    fields: &[
        Field::required("path", Kind::NonEmptyText, "Path to the calls, or to a list of them."),
        Field::optional("name", Kind::NonEmptyText, "Name of the tool, relative to the call. Required.")
            .default("$.name"),
        Field::optional("arguments", Kind::NonEmptyText, "The arguments: JSON, or JSON in a text.")
            .default("$.arguments"),
        Field::optional("result", Kind::NonEmptyText, "Result of the tool.").default("$.result"),
        Field::optional("error", Kind::NonEmptyText, "Error of the tool.").default("$.error"),
        Field::optional("id", Kind::NonEmptyText, "Id of the call.").default("$.id"),
    ],
};

/// Shape of a comparison with a value.
pub static HTTP_AWAITING: Shape = Shape {
    name: "HttpComparison",
    doc: "True if a value equals another.",
    fields: &[
        Field::required("path", Kind::NonEmptyText, "Selects the value."),
        Field::required("equals", Kind::Json, "Expected value."),
    ],
};

/// Shape of a target that is a program.
pub static COMMAND_TARGET: Shape = Shape {
    name: "CommandTarget",
    doc: "An agent that is a program: it receives user input and replies on standard output.",
    fields: &[
        Field::required("type", Kind::Choice(&["command"]), "Type of the target."),
        Field::required(
            "command",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. Runs without a shell, so nothing is expanded.",
        ),
        Field::optional(
            "protocol",
            Kind::Choice(&["json_lines", "text"]),
            "`json_lines`: one process per conversation, one JSON object per line. `text`: one process per turn, which reads the message and prints the reply.",
        )
        .default("json_lines")
        .renamed_from("speaks"),
        Field::optional("cwd", Kind::NonEmptyText, "Working directory, relative to the project file.").default("."),
        Field::optional("env", Kind::Map(&Kind::Text), "Additional environment variables."),
        Field::optional(
            "history",
            Kind::Choice(&["full", "delta", "auto"]),
            "`full`: every message contains the history. `delta`: only the first message contains it. `auto` is `delta`.",
        )
        .default("auto"),
        TOOLS,
        TIMEOUT,
        IDLE_TIMEOUT,
        DESCRIPTION,
        FOLDER,
        ASSERTED,
        TURN_ASSERTED,
        AWAITED,
    ],
};

/// Shape of an embedded target, which runs in the same process.
pub static EMBEDDED_TARGET: Shape = Shape {
    name: "EmbeddedTarget",
    doc: "An embedded agent that runs in the same process: without a server and, with a scripted model, without network and key.",
    fields: &[
        Field::required("type", Kind::Choice(&["embedded"]), "Type of the target."),
        Field::required(
            "agent",
            Kind::NonEmptyText,
            "File of the agent, or folder that contains its `agent.yaml`. Relative to the project file.",
        ),
        Field::optional(
            "threadId",
            Kind::NonEmptyText,
            "Id of every conversation. Default: a new id for each case.",
        ),
        Field::optional("state", Kind::Json, "The shared state before the first turn."),
        Field::optional("context", Kind::List(&Kind::Shape(&CONTEXT)), "Context entries.").default("[]"),
        TOOLS,
        TIMEOUT,
        IDLE_TIMEOUT,
        DESCRIPTION,
        FOLDER,
        ASSERTED,
        TURN_ASSERTED,
        AWAITED,
    ],
};

/// Shape of a target that replays recordings.
pub static REPLAY_TARGET: Shape = Shape {
    name: "ReplayTarget",
    doc: "An agent that replays recordings, without model and network.",
    fields: &[
        Field::required("type", Kind::Choice(&["replay"]), "Type of the target."),
        Field::required(
            "from",
            Kind::NonEmptyText,
            "Folder of the recordings, or one recording for all cases. Relative to the project file.",
        ),
        Field::optional(
            "match",
            Kind::Choice(&["exact", "position"]),
            "`exact`: user inputs and answers to tools and interrupts must equal the recorded ones. `position`: only the position of a turn in the conversation matters.",
        )
        .default("exact"),
        TOOLS,
        TIMEOUT,
        DESCRIPTION,
        FOLDER,
        ASSERTED,
        TURN_ASSERTED,
        AWAITED,
    ],
};

/// Shape of the start command of an agent.
pub static START: Shape = Shape {
    name: "Start",
    doc: "Starts the agent under test. It is stopped together with its child processes.",
    fields: &[
        Field::required(
            "command",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. Runs without a shell.",
        ),
        Field::optional(
            "ready",
            Kind::Url,
            "The agent is ready when this URL responds with any status. Default: `endpoint` or `base_url`.",
        ),
        Field::optional("timeout_ms", MILLISECONDS, "Time limit for becoming ready.").default("60000"),
        Field::optional("cwd", Kind::NonEmptyText, "Working directory, relative to the project file.")
            .default("."),
        Field::optional("env", Kind::Map(&Kind::Text), "Additional environment variables."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::PROJECT.problems(), Vec::<String>::new());
    }
}
