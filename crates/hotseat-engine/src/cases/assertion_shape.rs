//! Shapes of typed assertions, one per type.

use super::condition::CONDITIONS;
use super::shape::{ASSERT, COUNT, CRITERION_OF_ITS_OWN, JUDGE_KIND, MILLISECONDS, TIMES, TOKENS};
use hotseat_checks::{ConversationValue, JsonValueType, TurnSelection};
use hotseat_document::{Field, Kind, Shape, TaggedShapes};

/// A typed assertion or a block. A mapping without `type` is a block.
pub static ASSERTION: TaggedShapes = TaggedShapes {
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

/// Defines the shape of one type: `type`, its own keys, and the keys common to all types.
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
                    "Negates the assertion. An assertion that cannot be evaluated fails either way.",
                )
                .default("false"),
                Field::optional("message", Kind::NonEmptyText, "Message shown if the assertion fails."),
            ],
        };
    };
}

const OPTIONS: Field =
    Field::optional("options", Kind::JsonMap, "Options passed on to the judge: `metadata`, `connector`.");

const TURNS_READ: Field = Field::optional(
    "turns",
    Kind::Choice(TurnSelection::NAMES),
    "The turns to evaluate. Default: all turns of a visit for assertions of a topic, else the last turn.",
);

assertion!(
    MAX_TOKENS,
    "MaxTokens",
    "max_tokens",
    "The turn, or the whole conversation, uses at most this number of tokens, as reported by agent and models. The check errors if usage is not reported.",
    [Field::required("value", TOKENS, "The maximum allowed.")]
);

assertion!(
    MAX_COST,
    "MaxCost",
    "max_cost",
    "The turn, or the whole conversation, costs at most this, by the prices of the project's connectors. The check errors if the cost is unknown.",
    [Field::required("value", Kind::Number, "The maximum allowed.")]
);

assertion!(
    MAX_TOOL_CALLS,
    "MaxToolCalls",
    "max_tool_calls",
    "The turn, or the whole conversation, makes at most this number of tool calls.",
    [Field::required("value", TIMES, "The maximum allowed.")]
);

assertion!(
    CONTAINS,
    "Contains",
    "contains",
    "The agent's text contains a text (case-sensitive).",
    [Field::required("value", Kind::Json, "The text; anything else as compact JSON."), TURNS_READ]
);

assertion!(
    NOT_CONTAINS,
    "NotContains",
    "not_contains",
    "The agent's text does not contain a text (case-sensitive).",
    [Field::required("value", Kind::Json, "The text; anything else as compact JSON."), TURNS_READ]
);

assertion!(
    EQUALS,
    "Equals",
    "equals",
    "The answer equals this value. The last of several messages is the answer.",
    [Field::required(
        "value",
        Kind::Json,
        "Text is compared exactly; anything else as JSON, regardless of key order, with 1 equal to 1.0.",
    )]
);

assertion!(
    REGEX,
    "Regex",
    "regex",
    "The agent's text matches a regular expression anywhere.",
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
            "Whether all patterns have to match or any of them. With `any` and `negate` none may match.",
        )
        .default("all"),
        TURNS_READ,
    ]
);

assertion!(
    JSON_PATH,
    "JsonPath",
    "json_path",
    "A value at a JSON path. Searched in order: the answer if it is or contains JSON, the result of the run, the shared state, the tool results from last to first. The first document in which the path selects a value is used.",
    [
        Field::required("path", Kind::NonEmptyText, "A JSON path of RFC 9535; the leading `$.` is optional."),
        Field::optional(
            "value",
            Kind::Json,
            "The expected value. A list also matches if one of its entries does. Without `value` the path only has to select something.",
        ),
    ]
);

assertion!(
    TYPE,
    "Type",
    "type",
    "The type of the answer, or of the value at a path. An answer that is not entirely JSON is a `string`.",
    [
        Field::required("value", Kind::Choice(JsonValueType::NAMES), "The type."),
        Field::optional("path", Kind::NonEmptyText, "JSON path to the value, as in `json_path`."),
    ]
);

assertion!(
    SCHEMA,
    "Schema",
    "schema",
    "The answer as JSON, or the value at a path, is valid against a JSON Schema. Remote references are not fetched.",
    [
        Field::required(
            "schema",
            Kind::OneOf(&[Kind::Bool, Kind::JsonMap]),
            "The schema: draft 2020-12 unless `$schema` sets another.",
        )
        .aliases(&["value"]),
        Field::optional("path", Kind::NonEmptyText, "JSON path to the value, as in `json_path`."),
    ]
);

