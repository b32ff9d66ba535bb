//! What may be written in a project file, as data.

use crate::cases::shape::{
    ASSERT_KIND, AWAITING, CLIENT_TOOL, CONTEXT, CRITERIA_KIND, JUDGE_KIND, RELIABILITY_KIND, RETRIES,
};
use crate::cases::topic_shape::{GRAPH_FIELD, SIMULATE_FIELD, TOPICS_FIELD};
use hotseat_document::{Field, Kind, Shape, Tagged};
use hotseat_runtime::files::CONNECTOR;

/// A number of bytes, events or calls.
const AMOUNT: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000_000 };
const MILLISECONDS: Kind = Kind::Integer { min: 1, max: 7 * 24 * 3600 * 1000 };

/// The project file.
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
            "Language models by name, for embedded agents and `options.connector`. One that is not used needs none of its variables and files.",
        ),
        Field::optional(
            "hooks",
            Kind::Map(&Kind::Shape(&NAMED_HOOK)),
            "Commands, and functions of scripts, by name: cases name them under `before` and `after`, the command line behind `--before` and `--after`. Commands run in the folder of the project file.",
        ),
        Field::optional(
            "scripts",
            Kind::Shape(&SCRIPTS),
            "What functions of scripts may do beside computing. What is not granted here they cannot do.",
        ),
        Field::optional(
            "simulator",
            Kind::NonEmptyText,
            "Who simulates users where cases do not say it: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the built-in prompt.",
        ),
        Field::optional(
            "judge",
            JUDGE_KIND,
            "Who judges where suites, cases and assertions do not say it: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the built-in prompts; or a mapping that says how, too.",
        ),
        TOPICS_FIELD,
        GRAPH_FIELD,
        SIMULATE_FIELD,
        Field::optional(
            "criteria",
            CRITERIA_KIND,
            "Criteria by name, for `satisfy` in all suites; suites and cases add theirs, and the same name replaces.",
        ),
        Field::optional(
            "suites",
            Kind::NonEmptyList(&Kind::NonEmptyText),
            "Which files `hotseat test` runs when it is given none: globs relative to the project file.",
        )
        .default("['**/*.test.{yaml,yml,json,jsonl}', '**/*_test.{ts,mts,js,mjs}']"),
        Field::optional(
            "parallel",
            Kind::Integer { min: 1, max: 10_000 },
            "How many conversations are held at once.",
        )
        .default("8"),
        Field::optional(
            "runs",
            Kind::Integer { min: 1, max: 10_000 },
            "How many times each case is run, to see how steady it is.",
        )
        .default("1"),
        Field::optional(
            "min_pass_rate",
            Kind::Number,
            "Where cases are run several times: how much of the runs of a case has to pass, from 0 to 1.",
        )
        .default("1"),
        Field::optional(
            "retries",
            RETRIES,
            "Where cases are run once: how often one that fails is tried again.",
        )
        .default("0"),
        Field::optional(
            "reliability",
            RELIABILITY_KIND,
            "How often each case has to pass that does not say it: it is run until that is shown or refuted.",
        ),
        Field::optional(
            "redraws",
            Kind::Integer { min: 0, max: 10_000 },
            "Where a case is run several times: how many of its runs are made again because a helper or the machine has spoiled them. Default: one for each ten runs, and at least 3.",
        ),
        Field::optional(
            "limits",
            Kind::Shape(&LIMITS),
            "How much agents may send and do. An agent that passes a limit has failed its case (`limit`); what it sent until then is kept.",
        ),
        Field::optional(
            "store",
            Kind::OneOf(&[Kind::Bool, Kind::Shape(&STORE)]),
            "Whether runs are kept in `.hotseat/runs.db` beside this file, and how many of them: `false` keeps none.",
        )
        .default("true"),
        Field::optional(
            "secrets",
            Kind::List(&Kind::NonEmptyText),
            "Variables whose values never appear in any output: `ENV.NAME`, or `NAME` for what hooks give. Those used in headers and keys and those named like secrets are found without it.",
        ),
    ],
};

