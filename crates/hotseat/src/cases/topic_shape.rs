//! What may be written of topics, graphs and simulated users, as data.

use super::shape::{CRITERIA_KIND, JUDGE_KIND, OWN_ASSERT_KIND};
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
    "What shows that the conversation is in this topic: what the judge goes by.",
);
const AGENT_INTENT: Field =
    Field::optional("agent_intent", Kind::NonEmptyText, "What the agent is to bring about in this topic.");
const INTENT_MEASURED: Field = Field::optional(
    "evaluate_intent",
    Kind::Bool,
    "Whether a judge measures for each visit if the agent is after `agent_intent`. It decides nothing.",
)
.default("false");
const TRIGGERS: Field = Field::optional(
    "triggers",
    Kind::OneOf(&TRIGGER_KINDS),
    "What shows without a judge that a turn belongs to this topic. One of them is enough.",
);
const ASSERTED: Field = Field::optional(
    "assert",
    OWN_ASSERT_KIND,
    "What is asserted of the turns of each visit, when the conversation leaves the topic or ends.",
)
.aliases(&["assertions"]);
const MEASURED: Field = Field::optional(
    "evaluate",
    OWN_ASSERT_KIND,
    "What is measured of the turns of each visit, and decides nothing.",
);
const TURN_ASSERTED: Field =
    Field::optional("turn_assert", OWN_ASSERT_KIND, "What is asserted of every single turn of each visit.");
const TURN_MEASURED: Field = Field::optional(
    "turn_evaluate",
    OWN_ASSERT_KIND,
    "What is measured of every single turn of each visit, and decides nothing.",
);

/// A topic.
pub static TOPIC: Shape = Shape {
    name: "Topic",
    doc: "A phase of a conversation: what shows that it is reached, and what has to be so in it.",
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

/// The keys of a topic in a graph that do not say what the topic is.
pub const WIRING: &[&str] = &["next", "from", "max_turns"];

/// A topic in a graph.
pub static GRAPH_TOPIC: Shape = Shape {
    name: "GraphTopic",
    doc: "A topic in a graph. Without any key that says what the topic is, it is the one of `topics`; with such keys it is a topic of this graph alone.",
    fields: &[
        Field::optional(
            "next",
            NAMES,
            "The topics that may follow, in the order in which they are tried. Default: none.",
        ),
        Field::optional(
            "from",
            Kind::Choice(&["any"]),
            "`any`: the topic may follow every other one, whether those name it or not.",
        ),
        Field::optional(
            "max_turns",
            TURNS,
            "How many turns there may be in this topic, all visits together. One more, and the case has failed.",
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

/// What shows that a turn belongs to a topic.
pub static TRIGGER: Shape = Shape {
    name: "Trigger",
    doc: "What shows that a turn belongs to a topic: one of the keys that begin with `on_` or `after_`.",
    fields: &[
        Field::optional("on_tool_call", Kind::NonEmptyText, "A tool that is called in the turn."),
        Field::optional(
            "with_params",
            Kind::JsonMap,
            "For `on_tool_call`: arguments of the call. There may be more; a text that begins with `regex:` is a pattern.",
        ),
        Field::optional("on_response_match", Kind::Pattern, "What the agent says fits."),
        Field::optional("on_user_match", Kind::Pattern, "What the user says fits."),
        Field::optional(
            "after_turns_in",
            Kind::NonEmptyText,
            "A topic in which there have been `count` turns or more, this one included where it would stay there.",
        ),
        Field::optional("count", TURNS, "For `after_turns_in`: how many turns.").default("1"),
        Field::optional(
            "on_condition",
            Kind::NonEmptyText,
            "A function of a script, as `scripts:path.function`, that returns true or false.",
        ),
    ],
};

/// `topics`.
pub const TOPICS_FIELD: Field = Field::optional(
    "topics",
    Kind::Map(&TOPIC_KIND),
    "Topics by name, for the `graph`. One of the same name replaces the one of above.",
);

/// `graph`.
pub const GRAPH_FIELD: Field = Field::optional(
    "graph",
    Kind::Map(&GRAPH_ENTRY),
    "Which topics may follow which: each topic with those that may follow it. Conversations begin in the first one. With a graph topics are followed.",
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
            Field::optional("role", Kind::NonEmptyText, "Who the user is."),
            Field::optional("personality", TEXTS, "How the user is: a text, or a list of notes. A text replaces what is said above, notes are added to notes."),
            Field::optional("context", TEXTS, "What the user knows: a text, or a list of notes. A text replaces what is said above, notes are added to notes."),
            Field::optional("should", TEXTS, "What the user does. Added to what is said above."),
            Field::optional("should_not", TEXTS, "What the user does not do. Added to what is said above."),
            Field::optional(
                "never_says",
                Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]),
                "Patterns of what the user does not say, for it is not so. A simulated user that says it all the same has made the attempt invalid. Added to what is said above.",
            ),
        ]
    };
}