assertion!(
    TOOL_CALLED,
    "ToolCalled",
    "tool_called",
    "A tool is called in this turn, or in the whole conversation. Tool names are compared exactly.",
    [
        Field::optional("name", Kind::NonEmptyText, "The tool."),
        Field::optional(
            "value",
            Kind::OneOf(&[
                Kind::NonEmptyText,
                Kind::NonEmptyList(&Kind::NonEmptyText),
                Kind::Shape(&TOOL_CALLED_VALUE),
            ]),
            "Instead of `name`: the tool, a list of alternative tools, or a tool with its arguments.",
        ),
        Field::optional("arguments", Kind::JsonMap, "Arguments of the call, compared as JSON.")
            .aliases(&["args"]),
        Field::optional(
            "match",
            Kind::Choice(&["exact", "subset"]),
            "How `arguments` are compared: `subset` allows additional members on every level.",
        )
        .default("subset"),
        Field::optional("where", CONDITIONS, "Conditions on arguments, by argument name."),
        Field::optional("count", Kind::Shape(&COUNT), "Number of matching calls. Default: at least one."),
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
    "At least one call of a tool succeeds, with this result if set.",
    [
        Field::optional("tool", Kind::NonEmptyText, "The tool.").aliases(&["name"]),
        Field::optional(
            "result",
            Kind::Json,
            "The result: objects may have additional keys; text that starts with `regex:` is a pattern.",
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
    "All tool calls of the turn, or of the conversation.",
    [
        Field::required(
            "calls",
            Kind::List(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&EXPECTED_CALL)])),
            "The expected calls: names, or mappings with `name` and `arguments`. An empty list expects no calls.",
        )
        .aliases(&["value"]),
        Field::optional(
            "order",
            Kind::Choice(&["strict", "in_order", "unordered", "subset", "superset"]),
            "`strict`: exactly these calls in this order. `in_order`: these calls in this order, with others allowed in between. `unordered`: exactly these calls in any order. `subset`: only these calls, not necessarily all. `superset`: all of these calls, with others allowed.",
        )
        .default("strict"),
        Field::optional(
            "only",
            Kind::NonEmptyList(&Kind::NonEmptyText),
            "Only calls of these tools are considered, for example tools with side effects. Default: all.",
        ),
        Field::optional(
            "arguments",
            Kind::Choice(&["exact", "subset", "ignored"]),
            "How the expected arguments are compared. An expected call without arguments matches any arguments.",
        )
        .default("exact"),
    ]
);

/// An expected call in `tool_sequence`.
pub static EXPECTED_CALL: Shape = Shape {
    name: "ExpectedCall",
    doc: "An expected tool call.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "The tool."),
        Field::optional("arguments", Kind::JsonMap, "Its arguments. If omitted, any arguments match.")
            .aliases(&["args"]),
    ],
};

const TOPIC_NAMES: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);

assertion!(
    TOPIC,
    "TopicIs",
    "topic",
    "The turn, or the last turn of the conversation, belongs to a topic.",
    [Field::required("name", TOPIC_NAMES, "The topic, or a list of alternative topics.").aliases(&["value"])]
);

assertion!(
    REACHED_TOPIC,
    "ReachedTopic",
    "reached_topic",
    "At least one turn so far belongs to a topic.",
    [Field::required("name", Kind::NonEmptyText, "The topic.").aliases(&["value"])]
);

assertion!(
    TOPIC_HISTORY,
    "TopicHistory",
    "topic_history",
    "The topics visited so far, in order. Revisited topics appear again.",
    [
        Field::required("value", Kind::NonEmptyList(&Kind::NonEmptyText), "The topics.").aliases(&["names"]),
        Field::optional(
            "order",
            Kind::Choice(&["strict", "in_order"]),
            "`strict`: exactly these topics. `in_order`: these topics in order, with others allowed in between.",
        )
        .default("strict"),
    ]
);

assertion!(
    VALUE,
    "ValueOf",
    "value",
    "Compares a number or a list of the conversation so far: numbers with `equals`, `at_least` or `at_most`, lists with `equals` or `contains`.",
    [
        Field::required(
            "of",
            Kind::Choice(ConversationValue::NAMES),
            "The value to compare: `turn_count` is a number; `tool_names` (tools called) and `topic_history` are lists.",
        ),
        Field::optional(
            "equals",
            Kind::OneOf(&[TIMES, Kind::List(&Kind::NonEmptyText)]),
            "The value equals this.",
        ),
        Field::optional("at_least", TIMES, "The value is at least this."),
        Field::optional("at_most", TIMES, "The value is at most this."),
        Field::optional(
            "contains",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]),
            "The list contains this entry, or all of these.",
        ),
    ]
);