/// What scripts may do.
pub static SCRIPTS: Shape = Shape {
    name: "Scripts",
    doc: "What functions of scripts may do beside computing: nothing that is not written here.",
    fields: &[
        Field::optional(
            "hosts",
            Kind::List(&Kind::NonEmptyText),
            "Where `fetch` may go: `api.example.com`, `*.example.com` for everything below a name, `127.0.0.1:8080` for one port only. Redirects to other hosts are not followed.",
        ),
        Field::optional(
            "read",
            Kind::List(&Kind::NonEmptyText),
            "Files and folders that `files` may read, relative to the project file; `.` is all of the project. Nothing outside of the project's folder is ever read.",
        ),
        Field::optional(
            "write",
            Kind::List(&Kind::NonEmptyText),
            "Files and folders that `files` may read and change.",
        ),
        Field::optional(
            "env",
            Kind::List(&Kind::NonEmptyText),
            "Environment variables that `process.env` has, by their names.",
        ),
        Field::optional(
            "processes",
            Kind::Map(&Kind::Shape(&PROCESS)),
            "What `Process(name, …)` calls, by its names: commands and requests. `models.*` stands for every name that begins with `models.`.",
        ),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "How long one call of a function may take, all that it waits for included, where an assertion or a hook does not say so. Default: 10 s for functions that judge, 30 s for hooks, 120 s for simulated users, judges and generators.",
        ),
        Field::optional(
            "memory_mb",
            Kind::Integer { min: 1, max: 4096 },
            "How many MiB one call of a function may hold.",
        )
        .default("64"),
    ],
};

/// A hook by its name.
pub static NAMED_HOOK: Shape = Shape {
    name: "NamedHook",
    doc: "A command or a function of a script that runs around cases or runs.",
    fields: &[
        Field::optional(
            "cmd",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. No shell is involved: nothing is expanded.",
        ),
        Field::optional(
            "use",
            Kind::NonEmptyText,
            "In place of a command: the function, as `scripts:path.function`. One that is in no need of a name or of a `timeout_ms` of its own need not be listed here.",
        ),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "How long it may run. A command is killed then, with its children. Default: 30 s, for functions `timeout_ms` under `scripts`.",
        ),
        Field::optional("env", Kind::Map(&Kind::Text), "Environment variables added for the command."),
        Field::optional(
            "cwd",
            Kind::NonEmptyText,
            "The working folder of the command, relative to the project file.",
        )
        .default("."),
    ],
};

/// What a script calls by a name.
pub static PROCESS: Shape = Shape {
    name: "Process",
    doc: "What a script calls by a name: a command or a request. It is told `{name, args, ctx}` as JSON, on standard input or as the body, and its answer is what it prints, or answers, as JSON; nothing is null.",
    fields: &[
        Field::optional(
            "cmd",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. No shell is involved: nothing is expanded.",
        ),
        Field::optional(
            "cwd",
            Kind::NonEmptyText,
            "The working folder of the command, relative to the project file.",
        )
        .default("."),
        Field::optional("env", Kind::Map(&Kind::Text), "Environment variables added for the command."),
        Field::optional("url", Kind::Url, "Where the request is sent. Redirects are not followed."),
        Field::optional("method", Kind::NonEmptyText, "The method of the request.").default("POST"),
        HEADERS,
        Field::optional("timeout_ms", MILLISECONDS, "How long it may take.").default("30000"),
    ],
};

