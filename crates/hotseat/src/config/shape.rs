//! What may be written in a project file, as data.

use crate::cases::shape::{ASSERT_KIND, CLIENT_TOOL, CONTEXT};
use hotseat_document::{Field, Kind, Shape};

const MILLISECONDS: Kind = Kind::Integer { min: 1, max: 7 * 24 * 3600 * 1000 };

/// The project file.
pub static PROJECT: Shape = Shape {
    name: "Project",
    doc: "The project file `hotseat.yaml`: the agent under test, and defaults for all its suites.",
    fields: &[
        Field::optional("target", Kind::Shape(&TARGET), "The agent under test."),
        Field::optional(
            "suites",
            Kind::NonEmptyList(&Kind::NonEmptyText),
            "Which files `hotseat test` runs when it is given none: globs relative to the project file.",
        )
        .default("['**/*.test.{yaml,yml,json,jsonl}']"),
        Field::optional(
            "parallel",
            Kind::Integer { min: 1, max: 10_000 },
            "How many conversations are held at once.",
        )
        .default("8"),
        Field::optional(
            "secrets",
            Kind::List(&Kind::NonEmptyText),
            "Variables whose values never appear in any output: `ENV.NAME`, or `NAME` for what hooks give. Those used in headers and those named like secrets are found without it.",
        ),
    ],
};

/// The agent under test.
pub static TARGET: Shape = Shape {
    name: "Target",
    doc: "The agent under test and how it is reached.",
    fields: &[
        Field::optional("type", Kind::Choice(&["ag-ui"]), "The protocol it speaks.").default("ag-ui"),
        Field::required("endpoint", Kind::Url, "Where runs are posted."),
        Field::optional("headers", Kind::Map(&Kind::Text), "Headers of every request."),
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
        Field::optional("tools", Kind::List(&Kind::Shape(&CLIENT_TOOL)), "Client-side tools that are offered to the agent."),
        Field::optional(
            "protocol",
            Kind::Choice(&["lenient", "strict"]),
            "`strict`: an event that breaks a sequence rule of the protocol is an error. `lenient`: it is a note.",
        )
        .default("lenient"),
        Field::optional("timeout_ms", MILLISECONDS, "How long one turn may take.").default("120000"),
        Field::optional("idle_timeout_ms", MILLISECONDS, "How long nothing at all may be received.").default("60000"),
        Field::optional("start", Kind::Shape(&START), "Starts the agent before the first case and stops it after the last."),
        Field::optional("assert", ASSERT_KIND, "What is asserted of every conversation as a whole."),
        Field::optional("turn_assert", ASSERT_KIND, "What is asserted of every turn."),
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
            "It is ready when this address answers, with whatever status. Default: `endpoint`.",
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
