//! Shapes of the project file.

use super::agent_targets::{HEADERS, TARGET};
use crate::cases::shape::{RELIABILITY_KIND, RETRIES};
use crate::cases::topic_shape::{GRAPH_FIELD, SIMULATE_FIELD, TOPICS_FIELD};
use crate::cases::{CRITERIA_KIND, JUDGE_KIND, MCP_KIND, MILLISECONDS, MODELS_KIND};
use hotseat_document::{Field, Kind, Shape};
use hotseat_runtime::files::CONNECTOR;

/// Range of a number of bytes, events or calls.
const AMOUNT: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000_000 };

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
            "mcp",
            MCP_KIND,
            "MCP servers by name, which agents use instead of real ones. `${MCP.NAME.url}` is the address of a server: in settings of agents, in cases and in hooks of cases.",
        ),
        Field::optional(
            "models",
            MODELS_KIND,
            "Language models by name that are served to agents in place of a provider, in its protocols. `${MODELS.NAME.url}` is the base URL for the client of the agent: in settings of agents, in cases and in hooks of cases.",
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
        .other_names(&["redraws"]),
        Field::optional(
            "limits",
            Kind::Shape(&LIMITS),
            "Traffic limits of agents. A case whose agent exceeds a limit fails (`limit`); data received until then is kept.",
        ),
        Field::optional(
            "currency",
            Kind::NonEmptyText,
            "Currency of all prices and costs, for display: `EUR` or `$`.",
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
            .other_names(&["keep"]),
        Field::optional("max_size", Kind::NonEmptyText, "Maximum total size: `1GB`, `500MB`.")
            .default("\"1GB\""),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::PROJECT.problems(), Vec::<String>::new());
    }
}
