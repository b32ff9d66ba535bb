//! What a typed assertion may be, as data: one shape for each type.

use super::condition::CONDITIONS;
use super::shape::{ASSERT, COUNT, CRITERION_OF_ITS_OWN, JUDGE_KIND, MILLISECONDS, TIMES, TOKENS};
use crate::checks::{TurnsRead, Type, ValueOf};
use hotseat_document::{Field, Kind, Shape, Tagged};

/// A typed assertion, or a block: a mapping without `type` is a block.
pub static ASSERTION: Tagged = Tagged {
    key: "type",
    shapes: &[
        &CONTAINS,
        &NOT_CONTAINS,
        &EQUALS,
        &REGEX,
        &JSON_PATH,
        &TYPE,
        &SCHEMA,
        &TOOL_CALLED,
        &TOOL_RESULT,
        &TOOL_SEQUENCE,
        &TOPIC,
        &REACHED_TOPIC,
        &TOPIC_HISTORY,
        &VALUE,
        &MAX_TOKENS,
        &MAX_COST,
        &MAX_TOOL_CALLS,
        &AGENT,
        &SATISFY,
        &GROUNDED,
        &CLAIMS,
        &INTENT,
        &GOAL,
        &SCRIPT,
    ],
    untagged: Some(&ASSERT),
};

/// The shape of one type: `type`, its own keys, and those that all types have.
macro_rules! assertion {
    ($shape:ident, $name:literal, $word:literal, $doc:literal, [$($field:expr),* $(,)?]) => {
        #[doc = $doc]
        pub static $shape: Shape = Shape {
            name: $name,
            doc: $doc,
            fields: &[
                Field::required("type", Kind::Choice(&[$word]), "Which assertion this is."),
                $($field,)*
                Field::optional(
                    "negate",
                    Kind::Bool,
                    "It must not hold. What cannot be judged does not hold either way.",
                )
                .default("false"),
                Field::optional("message", Kind::NonEmptyText, "What is said when it does not hold."),
            ],
        };
    };
}

const OPTIONS: Field =
    Field::optional("options", Kind::JsonMap, "What the other side is told: `metadata`, `connector`.");

const TURNS_READ: Field = Field::optional(
    "turns",
    Kind::Choice(TurnsRead::NAMES),
    "Of several turns, those that are read. Default: all turns of a visit where a topic asserts it, else the last turn.",
);

assertion!(
    MAX_TOKENS,
    "MaxTokens",
    "max_tokens",
    "The turn, or the whole conversation, spends no more tokens than this, as agent and models report them. Where nobody does, that is an error of its own.",
    [Field::required("value", TOKENS, "The most that is allowed.")]
);

assertion!(
    MAX_COST,
    "MaxCost",
    "max_cost",
    "The turn, or the whole conversation, costs no more than this, by the prices of the project's connectors. Where nobody knows, that is an error of its own.",
    [Field::required("value", Kind::Number, "The most that is allowed.")]
);

assertion!(
    MAX_TOOL_CALLS,
    "MaxToolCalls",
    "max_tool_calls",
    "In the turn, or the whole conversation, tools are called no more often than this.",
    [Field::required("value", TIMES, "The most that is allowed.")]
);

assertion!(
    CONTAINS,
    "Contains",
    "contains",
    "What the agent says contains a text. Case matters.",
    [Field::required("value", Kind::Json, "The text; anything else as compact JSON."), TURNS_READ]
);

assertion!(
    NOT_CONTAINS,
    "NotContains",
    "not_contains",
    "What the agent says does not contain a text. Case matters.",
    [Field::required("value", Kind::Json, "The text; anything else as compact JSON."), TURNS_READ]
);

assertion!(
    EQUALS,
    "Equals",
    "equals",
    "The answer is this and nothing else. Of several messages the last one is the answer.",
    [Field::required(
        "value",
        Kind::Json,
        "A text is compared to the letter; anything else as JSON, whatever the order of keys, 1 equal to 1.0.",
    )]
);