assertion!(
    AGENT,
    "Agent",
    "agent",
    "Another agent judges this one. If the judge cannot be asked or gives no valid judgement, the check errors and has no verdict.",
    [
        Field::optional(
            "use",
            Kind::NonEmptyText,
            "The judge: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the built-in prompt. Default: `judge` of the project file.",
        ),
        Field::optional(
            "criteria",
            Kind::Json,
            "The criteria, usually a sentence. Also read from `options.metadata.criteria`.",
        )
        .aliases(&["value"]),
        OPTIONS,
    ]
);

const JUDGED_BY: Field = Field::optional(
    "judge",
    JUDGE_KIND,
    "The judge, optionally with settings. Default: the judge of the case.",
);

const ONE_OR_MANY_TEXTS: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::NonEmptyText)]);

/// Entries of `satisfy`: a criterion name, a sentence, a function, or an inline criterion.
static CRITERIA_ENTRY: Kind = Kind::OneOf(&[
    Kind::NonEmptyText,
    Kind::Shape(&CRITERION_OF_ITS_OWN),
    Kind::NonEmptyList(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CRITERION_OF_ITS_OWN)])),
]);

assertion!(
    SATISFY,
    "Satisfy",
    "satisfy",
    "The agent's messages satisfy criteria, in the turn or across all turns of the conversation. Each criterion is judged separately and has its own result.",
    [
        Field::required(
            "criteria",
            Kind::OneOf(&[
                Kind::NonEmptyText,
                Kind::Shape(&CRITERION_OF_ITS_OWN),
                Kind::NonEmptyList(&CRITERIA_ENTRY),
            ]),
            "The criteria. A text that looks like a name (letters, digits and `_`, optionally with a final `?` or `!`) refers to `criteria`; text that starts with `scripts:` is a function that receives the turn; any other text is judged literally.",
        )
        .aliases(&["criterion", "value"]),
        JUDGED_BY,
    ]
);

assertion!(
    GROUNDED,
    "Grounded",
    "grounded",
    "The agent's claims are grounded in tool results of the same or an earlier turn. Decided by a judge.",
    [
        Field::required("types", ONE_OR_MANY_TEXTS, "The kinds of claims: `prices`, `opening_hours`.")
            .aliases(&["value"]),
        Field::optional(
            "from_tools",
            ONE_OR_MANY_TEXTS,
            "Only results of these tools count; other calls are not shown to the judge. Default: all.",
        ),
        JUDGED_BY,
    ]
);

assertion!(
    CLAIMS,
    "Claims",
    "claims",
    "The agent makes no claims of these kinds unless they are grounded in a tool result. Decided by a judge.",
    [
        Field::required("forbid", ONE_OR_MANY_TEXTS, "The forbidden kinds of claims.").aliases(&["value"]),
        Field::optional("absolute", Kind::Bool, "Whether they are forbidden even if they are grounded.")
            .default("false"),
        JUDGED_BY,
    ]
);

assertion!(
    INTENT,
    "Intent",
    "intent",
    "The intent of the agent's messages and actions. Decided by a judge.",
    [
        Field::optional(
            "intent",
            Kind::NonEmptyText,
            "The intent: a description, or a descriptive name such as `gather_requirements`.",
        )
        .aliases(&["name", "value"]),
        Field::optional(
            "described_as",
            Kind::NonEmptyText,
            "Description of the intent, if the name is not descriptive."
        )
        .aliases(&["description"]),
        JUDGED_BY,
    ]
);

assertion!(
    GOAL,
    "Goal",
    "goal",
    "The user has achieved a goal by the end of the evaluated turns. Decided by a judge.",
    [
        Field::optional(
            "goal",
            Kind::NonEmptyText,
            "The goal. Default: the goal of the simulated user of the case.",
        )
        .aliases(&["value"]),
        JUDGED_BY,
    ]
);

assertion!(
    SCRIPT,
    "Script",
    "script",
    "A function of a script judges: it returns true, false, or an object with `pass` and `message`. If the function fails or returns anything else, the check errors and has no verdict.",
    [
        Field::required(
            "use",
            Kind::NonEmptyText,
            "The function, as `scripts:path.function`, or `scripts:path` for a default export.",
        )
        .aliases(&["script"]),
        Field::optional("value", Kind::Json, "The expected value, passed to the function.")
            .aliases(&["expected"]),
        Field::optional("options", Kind::JsonMap, "Further data passed to the function: `metadata`."),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "Time limit for the function, including everything it waits for. Default: `timeout_ms` under `scripts` of the project file, else 10 s.",
        ),
        Field::optional("timeout", Kind::NonEmptyText, "The time limit as a duration: `30s`."),
    ]
);
