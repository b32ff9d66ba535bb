//! Shapes of the project file.

use super::agent_targets::{HEADERS, TARGET};
use crate::cases::shape::{RELIABILITY_KIND, RETRIES};
use crate::cases::topic_shape::{GRAPH_FIELD, SIMULATE_FIELD, TOPICS_FIELD};
use crate::cases::{CRITERIA_KIND, JUDGE_KIND, MCP_KIND, MILLISECONDS, MODELS_KIND, RATE};
use hotseat_document::{Kind, document_shape};
use hotseat_runtime::files::CONNECTOR;

/// Range of a number of bytes, events or calls.
const AMOUNT: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000_000 };

document_shape! {
    /// The project file `hotseat.yaml`: the agent under test, and defaults for all its suites.
    pub static PROJECT "Project" {
        /// The agent under test, or the name of one of `agents`. Default: the only one of `agents`.
        optional "target" = Kind::OneOf(&[Kind::NonEmptyText, Kind::Tagged(&TARGET)]),
        /// Agents by name. `hotseat test -n NAME` tests one of them.
        optional "agents" = Kind::Map(&Kind::Tagged(&TARGET)),
        /// Language models by name, for embedded agents and `options.connector`. Variables and files of
        /// unused ones need not exist.
        optional "connectors" = Kind::Map(&Kind::Tagged(&CONNECTOR)),
        /// MCP servers by name, which agents use instead of real ones. `${MCP.NAME.url}` is the address of a
        /// server: in settings of agents, in cases and in hooks of cases.
        optional "mcp" = MCP_KIND,
        /// Language models by name that are served to agents in place of a provider, in its protocols.
        /// `${MODELS.NAME.url}` is the base URL for the client of the agent: in settings of agents, in cases
        /// and in hooks of cases.
        optional "models" = MODELS_KIND,
        /// Commands and script functions by name, for `before` and `after` of cases, and for `--before` and
        /// `--after`. Commands run in the folder of the project file.
        optional "hooks" = Kind::Map(&Kind::Shape(&NAMED_HOOK)),
        /// Permissions of script functions. Anything not granted here is denied.
        optional "scripts" = Kind::Shape(&SCRIPTS),
        /// Default simulator: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the
        /// built-in prompt.
        optional "simulator" = Kind::NonEmptyText,
        /// Default judge: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the
        /// built-in prompts; or a mapping with further settings.
        optional "judge" = JUDGE_KIND,
        ..TOPICS_FIELD,
        ..GRAPH_FIELD,
        ..SIMULATE_FIELD,
        /// Criteria by name, for `satisfy` in all suites; suites and cases can add or replace criteria.
        optional "criteria" = CRITERIA_KIND,
        /// Globs of the files that `hotseat test` runs by default, relative to the project file.
        optional "suites" = Kind::NonEmptyList(&Kind::NonEmptyText),
            shown "['**/*.test.{yaml,yml,json,jsonl}', '**/*_test.{ts,mts,js,mjs}']",
        /// Maximum number of concurrent conversations.
        optional "parallel" = Kind::Integer { min: 1, max: 10_000 }, shown "8",
        /// Number of attempts per case, to measure its stability.
        optional "runs" = Kind::Integer { min: 1, max: 10_000 }, shown "1",
        /// Minimum pass rate of a case that is repeated (`runs`), up to 1: 0.8 or 80%.
        optional "min_pass_rate" = RATE, shown "1",
        /// Number of retries of a failed case that is not repeated.
        optional "retries" = RETRIES, shown "0",
        /// Default required pass rate: each case is repeated until the rate is confirmed or refuted.
        optional "reliability" = RELIABILITY_KIND,
        /// Maximum number of invalid attempts of a repeated case that are replaced, for example after an
        /// error of a role or the machine. Default: one for each ten runs, and at least 3.
        optional "max_invalid" = Kind::Integer { min: 0, max: 10_000 }, other_names &["redraws"],
        /// Traffic limits of agents. A case whose agent exceeds a limit fails (`limit`); data received until
        /// then is kept.
        optional "limits" = Kind::Shape(&LIMITS),
        /// Currency of all prices and costs, for display: `EUR` or `$`.
        optional "currency" = Kind::NonEmptyText,
        /// Storage of runs in `.hotseat/runs.db` next to this file: `false` disables it, a mapping sets
        /// limits.
        optional "store" = Kind::OneOf(&[Kind::Bool, Kind::Shape(&STORE)]), shown "true",
        /// Variables whose values are redacted in all output: `ENV.NAME` for variables of the environment,
        /// `NAME` for those set by hooks or the environment. Variables used in headers and keys, and variables with names of secrets, are detected
        /// automatically.
        optional "secrets" = Kind::List(&Kind::NonEmptyText),
    }

    /// Permissions of script functions. Anything not granted here is denied.
    pub static SCRIPTS "Scripts" {
        /// Hosts that `fetch` may contact: `api.example.com`, `*.example.com` for all subdomains,
        /// `127.0.0.1:8080` for one port only. Redirects to other hosts are not followed.
        optional "hosts" = Kind::List(&Kind::NonEmptyText),
        /// Files and folders that `files` may read, relative to the project file; `.` is the whole project.
        /// Files outside of the project folder cannot be read.
        optional "read" = Kind::List(&Kind::NonEmptyText),
        /// Files and folders that `files` may read and write.
        optional "write" = Kind::List(&Kind::NonEmptyText),
        /// Names of environment variables visible in `process.env`.
        optional "env" = Kind::List(&Kind::NonEmptyText),
        /// Commands and requests by name, for `Process(name, …)`. `models.*` matches every name that starts
        /// with `models.`.
        optional "processes" = Kind::Map(&Kind::Shape(&PROCESS)),
        /// Default time limit of a function call, including everything it waits for. Default: 10 s for
        /// functions that judge, 30 s for hooks, 120 s for simulated users, judges and generators.
        optional "timeout_ms" = MILLISECONDS,
        /// Memory limit of a function call in MiB.
        optional "memory_mb" = Kind::Integer { min: 1, max: 4096 }, shown "64",
    }

    /// A command or script function that runs before or after cases or runs.
    pub static NAMED_HOOK "NamedHook" {
        /// The program and its arguments. Runs without a shell, so nothing is expanded.
        optional "cmd" = Kind::NonEmptyList(&Kind::Text),
        /// Instead of a command: a script function, as `scripts:path.function`. A function needs an entry
        /// here only for a name or a `timeout_ms` of its own.
        optional "use" = Kind::NonEmptyText,
        /// Time limit. A command is killed with its children. Default: 30 s, for functions `timeout_ms` under
        /// `scripts`.
        optional "timeout_ms" = MILLISECONDS,
        /// Additional environment variables of the command.
        optional "env" = Kind::Map(&Kind::Text),
        /// Working directory of the command, relative to the project file.
        optional "cwd" = Kind::NonEmptyText, shown ".",
    }

    /// A command or request that scripts call by name. It receives `{name, args, ctx}` as JSON, on standard
    /// input or in the body. Its output or response is parsed as JSON; an empty one is null.
    pub static PROCESS "Process" {
        /// The program and its arguments. Runs without a shell, so nothing is expanded.
        optional "cmd" = Kind::NonEmptyList(&Kind::Text),
        /// Working directory of the command, relative to the project file.
        optional "cwd" = Kind::NonEmptyText, shown ".",
        /// Additional environment variables of the command.
        optional "env" = Kind::Map(&Kind::Text),
        /// URL of the request. Redirects are not followed.
        optional "url" = Kind::Url,
        /// HTTP method of the request.
        optional "method" = Kind::NonEmptyText, shown "POST",
        ..HEADERS,
        /// Time limit of the process.
        optional "timeout_ms" = MILLISECONDS, shown "30000",
    }

    /// Traffic limits of agents.
    pub static LIMITS "Limits" {
        /// In one turn. Default: 100000000 bytes, 500000 events, 200000 calls.
        optional "turn" = Kind::Shape(&BOUNDS),
        /// In one conversation. Default: 400000000 bytes, 2000000 events, 500000 calls.
        optional "conversation" = Kind::Shape(&BOUNDS),
        /// In all conversations of a run together. Default: 1000000000000 bytes, 1000000000 events, 100000000
        /// calls.
        optional "run" = Kind::Shape(&BOUNDS),
    }

    /// Traffic limits of one scope.
    pub static BOUNDS "Bounds" {
        /// Bytes received, or the approximate size of the recorded data if that is larger.
        optional "bytes" = AMOUNT,
        /// Events recorded in the trace.
        optional "events" = AMOUNT,
        /// Tool calls.
        optional "calls" = AMOUNT,
    }

    /// Limits of stored runs. The oldest runs are deleted first; the latest run is never deleted.
    pub static STORE "Store" {
        /// Maximum age: `90d`, `12h`, `4w`.
        optional "max_age" = Kind::NonEmptyText, other_names &["keep"], shown "\"90d\"",
        /// Maximum total size: `1GB`, `500MB`.
        optional "max_size" = Kind::NonEmptyText, shown "\"1GB\"",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::PROJECT.problems(), Vec::<String>::new());
    }
}