assertion!(
    REGEX,
    "Regex",
    "regex",
    "What the agent says fits a regular expression, searched anywhere.",
    [
        Field::required(
            "pattern",
            Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]),
            "The regular expression, or several.",
        )
        .aliases(&["value"]),
        Field::optional(
            "match",
            Kind::Choice(&["all", "any"]),
            "How many of several patterns have to fit. With `any` and `negate` none of them may.",
        )
        .default("all"),
        TURNS_READ,
    ]
);

assertion!(
    JSON_PATH,
    "JsonPath",
    "json_path",
    "A value at a path. Looked at are the answer, if it is JSON or holds some; what the run returned; the shared state; the results of tools, the last one first. The first in which the path selects anything decides.",
    [
        Field::required(
            "path",
            Kind::NonEmptyText,
            "A JSON path of RFC 9535; `$.` at its start may be left out."
        ),
        Field::optional(
            "value",
            Kind::Json,
            "What is there. A list is also fulfilled by one of its entries. Without it the path only has to select something.",
        ),
    ]
);

assertion!(
    TYPE,
    "Type",
    "type",
    "The type of the answer, or of what is at a path. An answer that is not JSON as a whole is a `string`.",
    [
        Field::required("value", Kind::Choice(Type::NAMES), "The type."),
        Field::optional("path", Kind::NonEmptyText, "Where to look, as in `json_path`."),
    ]
);

assertion!(
    SCHEMA,
    "Schema",
    "schema",
    "The answer as JSON, or what is at a path, fits a JSON Schema. Nothing is fetched for it.",
    [
        Field::required(
            "schema",
            Kind::OneOf(&[Kind::Bool, Kind::JsonMap]),
            "The schema: draft 2020-12 unless `$schema` says another.",
        )
        .aliases(&["value"]),
        Field::optional("path", Kind::NonEmptyText, "Where to look, as in `json_path`."),
    ]
);

assertion!(
    TOOL_CALLED,
    "ToolCalled",
    "tool_called",
    "A tool is called: in this turn, or in the whole conversation. Names are compared exactly.",
    [
        Field::optional("name", Kind::NonEmptyText, "The tool."),
        Field::optional(
            "value",
            Kind::OneOf(&[
                Kind::NonEmptyText,
                Kind::NonEmptyList(&Kind::NonEmptyText),
                Kind::Shape(&TOOL_CALLED_VALUE),
            ]),
            "Instead of `name`: the tool, several of which one is enough, or a tool with its arguments.",
        ),
        Field::optional("arguments", Kind::JsonMap, "Arguments of the call, compared as JSON.")
            .aliases(&["args"]),
        Field::optional(
            "match",
            Kind::Choice(&["exact", "subset"]),
            "How `arguments` are compared: `subset` allows more than is written, on every level.",
        )
        .default("subset"),
        Field::optional("where", CONDITIONS, "Conditions on arguments, by their names."),
        Field::optional(
            "count",
            Kind::Shape(&COUNT),
            "How many such calls there are. Default: at least one."
        ),
    ]
);

/// A tool with its arguments, where `value` of `tool_called` is a mapping.
pub static TOOL_CALLED_VALUE: Shape = Shape {
    name: "ToolCalledValue",
    doc: "A tool and its arguments.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "The tool."),
        Field::optional("arguments", Kind::JsonMap, "Arguments of the call.").aliases(&["args"]),
    ],
};

assertion!(
    TOOL_RESULT,
    "ToolResult",
    "tool_result",
    "Some call of a tool succeeds, with this result if one is given.",
    [
        Field::optional("tool", Kind::NonEmptyText, "The tool.").aliases(&["name"]),
        Field::optional(
            "result",
            Kind::Json,
            "The result: objects may have more keys; a text that begins with `regex:` is a pattern.",
        ),
        Field::optional("value", Kind::Shape(&TOOL_RESULT_VALUE), "Instead of `tool` and `result`."),
    ]
);

/// A tool and its result, where `value` of `tool_result` is used.
pub static TOOL_RESULT_VALUE: Shape = Shape {
    name: "ToolResultValue",
    doc: "A tool and its result.",
    fields: &[
        Field::required("tool", Kind::NonEmptyText, "The tool.").aliases(&["name"]),
        Field::optional("result", Kind::Json, "The result."),
    ],
};

