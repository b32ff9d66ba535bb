//! Shapes of topics, graphs and simulated users.

use super::assertions::{ASSERTION, CRITERIA_KIND, OWN_ASSERT_KIND};
use super::judging::JUDGE_KIND;
use super::mcp_shape::MCP_KIND;
use super::models_shape::MODELS_KIND;
use hotseat_document::{Kind, document_shape};

const NAMES: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::List(&Kind::NonEmptyText)]);
const TEXTS: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);
const TURNS: Kind = Kind::Integer { min: 1, max: 10_000 };

static TOPIC_KIND: Kind = Kind::Shape(&TOPIC);
static TRIGGER_KIND: Kind = Kind::Shape(&TRIGGER);
static TRIGGER_KINDS: [Kind; 2] = [Kind::Shape(&TRIGGER), Kind::NonEmptyList(&TRIGGER_KIND)];

document_shape! {
    /// Description of the topic, used by the judge to classify turns.
    const CHARACTERISTIC: optional "characteristic" = Kind::NonEmptyText,
    /// Intended outcome of the agent in this topic.
    const AGENT_INTENT: optional "agent_intent" = Kind::NonEmptyText,
    /// Whether a judge evaluates for each visit if the agent pursues `agent_intent`. Informational only.
    const INTENT_MEASURED: optional "evaluate_intent" = Kind::Bool, shown "false",
    /// Conditions that assign a turn to this topic without a judge. One of them is enough.
    const TRIGGERS: optional "triggers" = Kind::OneOf(&TRIGGER_KINDS),
    /// Assertions about the turns of each visit, evaluated when the conversation leaves the topic or ends.
    const ASSERTED: optional "assert" = OWN_ASSERT_KIND, aliases &["assertions"],
    /// Informational assertions about the turns of each visit.
    const MEASURED: optional "evaluate" = OWN_ASSERT_KIND,
    /// Assertions about every turn of each visit.
    const TURN_ASSERTED: optional "turn_assert" = OWN_ASSERT_KIND,
    /// Informational assertions about every turn of each visit.
    const TURN_MEASURED: optional "turn_evaluate" = OWN_ASSERT_KIND,
}

document_shape! {
    /// A phase of a conversation, with its triggers and assertions.
    pub static TOPIC "Topic" {
        ..CHARACTERISTIC,
        ..AGENT_INTENT,
        ..INTENT_MEASURED,
        ..TRIGGERS,
        ..ASSERTED,
        ..MEASURED,
        ..TURN_ASSERTED,
        ..TURN_MEASURED,
    }
}

/// Keys of a graph topic that do not define the topic itself.
pub const GRAPH_ONLY_KEYS: &[&str] = &["next", "from", "max_turns"];

document_shape! {
    /// A topic in a graph. Without keys that define the topic, it refers to `topics`; with such keys it is
    /// local to this graph.
    pub static GRAPH_TOPIC "GraphTopic" {
        /// Topics that may follow, in the order in which they are tried. Default: none.
        optional "next" = NAMES,
        /// `any`: the topic may follow every other topic.
        optional "from" = Kind::Choice(&["any"]),
        /// Maximum number of turns in this topic over all visits. The case fails if it is exceeded.
        optional "max_turns" = TURNS,
        ..CHARACTERISTIC,
        ..AGENT_INTENT,
        ..INTENT_MEASURED,
        ..TRIGGERS,
        ..ASSERTED,
        ..MEASURED,
        ..TURN_ASSERTED,
        ..TURN_MEASURED,
    }

    /// Condition that assigns a turn to a topic: one of the keys that start with `on_` or `after_`.
    pub static TRIGGER "Trigger" {
        /// Name of a tool called in the turn.
        optional "on_tool_call" = Kind::NonEmptyText,
        /// For `on_tool_call`: arguments of the call. Other arguments are allowed; text that starts with
        /// `regex:` is a pattern.
        optional "with_params" = Kind::Map(&Kind::ExpectedJson),
        /// Pattern for the agent's text.
        optional "on_response_match" = Kind::Pattern,
        /// Pattern for the user's text.
        optional "on_user_match" = Kind::Pattern,
        /// A topic with at least `count` turns so far, including this one if it would stay in the topic.
        optional "after_turns_in" = Kind::NonEmptyText,
        /// For `after_turns_in`: number of turns.
        optional "count" = TURNS, shown "1",
        /// A script function, as `scripts:path.function`, that returns true or false.
        optional "on_condition" = Kind::NonEmptyText,
    }
}

document_shape! {
    /// Topics by name, for the `graph`. The same name replaces an inherited topic.
    pub const TOPICS_FIELD: optional "topics" = Kind::Map(&TOPIC_KIND),
    /// Transitions between topics: each topic with its successors. Conversations start in the first topic.
    /// Topics are tracked only if there is a graph.
    pub const GRAPH_FIELD: optional "graph" = Kind::Map(&GRAPH_ENTRY),
}