macro_rules! simulation_fields {
    ($($more:expr),* $(,)?) => {
        user_fields![
            $($more,)*
            Field::optional("use", Kind::NonEmptyText, "Who simulates: `agents:ID` or the bare id; `connectors:NAME` for a model with the built-in prompt. Default: `--simulator`, or `simulator` of the project file."),
            Field::optional("options", Kind::JsonMap, "What it is told beside: `metadata`, `connector`."),
            Field::optional("max_turns", Kind::Integer { min: 0, max: 10_000 }, "How many inputs the user gives at most. That they are used up fails nothing by itself. Default: 15."),
            Field::optional(
                "stop_when",
                Kind::OneOf(&[Kind::NonEmptyText, Kind::Tagged(&super::assertion_shape::ASSERTION), Kind::NonEmptyList(&Kind::Tagged(&super::assertion_shape::ASSERTION))]),
                "When there is nothing more to say: assertions that all hold of the conversation so far, or a function of a script, as `scripts:path.function`. Looked at after each turn.",
            ),
            Field::optional("max_repeats", Kind::Integer { min: 0, max: 1_000 }, "How often the user may say the same again before the attempt is invalid; 0: as often as it likes. Default: 2."),
            Field::optional("during_topic", Kind::Map(&Kind::Shape(&DURING_TOPIC)), "What is different while the conversation is in a topic."),
        ]
    };
}

/// What holds of a simulated user while the conversation is in a topic.
pub static DURING_TOPIC: Shape = Shape {
    name: "DuringTopic",
    doc: "What is different of a simulated user while the conversation is in a topic.",
    fields: user_fields![],
};

/// A simulated user, where it is none of one case alone.
pub static USER: Shape = Shape {
    name: "SimulatedUser",
    doc: "What the simulated users of all cases have in common.",
    fields: simulation_fields![],
};

/// The simulated user of a case.
pub static SIMULATE: Shape = Shape {
    name: "Simulate",
    doc: "A simulated user with a goal, who goes on when the turns are over, until there is nothing more to say.",
    fields: simulation_fields![
        Field::required("goal", Kind::NonEmptyText, "What the user wants."),
        Field::optional(
            "template",
            Kind::NonEmptyText,
            "A file with a prompt of your own for a model that simulates. `{{system}}`, `{{rules}}`, `{{conversation}}`, `{{turn}}` and `{{max_turns}}` are filled in. Looked for beside the suite, beside the project file, and in the working folder.",
        ),
    ],
};

/// `simulate`, where it is none of one case alone.
pub const SIMULATE_FIELD: Field = Field::optional(
    "simulate",
    Kind::Shape(&USER),
    "What the simulated users of all cases have in common; a case has one where it says `simulate`.",
);

/// What the cases of a suite have in common.
pub static SHARED: Shape = Shape {
    name: "Shared",
    doc: "What the cases of a suite have in common.",
    fields: &[
        TOPICS_FIELD,
        GRAPH_FIELD,
        SIMULATE_FIELD,
        Field::optional(
            "criteria",
            CRITERIA_KIND,
            "Criteria by name, beside those of the project; the same name replaces.",
        ),
        Field::optional("judge", JUDGE_KIND, "Who judges, or who and how. Default: as for the project."),
        Field::optional(
            "agent",
            Kind::NonEmptyText,
            "Which of the agents of the project file these cases test, by its name. `-n` goes before it. Default: by the folder of the suite, then the target of the project.",
        ),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::SHARED.problems(), Vec::<String>::new());
        assert_eq!(super::SIMULATE.problems(), Vec::<String>::new());
    }
}