assertion!(
    TOOL_SEQUENCE,
    "ToolSequence",
    "tool_sequence",
    "The tool calls of the turn, or of the conversation, as a whole.",
    [
        Field::required(
            "calls",
            Kind::List(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&EXPECTED_CALL)])),
            "The calls that are expected: names, or mappings with `name` and `arguments`. An empty list means none.",
        )
        .aliases(&["value"]),
        Field::optional(
            "order",
            Kind::Choice(&["strict", "in_order", "unordered", "subset", "superset"]),
            "`strict`: just these, in this order. `in_order`: all of these, in this order, perhaps others between them. `unordered`: just these. `subset`: only these, perhaps not all. `superset`: all of these, perhaps others.",
        )
        .default("strict"),
        Field::optional(
            "only",
            Kind::NonEmptyList(&Kind::NonEmptyText),
            "Only calls of these tools are looked at: those that change something, for instance. Default: all.",
        ),
        Field::optional(
            "arguments",
            Kind::Choice(&["exact", "subset", "ignored"]),
            "How the arguments that are written are compared. A call without any fits whatever its arguments.",
        )
        .default("exact"),
    ]
);

/// A call in `tool_sequence`.
pub static EXPECTED_CALL: Shape = Shape {
    name: "ExpectedCall",
    doc: "A call that is expected.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "The tool."),
        Field::optional("arguments", Kind::JsonMap, "Its arguments; without them they do not matter.")
            .aliases(&["args"]),
    ],
};

const TOPIC_NAMES: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);

assertion!(
    TOPIC,
    "TopicIs",
    "topic",
    "The turn belongs to a topic; of a conversation the last turn does.",
    [Field::required("name", TOPIC_NAMES, "The topic, or several of which one is enough.")
        .aliases(&["value"])]
);

assertion!(
    REACHED_TOPIC,
    "ReachedTopic",
    "reached_topic",
    "Some turn so far belongs to a topic.",
    [Field::required("name", Kind::NonEmptyText, "The topic.").aliases(&["value"])]
);

assertion!(
    TOPIC_HISTORY,
    "TopicHistory",
    "topic_history",
    "The topics that the conversation has visited so far. One that was come back to stands there again.",
    [
        Field::required("value", Kind::NonEmptyList(&Kind::NonEmptyText), "The topics.").aliases(&["names"]),
        Field::optional(
            "order",
            Kind::Choice(&["strict", "in_order"]),
            "`strict`: just these. `in_order`: all of these, perhaps others between them.",
        )
        .default("strict"),
    ]
);

assertion!(
    VALUE,
    "ValueOf",
    "value",
    "A number or a list of the conversation so far is compared: `equals`, `at_least` and `at_most` a number, `equals` and `contains` a list.",
    [
        Field::required(
            "of",
            Kind::Choice(ValueOf::NAMES),
            "What is compared: `turn_count` is a number; `tool_names`, of the tools that were called, and `topic_history` are lists.",
        ),
        Field::optional("equals", Kind::OneOf(&[TIMES, Kind::List(&Kind::NonEmptyText)]), "It is just this.",),
        Field::optional("at_least", TIMES, "It is this or more."),
        Field::optional("at_most", TIMES, "It is this or less."),
        Field::optional(
            "contains",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]),
            "This is in it, or all of these are.",
        ),
    ]
);

assertion!(
    AGENT,
    "Agent",
    "agent",
    "Another agent judges what this one did. A judge that cannot be asked, or gives no judgement, is an error of its own and never a verdict.",
    [
        Field::optional(
            "use",
            Kind::NonEmptyText,
            "The judge: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the built-in prompt. Default: `judge` of the project file.",
        ),
        Field::optional(
            "criteria",
            Kind::Json,
            "What has to be so, usually a sentence. Also read from `options.metadata.criteria`.",
        )
        .aliases(&["value"]),
        OPTIONS,
    ]
);