static GRAPH_ENTRY: Kind = Kind::OneOf(&[
    Kind::Null,
    Kind::NonEmptyText,
    Kind::List(&Kind::NonEmptyText),
    Kind::Shape(&GRAPH_TOPIC),
]);

/// Defines the shape of a simulated user: its specific keys, followed by the common ones.
macro_rules! user_shape {
    ($(#[doc = $doc:literal])+ $shape:ident $name:literal { $($fields:tt)* }) => {
        document_shape! {
            $(#[doc = $doc])+
            pub static $shape $name {
                $($fields)*
                /// Role of the user.
                optional "role" = Kind::NonEmptyText,
                /// Personality of the user: a text, or a list of notes. A text replaces the inherited value, notes are
                /// appended to inherited notes.
                optional "personality" = TEXTS,
                /// Background knowledge of the user: a text, or a list of notes. A text replaces the inherited value,
                /// notes are appended to inherited notes.
                optional "context" = TEXTS,
                /// Desired behaviour of the user. Appended to inherited entries.
                optional "should" = TEXTS,
                /// Behaviour that the user avoids. Appended to inherited entries.
                optional "should_not" = TEXTS,
                /// Patterns that the user's messages must not match. A violation makes the attempt invalid. Appended to
                /// inherited entries.
                optional "never_says" = Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]),
            }
        }
    };
}

macro_rules! simulation_shape {
    ($(#[doc = $doc:literal])+ $shape:ident $name:literal { $($fields:tt)* }) => {
        user_shape! {
            $(#[doc = $doc])+
            $shape $name {
                $($fields)*
                /// The simulator: `agents:ID` or the bare id; `connectors:NAME` for a model with the built-in prompt.
                /// Default: `--simulator`, or `simulator` of the project file.
                optional "use" = Kind::NonEmptyText,
                /// Further options for the simulator: `metadata`, `connector`.
                optional "options" = Kind::JsonMap,
                /// Maximum number of inputs of the user. Reaching it is not a failure by itself. Default: 15.
                optional "max_turns" = Kind::Integer { min: 0, max: 10_000 },
                /// Ends the conversation: assertions that must all pass on the conversation so far, or a script
                /// function, as `scripts:path.function`. Evaluated after each turn.
                optional "stop_when" = Kind::OneOf(&[
                    Kind::NonEmptyText, Kind::Tagged(&ASSERTION), Kind::NonEmptyList(&Kind::Tagged(&ASSERTION)),
                ]),
                /// Number of times that the user may repeat a message before the attempt is invalid; 0: unlimited.
                /// Default: 2.
                optional "max_repeats" = Kind::Integer { min: 0, max: 1_000 },
                /// Changes to the user while the conversation is in a topic.
                optional "during_topic" = Kind::Map(&Kind::Shape(&DURING_TOPIC)),
            }
        }
    };
}

user_shape! {
    /// Changes to a simulated user while the conversation is in a topic.
    DURING_TOPIC "DuringTopic" {}
}

simulation_shape! {
    /// Settings shared by all simulated users.
    USER "SimulatedUser" {}
}

simulation_shape! {
    /// A simulated user with a goal, which continues after the written turns until it has nothing more to say.
    SIMULATE "Simulate" {
        /// Goal of the user.
        required "goal" = Kind::NonEmptyText,
        /// A file with a prompt of your own for a model that simulates. `{{system}}`, `{{rules}}`, `{{conversation}}`,
        /// `{{turn}}` and `{{max_turns}}` are filled in. Searched next to the suite, next to the project file, and in
        /// the working directory.
        optional "template" = Kind::NonEmptyText,
    }
}

document_shape! {
    /// Settings shared by all simulated users. Only cases with `simulate` have one.
    pub const SIMULATE_FIELD: optional "simulate" = Kind::Shape(&USER),
}

document_shape! {
    /// Settings shared by the cases of a suite.
    pub static SHARED "Shared" {
        ..TOPICS_FIELD,
        ..GRAPH_FIELD,
        ..SIMULATE_FIELD,
        /// Criteria by name, in addition to those of the project; the same name replaces.
        optional "criteria" = CRITERIA_KIND,
        /// The judge, optionally with settings. Default: the judge of the project.
        optional "judge" = JUDGE_KIND,
        /// MCP servers by name, in addition to those of the project. With `type` the same name replaces;
        /// without it the entry changes the inherited server.
        optional "mcp" = MCP_KIND,
        /// Language models that are served to the agent by name, in addition to those of the project. With
        /// `script` or `rules` the same name replaces; without them the entry adds faults.
        optional "models" = MODELS_KIND,
        /// Name of the agent to test, from the project file. `-n` takes precedence. Default: the agent whose
        /// `folder` contains the suite, then the target of the project.
        optional "agent" = Kind::NonEmptyText,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::SHARED.problems(), Vec::<String>::new());
        assert_eq!(super::SIMULATE.problems(), Vec::<String>::new());
    }
}
