//! Shapes of topics, graphs and simulated users.

use super::assertions::{ASSERTION, CRITERIA_KIND, OWN_ASSERT_KIND};
use super::judging::JUDGE_KIND;
use super::mcp_shape::MCP_KIND;
use super::models_shape::MODELS_KIND;
use hotseat_document::{Field, Kind, Shape};

const NAMES: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::List(&Kind::NonEmptyText)]);
const TEXTS: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);
const TURNS: Kind = Kind::Integer { min: 1, max: 10_000 };

static TOPIC_KIND: Kind = Kind::Shape(&TOPIC);
static TRIGGER_KIND: Kind = Kind::Shape(&TRIGGER);
static TRIGGER_KINDS: [Kind; 2] = [Kind::Shape(&TRIGGER), Kind::NonEmptyList(&TRIGGER_KIND)];

const CHARACTERISTIC: Field = Field::optional(
    "characteristic",
    Kind::NonEmptyText,
    "Description of the topic, used by the judge to classify turns.",
);
const AGENT_INTENT: Field =
    Field::optional("agent_intent", Kind::NonEmptyText, "Intended outcome of the agent in this topic.");
const INTENT_MEASURED: Field = Field::optional(
    "evaluate_intent",
    Kind::Bool,
    "Whether a judge evaluates for each visit if the agent pursues `agent_intent`. Informational only.",
)
.default("false");
const TRIGGERS: Field = Field::optional(
    "triggers",
    Kind::OneOf(&TRIGGER_KINDS),
    "Conditions that assign a turn to this topic without a judge. One of them is enough.",
);
const ASSERTED: Field = Field::optional(
    "assert",
    OWN_ASSERT_KIND,
    "Assertions about the turns of each visit, evaluated when the conversation leaves the topic or ends.",
)
.aliases(&["assertions"]);
const MEASURED: Field =
    Field::optional("evaluate", OWN_ASSERT_KIND, "Informational assertions about the turns of each visit.");
const TURN_ASSERTED: Field =
    Field::optional("turn_assert", OWN_ASSERT_KIND, "Assertions about every turn of each visit.");
const TURN_MEASURED: Field = Field::optional(
    "turn_evaluate",
    OWN_ASSERT_KIND,
    "Informational assertions about every turn of each visit.",
);

/// Shape of a topic.
pub static TOPIC: Shape = Shape {
    name: "Topic",
    doc: "A phase of a conversation, with its triggers and assertions.",
    fields: &[
        CHARACTERISTIC,
        AGENT_INTENT,
        INTENT_MEASURED,
        TRIGGERS,
        ASSERTED,
        MEASURED,
        TURN_ASSERTED,
        TURN_MEASURED,
    ],
};

/// Keys of a graph topic that do not define the topic itself.
pub const GRAPH_ONLY_KEYS: &[&str] = &["next", "from", "max_turns"];

/// Shape of a topic in a graph.
pub static GRAPH_TOPIC: Shape = Shape {
    name: "GraphTopic",
    doc: "A topic in a graph. Without keys that define the topic, it refers to `topics`; with such keys it is local to this graph.",
    fields: &[
        Field::optional(
            "next",
            NAMES,
            "Topics that may follow, in the order in which they are tried. Default: none.",
        ),
        Field::optional("from", Kind::Choice(&["any"]), "`any`: the topic may follow every other topic."),
        Field::optional(
            "max_turns",
            TURNS,
            "Maximum number of turns in this topic over all visits. The case fails if it is exceeded.",
        ),
        CHARACTERISTIC,
        AGENT_INTENT,
        INTENT_MEASURED,
        TRIGGERS,
        ASSERTED,
        MEASURED,
        TURN_ASSERTED,
        TURN_MEASURED,
    ],
};

/// Shape of a topic trigger.
pub static TRIGGER: Shape = Shape {
    name: "Trigger",
    doc: "Condition that assigns a turn to a topic: one of the keys that start with `on_` or `after_`.",
    fields: &[
        Field::optional("on_tool_call", Kind::NonEmptyText, "Name of a tool called in the turn."),
        Field::optional(
            "with_params",
            Kind::JsonMap,
            "For `on_tool_call`: arguments of the call. Other arguments are allowed; text that starts with `regex:` is a pattern.",
        ),
        Field::optional("on_response_match", Kind::Pattern, "Pattern for the agent's text."),
        Field::optional("on_user_match", Kind::Pattern, "Pattern for the user's text."),
        Field::optional(
            "after_turns_in",
            Kind::NonEmptyText,
            "A topic with at least `count` turns so far, including this one if it would stay in the topic.",
        ),
        Field::optional("count", TURNS, "For `after_turns_in`: number of turns.").default("1"),
        Field::optional(
            "on_condition",
            Kind::NonEmptyText,
            "A script function, as `scripts:path.function`, that returns true or false.",
        ),
    ],
};

/// The key `topics`.
pub const TOPICS_FIELD: Field = Field::optional(
    "topics",
    Kind::Map(&TOPIC_KIND),
    "Topics by name, for the `graph`. The same name replaces an inherited topic.",
);

/// The key `graph`.
pub const GRAPH_FIELD: Field = Field::optional(
    "graph",
    Kind::Map(&GRAPH_ENTRY),
    "Transitions between topics: each topic with its successors. Conversations start in the first topic. Topics are tracked only if there is a graph.",
);