const JUDGED_BY: Field =
    Field::optional("judge", JUDGE_KIND, "Who judges, or who and how. Default: as for the case.");

const ONE_OR_MANY_TEXTS: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);

/// What `satisfy` may name: a criterion, a sentence, a function, a criterion that is written out.
static CRITERIA_ENTRY: Kind = Kind::OneOf(&[
    Kind::NonEmptyText,
    Kind::Shape(&CRITERION_OF_ITS_OWN),
    Kind::NonEmptyList(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CRITERION_OF_ITS_OWN)])),
]);

assertion!(
    SATISFY,
    "Satisfy",
    "satisfy",
    "What the agent says satisfies criteria: in the turn, or in all turns of the conversation together. Each criterion is judged by itself, and has a result of its own.",
    [
        Field::required(
            "criteria",
            Kind::OneOf(&[
                Kind::NonEmptyText,
                Kind::Shape(&CRITERION_OF_ITS_OWN),
                Kind::NonEmptyList(&CRITERIA_ENTRY),
            ]),
            "The criteria. A text that looks like a name (letters, digits and `_`, perhaps a `?` or `!` at its end) is one of `criteria`; a text that begins with `scripts:` is a function that is given the turn; any other text is judged as it is.",
        )
        .aliases(&["criterion", "value"]),
        JUDGED_BY,
    ]
);

assertion!(
    GROUNDED,
    "Grounded",
    "grounded",
    "What the agent claims is grounded in what its tools returned, in the same turn or an earlier one. A judge decides.",
    [
        Field::required("types", ONE_OR_MANY_TEXTS, "The kinds of claims: `prices`, `opening_hours`.")
            .aliases(&["value"]),
        Field::optional(
            "from_tools",
            ONE_OR_MANY_TEXTS,
            "Only results of these tools count, and no other calls are shown to the judge. Default: all.",
        ),
        JUDGED_BY,
    ]
);

assertion!(
    CLAIMS,
    "Claims",
    "claims",
    "The agent makes no claims of some kinds, unless they are grounded in what a tool returned. A judge decides.",
    [
        Field::required("forbid", ONE_OR_MANY_TEXTS, "The kinds of claims that are forbidden.")
            .aliases(&["value"]),
        Field::optional("absolute", Kind::Bool, "Whether they are forbidden even if they are grounded.")
            .default("false"),
        JUDGED_BY,
    ]
);

assertion!(
    INTENT,
    "Intent",
    "intent",
    "What the agent is after with what it says and does. A judge decides.",
    [
        Field::optional(
            "intent",
            Kind::NonEmptyText,
            "The intent: words, or a name that says what it is, as `gather_requirements`.",
        )
        .aliases(&["name", "value"]),
        Field::optional(
            "described_as",
            Kind::NonEmptyText,
            "What the intent is, where its name does not say it."
        )
        .aliases(&["description"]),
        JUDGED_BY,
    ]
);

assertion!(
    GOAL,
    "Goal",
    "goal",
    "The user has achieved a goal by the end of what is looked at. A judge decides.",
    [
        Field::optional(
            "goal",
            Kind::NonEmptyText,
            "The goal. Default: the one that the case states for its simulated user.",
        )
        .aliases(&["value"]),
        JUDGED_BY,
    ]
);

assertion!(
    SCRIPT,
    "Script",
    "script",
    "A function of a script judges: it returns true, false, or an object with `pass` and `message`. A function that fails, or returns anything else, is an error of its own and never a verdict.",
    [
        Field::required(
            "use",
            Kind::NonEmptyText,
            "The function, as `scripts:path.function`, or `scripts:path` for a default export.",
        )
        .aliases(&["script"]),
        Field::optional("value", Kind::Json, "What the function is told to expect.").aliases(&["expected"]),
        Field::optional("options", Kind::JsonMap, "What else the function is told: `metadata`."),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "How long the function may take, all that it waits for included. Default: `timeout_ms` under `scripts` of the project file, else 10 s.",
        ),
        Field::optional("timeout", Kind::NonEmptyText, "The same as a duration: `30s`."),
    ]
);