/// How much agents may send and do.
pub static LIMITS: Shape = Shape {
    name: "Limits",
    doc: "How much agents may send and do.",
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

/// The most that may come from agents.
pub static BOUNDS: Shape = Shape {
    name: "Bounds",
    doc: "The most that may come from agents.",
    fields: &[
        Field::optional(
            "bytes",
            AMOUNT,
            "Bytes that are received, or that Hotseat needs about to keep what was recorded of them.",
        ),
        Field::optional("events", AMOUNT, "Events that are recorded in the trace."),
        Field::optional("calls", AMOUNT, "Tool calls."),
    ],
};

/// How many runs are kept.
pub static STORE: Shape = Shape {
    name: "Store",
    doc: "How many runs are kept. The oldest are given up first, and the last one never.",
    fields: &[
        Field::optional("keep", Kind::NonEmptyText, "How long: `90d`, `12h`, `4w`.").default("\"90d\""),
        Field::optional("max_size", Kind::NonEmptyText, "How much room they may take: `1GB`, `500MB`.")
            .default("\"1GB\""),
    ],
};

/// An agent and how it is reached.
pub static TARGET: Tagged = Tagged {
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
const TIMEOUT: Field =
    Field::optional("timeout_ms", MILLISECONDS, "How long one turn may take.").default("120000");
const IDLE_TIMEOUT: Field =
    Field::optional("idle_timeout_ms", MILLISECONDS, "How long nothing at all may be received.")
        .default("60000");
const FOLDER: Field = Field::optional(
    "folder",
    Kind::NonEmptyText,
    "For one of `agents`: suites below this folder test it, whatever `target` says. Relative to the project file.",
);
const DESCRIPTION: Field = Field::optional(
    "description",
    Kind::Text,
    "What the agent is for: told to whoever makes cases up for it.",
);
const STARTED: Field = Field::optional(
    "start",
    Kind::Shape(&START),
    "Starts the agent before the first case and stops it after the last.",
);
const ASSERTED: Field =
    Field::optional("assert", ASSERT_KIND, "What is asserted of every conversation as a whole.");
const AWAITED: Field = Field::optional(
    "awaiting",
    Kind::Shape(&AWAITING),
    "What shows that the agent waits for an input, where it does not say so itself.",
);
const TURN_ASSERTED: Field = Field::optional("turn_assert", ASSERT_KIND, "What is asserted of every turn.");

/// An agent that speaks AG-UI.
pub static AG_UI_TARGET: Shape = Shape {
    name: "AgUiTarget",
    doc: "An agent that speaks AG-UI.",
    fields: &[
        Field::optional("type", Kind::Choice(&["ag_ui", "ag-ui"]), "How the agent is reached.").default("ag_ui"),
        Field::required("endpoint", Kind::Url, "Where runs are posted."),
        HEADERS,
        Field::optional(
            "envelope",
            Kind::Choice(&["none", "copilotkit"]),
            "What is put around the run input: `copilotkit` is the single route of CopilotKit's runtime.",
        )
        .default("none"),
        Field::optional("agentId", Kind::NonEmptyText, "With `copilotkit`: which of the runtime's agents is meant."),
        Field::optional("threadId", Kind::NonEmptyText, "Id of every conversation. Default: a fresh one for each case."),
        Field::optional("state", Kind::Json, "The shared state before the first turn.").default("{}"),
        Field::optional("context", Kind::List(&Kind::Shape(&CONTEXT)), "Context entries.").default("[]"),
        Field::optional("forwardedProps", Kind::JsonMap, "What is forwarded to the agent.").default("{}"),
        TOOLS,
        Field::optional(
            "protocol",
            Kind::Choice(&["lenient", "strict"]),
            "`strict`: an event that breaks a sequence rule of the protocol is an error. `lenient`: it is a note.",
        )
        .default("lenient"),
        Field::optional("timing", Kind::Shape(&TIMING), "Which times of events count."),
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

/// Which times of events count.
pub static TIMING: Shape = Shape {
    name: "EventTiming",
    doc: "Which times of events count.",
    fields: &[Field::optional(
        "source",
        Kind::Choice(&["arrival", "events"]),
        "`arrival`: when an event arrived. `events`: the `timestamp` of an event, in Unix milliseconds; if one lies outside the time between the request and its arrival, arrival counts from there on.",
    )
    .default("arrival")],
};

/// An agent behind OpenAI-compatible chat completions.
pub static OPENAI_TARGET: Shape = Shape {
    name: "OpenAiTarget",
    doc: "An agent behind chat completions, as OpenAI defined them and many servers speak them.",
    fields: &[
        Field::required("type", Kind::Choice(&["openai"]), "How the agent is reached."),
        Field::required(
            "base_url",
            Kind::Url,
            "Where the server is; `/chat/completions` is added to its path if it is not there.",
        ),
        Field::required("model", Kind::NonEmptyText, "The model, in the server's words."),
        Field::optional("api_key", Kind::Text, "Sent as `Authorization: Bearer …`, and never shown. An empty one is not sent."),
        HEADERS,
        Field::optional("system", Kind::Text, "A system message before everything that is said."),
        Field::optional("stream", Kind::Bool, "Whether replies are streamed.").default("true"),
        Field::optional("temperature", Kind::Number, "The temperature. Default: the server's."),
        Field::optional(
            "body",
            Kind::JsonMap,
            "Further members of every request. They replace those of the same name; `null` takes one away. `{{conversation_id}}`, `{{turn}}`, `{{user}}`, `{{team}}`, `{{locale}}`, `{{ctx}}` and `{{options}}` are filled in, and their members.",
        ),
        Field::optional(
            "history",
            Kind::Choice(&["full", "delta", "auto"]),
            "`full`: every request carries the whole conversation, as the protocol wants it. `delta`: only what is new, for a server that keeps conversations itself. `auto` is `full`.",
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

/// An agent behind an HTTP interface of its own.
pub static HTTP_TARGET: Shape = Shape {
    name: "HttpTarget",
    doc: "An agent behind an HTTP interface of its own: a template says what is sent, paths say what is read.",
    fields: &[
        Field::required("type", Kind::Choice(&["http"]), "How the agent is reached."),
        Field::required(
            "endpoint",
            Kind::Url,
            "Where each turn is sent. Placeholders are filled in, percent-encoded.",
        ),
        Field::optional("method", Kind::Choice(&["POST", "PUT", "PATCH", "GET"]), "The method.")
            .default("POST"),
        Field::optional(
            "headers",
            Kind::Map(&Kind::Text),
            "Headers of every request. Placeholders are filled in.",
        ),
        Field::optional(
            "body",
            Kind::Json,
            "The body as JSON. `{{message}}`, `{{messages}}`, `{{history}}`, `{{attachments}}`, `{{options}}`, `{{conversation_id}}`, `{{turn}}`, `{{state}}`, `{{context}}`, `{{forwardedProps}}`, `{{user}}`, `{{team}}`, `{{locale}}`, `{{ctx}}` and their members (`{{options.connector}}`) are filled in; a text that is one placeholder as a whole becomes its value.",
        ),
        Field::optional(
            "map",
            Kind::Shape(&HTTP_MAP),
            "Where things stand in the reply. Default: the whole body is what the agent says.",
        ),
        Field::optional(
            "stream",
            Kind::Choice(&["none", "sse", "ndjson"]),
            "In which form the answer comes: `none`: one document. `sse`: server-sent events. `ndjson`: one JSON document a line. `map` is then used on each event, and what the agent says comes in pieces.",
        )
        .default("none"),
        Field::optional(
            "history",
            Kind::Choice(&["full", "delta", "auto"]),
            "`full`: `{{messages}}` and `{{history}}` stand for the whole conversation. `delta`: for what the agent has not been told yet. `auto` is `full`.",
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

/// Where things stand in the reply of an HTTP agent.
pub static HTTP_MAP: Shape = Shape {
    name: "HttpMap",
    doc: "Where things stand in the JSON that an agent answers with, as JSONPath (RFC 9535).",
    fields: &[
        Field::required(
            "reply",
            Kind::NonEmptyText,
            "What the agent says. A path that selects several texts makes several messages; an object or a list is taken as JSON text. It has to select something, unless the agent called a tool.",
        ),
        Field::optional(
            "tool_calls",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_CALLS)]),
            "The tool calls: a path that selects them, or their list.",
        ),
        Field::optional(
            "awaiting",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_AWAITING)]),
            "Whether the agent waits for an input: a path to `true` or `false`, or to a word.",
        ),
        Field::optional("hint", Kind::NonEmptyText, "What it waits for."),
        Field::optional(
            "conversation_id",
            Kind::NonEmptyText,
            "The id that the server gives the conversation: the first reply must have it, later requests carry it.",
        ),
        Field::optional("usage", Kind::NonEmptyText, "What the turn cost."),
        Field::optional("finish_reason", Kind::NonEmptyText, "Why the reply ends where it does."),
        Field::optional(
            "error",
            Kind::NonEmptyText,
            "An error: a text, or an object with a `message` and maybe a `code`. What is `null`, `false` or empty is none.",
        ),
        Field::optional(
            "done",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&HTTP_AWAITING)]),
            "With `stream`: which event is the last one: the path selects something in it but `null` and `false`, or what is given with `equals`. Server-sent events may end with `[DONE]` instead.",
        ),
    ],
};

/// Where tool calls stand.
pub static HTTP_CALLS: Shape = Shape {
    name: "HttpToolCalls",
    doc: "Where tool calls stand, and what stands where in each of them.",
    fields: &[
        Field::required("path", Kind::NonEmptyText, "Selects the calls, or their list."),
        Field::optional(
            "name",
            Kind::NonEmptyText,
            "Name of the tool, from the call on. It has to be there.",
        )
        .default("$.name"),
        Field::optional("arguments", Kind::NonEmptyText, "The arguments: JSON, or JSON in a text.")
            .default("$.arguments"),
        Field::optional("result", Kind::NonEmptyText, "What the tool returned.").default("$.result"),
        Field::optional("error", Kind::NonEmptyText, "Why the tool failed.").default("$.error"),
        Field::optional("id", Kind::NonEmptyText, "Id of the call.").default("$.id"),
    ],
};

/// A value that is compared with another.
pub static HTTP_AWAITING: Shape = Shape {
    name: "HttpComparison",
    doc: "Holds when a value is equal to another.",
    fields: &[
        Field::required("path", Kind::NonEmptyText, "Selects the value."),
        Field::required("equals", Kind::Json, "What it is equal to then."),
    ],
};

/// An agent that is a program.
pub static COMMAND_TARGET: Shape = Shape {
    name: "CommandTarget",
    doc: "An agent that is a program: it is told what the user says and answers on its standard output.",
    fields: &[
        Field::required("type", Kind::Choice(&["command"]), "How the agent is reached."),
        Field::required(
            "command",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. No shell is involved: nothing is expanded.",
        ),
        Field::optional(
            "speaks",
            Kind::Choice(&["json_lines", "text"]),
            "`json_lines`: one process a conversation, a JSON object a line. `text`: one process a turn; it reads the message, and all that it prints is the reply.",
        )
        .default("json_lines"),
        Field::optional("cwd", Kind::NonEmptyText, "Its working folder, relative to the project file.").default("."),
        Field::optional("env", Kind::Map(&Kind::Text), "Environment variables added for it."),
        Field::optional(
            "history",
            Kind::Choice(&["full", "delta", "auto"]),
            "`full`: every message carries what was said before. `delta`: only the first one, what was said before it. `auto` is `delta`.",
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

/// An agent of Hotseat's own, in the same process.
pub static EMBEDDED_TARGET: Shape = Shape {
    name: "EmbeddedTarget",
    doc: "An agent of Hotseat's own, in the same process: no server, and with a scripted model no network and no key.",
    fields: &[
        Field::required("type", Kind::Choice(&["embedded"]), "How the agent is reached."),
        Field::required(
            "agent",
            Kind::NonEmptyText,
            "The file of the agent, or the folder that holds its `agent.yaml`. Relative to the project file.",
        ),
        Field::optional(
            "threadId",
            Kind::NonEmptyText,
            "Id of every conversation. Default: a fresh one for each case.",
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

/// An agent that does again what it once did.
pub static REPLAY_TARGET: Shape = Shape {
    name: "ReplayTarget",
    doc: "An agent that does again what it did when it was recorded: no model, no network.",
    fields: &[
        Field::required("type", Kind::Choice(&["replay"]), "How the agent is reached."),
        Field::required(
            "from",
            Kind::NonEmptyText,
            "The folder of the recordings, or one recording that serves every case. Relative to the project file.",
        ),
        Field::optional(
            "match",
            Kind::Choice(&["exact", "position"]),
            "`exact`: what the user says, and what the test answers to tools and interrupts, has to be as it was recorded. `position`: only the place of a turn in the conversation counts.",
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

/// How the agent under test is started.
pub static START: Shape = Shape {
    name: "Start",
    doc: "How the agent under test is started. It is stopped with everything that it has started itself.",
    fields: &[
        Field::required(
            "command",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. No shell is involved.",
        ),
        Field::optional(
            "ready",
            Kind::Url,
            "It is ready when this address answers, with whatever status. Default: `endpoint` or `base_url`.",
        ),
        Field::optional("timeout_ms", MILLISECONDS, "How long it may take until it is ready.")
            .default("60000"),
        Field::optional("cwd", Kind::NonEmptyText, "Its working folder, relative to the project file.")
            .default("."),
        Field::optional("env", Kind::Map(&Kind::Text), "Environment variables added for it."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::PROJECT.problems(), Vec::<String>::new());
    }
}