static GRAPH_ENTRY: Kind = Kind::OneOf(&[
    Kind::Null,
    Kind::NonEmptyText,
    Kind::List(&Kind::NonEmptyText),
    Kind::Shape(&GRAPH_TOPIC),
]);

macro_rules! user_fields {
    ($($more:expr),* $(,)?) => {
        &[
            $($more,)*
            Field::optional("role", Kind::NonEmptyText, "Role of the user."),
            Field::optional("personality", TEXTS, "Personality of the user: a text, or a list of notes. A text replaces the inherited value, notes are appended to inherited notes."),
            Field::optional("context", TEXTS, "Background knowledge of the user: a text, or a list of notes. A text replaces the inherited value, notes are appended to inherited notes."),
            Field::optional("should", TEXTS, "Desired behaviour of the user. Appended to inherited entries."),
            Field::optional("should_not", TEXTS, "Behaviour that the user avoids. Appended to inherited entries."),
            Field::optional(
                "never_says",
                Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]),
                "Patterns that the user's messages must not match. A violation makes the attempt invalid. Appended to inherited entries.",
            ),
        ]
    };
}

macro_rules! simulation_fields {
    ($($more:expr),* $(,)?) => {
        user_fields![
            $($more,)*
            Field::optional("use", Kind::NonEmptyText, "The simulator: `agents:ID` or the bare id; `connectors:NAME` for a model with the built-in prompt. Default: `--simulator`, or `simulator` of the project file."),
            Field::optional("options", Kind::JsonMap, "Further options for the simulator: `metadata`, `connector`."),
            Field::optional("max_turns", Kind::Integer { min: 0, max: 10_000 }, "Maximum number of inputs of the user. Reaching it is not a failure by itself. Default: 15."),
            Field::optional(
                "stop_when",
                Kind::OneOf(&[Kind::NonEmptyText, Kind::Tagged(&ASSERTION), Kind::NonEmptyList(&Kind::Tagged(&ASSERTION))]),
                "Ends the conversation: assertions that must all pass on the conversation so far, or a script function, as `scripts:path.function`. Evaluated after each turn.",
            ),
            Field::optional("max_repeats", Kind::Integer { min: 0, max: 1_000 }, "Number of times that the user may repeat a message before the attempt is invalid; 0: unlimited. Default: 2."),
            Field::optional("during_topic", Kind::Map(&Kind::Shape(&DURING_TOPIC)), "Changes to the user while the conversation is in a topic."),
        ]
    };
}

/// Shape of the changes to a simulated user during a topic.
pub static DURING_TOPIC: Shape = Shape {
    name: "DuringTopic",
    doc: "Changes to a simulated user while the conversation is in a topic.",
    fields: user_fields![],
};

/// Shape of shared settings of simulated users.
pub static USER: Shape = Shape {
    name: "SimulatedUser",
    doc: "Settings shared by all simulated users.",
    fields: simulation_fields![],
};

/// Shape of the simulated user of a case.
pub static SIMULATE: Shape = Shape {
    name: "Simulate",
    doc: "A simulated user with a goal, which continues after the written turns until it has nothing more to say.",
    fields: simulation_fields![
        Field::required("goal", Kind::NonEmptyText, "Goal of the user."),
        Field::optional(
            "template",
            Kind::NonEmptyText,
            "A file with a prompt of your own for a model that simulates. `{{system}}`, `{{rules}}`, `{{conversation}}`, `{{turn}}` and `{{max_turns}}` are filled in. Searched next to the suite, next to the project file, and in the working directory.",
        ),
    ],
};

/// The key `simulate` for shared settings.
pub const SIMULATE_FIELD: Field = Field::optional(
    "simulate",
    Kind::Shape(&USER),
    "Settings shared by all simulated users. Only cases with `simulate` have one.",
);

/// Shape of settings shared by the cases of a suite.
pub static SHARED: Shape = Shape {
    name: "Shared",
    doc: "Settings shared by the cases of a suite.",
    fields: &[
        TOPICS_FIELD,
        GRAPH_FIELD,
        SIMULATE_FIELD,
        Field::optional(
            "criteria",
            CRITERIA_KIND,
            "Criteria by name, in addition to those of the project; the same name replaces.",
        ),
        Field::optional(
            "judge",
            JUDGE_KIND,
            "The judge, optionally with settings. Default: the judge of the project.",
        ),
        Field::optional(
            "mcp",
            MCP_KIND,
            "MCP servers by name, in addition to those of the project. With `type` the same name replaces; without it the entry changes the inherited server.",
        ),
        Field::optional(
            "models",
            MODELS_KIND,
            "Language models that are served to the agent by name, in addition to those of the project. With `script` or `rules` the same name replaces; without them the entry adds faults.",
        ),
        Field::optional(
            "agent",
            Kind::NonEmptyText,
            "Name of the agent to test, from the project file. `-n` takes precedence. Default: the agent whose `folder` contains the suite, then the target of the project.",
        ),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::SHARED.problems(), Vec::<String>::new());
        assert_eq!(super::SIMULATE.problems(), Vec::<String>::new());
    }
}
