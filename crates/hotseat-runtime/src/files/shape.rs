//! File formats of agents as data, the source of checks, JSON Schemas and reference pages.

use hotseat_document::{Field, Kind, Shape, TaggedShapes};

const MAX_MILLISECONDS: i64 = 7 * 24 * 3600 * 1000;
/// A duration that may be 0.
const DELAY: Kind = Kind::Integer { min: 0, max: MAX_MILLISECONDS };
/// A time limit.
const TIME_LIMIT: Kind = Kind::Integer { min: 1, max: MAX_MILLISECONDS };
const ONE_OR_MORE: Kind = Kind::Integer { min: 1, max: 1_000_000 };
const COUNT: Kind = Kind::Integer { min: 0, max: 1_000_000 };
/// An expression, or a constant number or boolean.
const EXPRESSION: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::Number, Kind::Bool]);
const EXPRESSIONS: Kind = Kind::Map(&EXPRESSION);
const ONE_OR_MORE_EXPRESSIONS: Kind = Kind::OneOf(&[Kind::NonEmptyText, EXPRESSIONS]);
static MESSAGE_OR_FAILURE: [Kind; 2] = [Kind::NonEmptyText, Kind::Shape(&FAILURE)];
static NAME_OR_AGENT: [Kind; 2] = [Kind::NonEmptyText, Kind::Shape(&AGENT)];
static NAME_OR_TASK: [Kind; 2] = [Kind::NonEmptyText, Kind::Shape(&TASK)];
static NAME_OR_WORKFLOW: [Kind; 2] = [Kind::NonEmptyText, Kind::Shape(&WORKFLOW)];

/// An agent.
pub static AGENT: Shape = Shape {
    name: "Agent",
    doc: "An agent: its prompt, model and tools. Either a file of its own (`agent.yaml`) or \
          within a tool.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Name of the agent. The id is the name in lower case, with `-` for spaces."),
        Field::optional("description", Kind::Text, "Description for users; not sent to the model."),
        Field::optional("system", Kind::Text, "System prompt of the model.")
            .aliases(&["system_prompt"]),
        Field::optional(
            "connector",
            Kind::NonEmptyText,
            "Model of the agent: the name of an entry of `connectors`. Default: the script beside the file \
             (`script.yaml` beside `agent.yaml`, `NAME.script.yaml` beside `NAME.yaml`), then the connector of the \
             loaded agent, then the connector `default`.",
        ),
        Field::optional(
            "connectors",
            Kind::Map(&Kind::Tagged(&CONNECTOR)),
            "Language models by name, for this agent and the agents it refers to.",
        ),
        Field::optional("temperature", Kind::Number, "Sampling temperature. Default: the connector's."),
        Field::optional("max_tokens", ONE_OR_MORE, "Maximum length of a reply, in tokens. Default: the connector's."),
        Field::optional("tools", Kind::List(&Kind::Shape(&TOOL)), "Tools of the agent."),
        Field::optional(
            "context",
            Kind::OneOf(&NAME_OR_WORKFLOW),
            "Workflow that builds requests to the model: its name, or the workflow itself. Default: a built-in one.",
        )
        .aliases(&["context_assembly"]),
        Field::optional(
            "context_policy",
            Kind::Choice(&["per_model_call", "per_turn"]),
            "When requests are built: before every model call, or once per turn.",
        )
        .default("per_model_call"),
        Field::optional(
            "memory",
            Kind::OneOf(&NAME_OR_WORKFLOW),
            "Workflow that extracts memories from a turn: its name, or the workflow itself. Default: a built-in one \
             that keeps nothing.",
        )
        .aliases(&["memory_extraction"]),
        Field::optional("may_decline", Kind::Bool, "True if the agent may decline calls of other agents.").default("false"),
        Field::optional("limits", Kind::Shape(&LIMITS), "Limits on attempts, depth and time."),
    ],
};

static LIMITS: Shape = Shape {
    name: "Limits",
    doc: "Limits on attempts, depth and time. The first two belong to the agent; the others apply to a whole conversation and \
          are taken from the agent of that conversation.",
    fields: &[
        Field::optional(
            "max_moves",
            ONE_OR_MORE,
            "Maximum number of moves of a turn; at the last one the model must answer without tools. Default: no limit.",
        ),
        Field::optional("recent_turns", COUNT, "Number of earlier turns sent to the model.").default("20"),
        Field::optional("depth", COUNT, "Maximum depth of nested agent calls.").default("8"),
        Field::optional("decisions", ONE_OR_MORE, "Maximum number of decisions that one input may cause.")
            .default("1000"),
        Field::optional(
            "context",
            Kind::Shape(&ATTEMPTS),
            "Attempts at building a request. Default: 3, with a delay of 100 ms and a limit of 30 s each.",
        ),
        Field::optional(
            "model",
            Kind::Shape(&ATTEMPTS),
            "Attempts at a model call. Default: 3, with a delay of 500 ms and a limit of 120 s each.",
        ),
        Field::optional(
            "memory",
            Kind::Shape(&ATTEMPTS),
            "Attempts at extracting memories. Default: 3, with a delay of 100 ms and a limit of 30 s each.",
        ),
    ],
};

static ATTEMPTS: Shape = Shape {
    name: "Attempts",
    doc: "Limits on the attempts at one operation.",
    fields: &[
        Field::optional("attempts", ONE_OR_MORE, "Maximum number of attempts."),
        Field::optional(
            "backoff_ms",
            DELAY,
            "Delay after the first failed attempt; it doubles after each further one.",
        ),
        Field::optional("timeout_ms", TIME_LIMIT, "Time limit of one attempt."),
    ],
};

/// Configured language model.
pub static CONNECTOR: TaggedShapes =
    TaggedShapes { key: "type", shapes: &[&SCRIPTED, &RECORDED, &OPENAI, &ANTHROPIC], untagged: None };

static SCRIPTED: Shape = Shape {
    name: "ScriptedModel",
    doc: "A language model whose replies follow a script. `${ENV.NAME}` in texts of connectors is replaced by an \
          environment variable, which must be set if the connector is used.",
    fields: &[
        Field::required("type", Kind::Choice(&["scripted"]), "Kind of the model."),
        Field::required("script", Kind::NonEmptyText, "File with the rules."),
        PRICE,
    ],
};

static RECORDED: Shape = Shape {
    name: "RecordedModel",
    doc: "A language model whose replies are replayed from a recording.",
    fields: &[
        Field::required("type", Kind::Choice(&["recorded"]), "Kind of the model."),
        Field::required("file", Kind::NonEmptyText, "File with the recording."),
        Field::optional(
            "recorded_timing",
            Kind::Bool,
            "True if replies take as long as recorded; otherwise they are immediate.",
        )
        .default("false")
        .other_names(&["in_recorded_time"]),
        PRICE,
    ],
};

const PRICE: Field = Field::optional(
    "price",
    Kind::Shape(&PRICES),
    "Prices of the model's tokens. Default: costs are unknown.",
);

static PRICES: Shape = Shape {
    name: "Price",
    doc: "Prices of a million tokens of a model. All prices must use the same currency.",
    fields: &[
        Field::required("input", Kind::Number, "Input tokens."),
        Field::required("output", Kind::Number, "Output tokens."),
        Field::optional(
            "cached_input",
            Kind::Number,
            "Input tokens that the provider had cached. Default: same as `input`.",
        ),
    ],
};

const MODEL: Field =
    Field::required("model", Kind::NonEmptyText, "Name of the model, as the provider defines it.");
const BASE_URL: Field =
    Field::optional("base_url", Kind::Url, "Base URL of the API. Default: the provider's public API.");
const API_KEY: Field = Field::optional("api_key", Kind::NonEmptyText, "API key. Default: none is sent.");
const HEADERS: Field = Field::optional("headers", Kind::Map(&Kind::Text), "Additional request headers.");
const TEMPERATURE: Field =
    Field::optional("temperature", Kind::Number, "Sampling temperature. Default: the provider's.");
const MAX_TOKENS: Field = Field::optional(
    "max_tokens",
    ONE_OR_MORE,
    "Maximum length of a reply, in tokens. Default: the provider's.",
);
const STREAM: Field = Field::optional("stream", Kind::Bool, "True if replies are streamed.").default("true");
const EXTRA: Field =
    Field::optional("extra", Kind::JsonMap, "Additional members of the request body; `null` removes one.");
const CONNECT_TIMEOUT: Field =
    Field::optional("connect_timeout_ms", TIME_LIMIT, "Time limit for opening the connection.")
        .default("10000");
const FIRST_BYTE_TIMEOUT: Field = Field::optional(
    "first_byte_timeout_ms",
    TIME_LIMIT,
    "Time limit for the first byte of a streamed reply.",
)
.default("60000");
const IDLE_TIMEOUT: Field =
    Field::optional("idle_timeout_ms", TIME_LIMIT, "Time limit between two pieces of a reply.")
        .default("60000");
const CALL_TIMEOUT: Field =
    Field::optional("timeout_ms", TIME_LIMIT, "Time limit of the whole call.").default("120000");

/// Returns the keys of a model of a provider.
const fn provider_fields(kind: Field) -> [Field; 14] {
    [
        kind,
        MODEL,
        BASE_URL,
        API_KEY,
        HEADERS,
        TEMPERATURE,
        MAX_TOKENS,
        STREAM,
        EXTRA,
        CONNECT_TIMEOUT,
        FIRST_BYTE_TIMEOUT,
        IDLE_TIMEOUT,
        CALL_TIMEOUT,
        PRICE,
    ]
}

static OPENAI: Shape = Shape {
    name: "OpenAiModel",
    doc: "A language model with an API compatible with OpenAI chat completions.",
    fields: &provider_fields(Field::required("type", Kind::Choice(&["openai"]), "Kind of the model.")),
};

static ANTHROPIC: Shape = Shape {
    name: "AnthropicModel",
    doc: "A language model with the Anthropic messages API.",
    fields: &provider_fields(Field::required("type", Kind::Choice(&["anthropic"]), "Kind of the model.")),
};

pub(super) static TOOL: Shape = Shape {
    name: "Tool",
    doc: "A tool that the model can call. Its target is one of `task`, `workflow`, `agent` and `client`.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Name of the tool for the model."),
        Field::optional("description", Kind::Text, "Description of the tool for the model."),
        Field::optional("input", Kind::JsonMap, "JSON Schema of the input.")
            .aliases(&["input_schema", "parameters"])
            .default("{ type: object }"),
        Field::optional(
            "task",
            Kind::OneOf(&NAME_OR_TASK),
            "Target task: the name of a file in `tasks/`, a path, or the task itself.",
        ),
        Field::optional(
            "workflow",
            Kind::OneOf(&NAME_OR_WORKFLOW),
            "Target workflow: the name of a file in `workflows/`, a path, or the workflow itself.",
        ),
        Field::optional(
            "agent",
            Kind::OneOf(&NAME_OR_AGENT),
            "Target agent: the name of a file or folder in `agents/`, a path, or the agent itself.",
        ),
        Field::optional(
            "client",
            Kind::Bool,
            "`true` if the client of the conversation executes the tool.",
        ),
        Field::optional(
            "approval",
            Kind::NonEmptyText,
            "Question that a human must approve before each call; `{member}` is replaced by a member of the input. Default: no human is \
             asked.",
        ),
        Field::optional("async", Kind::Bool, "True if the agent continues before the tool has answered.").default("false"),
        Field::optional(
            "mode",
            Kind::Choice(&["delegate", "loop_in"]),
            "Invocation of a target agent: it answers in a separate conversation, or it joins this one. Default: `delegate`.",
        )
        .aliases(&["invocation_mode"]),
        Field::optional(
            "map",
            Kind::Map(&Kind::NonEmptyText),
            "Input of the target: each member with the name of the member of the model's input that it is taken from. \
             Default: the unchanged input.",
        )
        .aliases(&["input_mapping"]),
        Field::optional(
            "reads",
            EXPRESSIONS,
            "Additional members of the target's input: expressions over the model's `input` and the shared `state` of \
             the conversation.",
        ),
        Field::optional(
            "writes",
            EXPRESSIONS,
            "Changes to the shared state of the conversation when the tool has completed: paths with \
             expressions over `input`, `result` and `state`.",
        ),
        Field::optional("retry", Kind::Shape(&TOOL_RETRY), "Retries after infrastructure failures."),
        Field::optional(
            "timeout_ms",
            Kind::OneOf(&[TIME_LIMIT, Kind::False]),
            "Time limit of one attempt; `false` for no limit. Default: 60000, for a client tool \
             `false`.",
        ),
    ],
};

pub(super) static TOOL_RETRY: Shape = Shape {
    name: "ToolRetry",
    doc: "Retries of a tool after infrastructure failures; business failures are not retried.",
    fields: &[
        Field::optional("max_attempts", ONE_OR_MORE, "Maximum number of attempts.").default("1"),
        Field::optional("backoff_ms", DELAY, "Delay between attempts.").default("1000"),
    ],
};

/// A task.
pub static TASK: Shape = Shape {
    name: "Task",
    doc: "Work that runs to completion without user interaction: a sequence of steps. Expressions can use \
          `input`, `state` and `output`, and `result` in output mappings.",
    fields: &[
        Field::optional(
            "name",
            Kind::NonEmptyText,
            "Name of the task. The id is the name in lower case, with `-` for spaces. Default: the name of the file, the tool or \
             the workflow and its node.",
        ),
        Field::optional("input", Kind::JsonMap, "JSON Schema of the input. Default: anything.")
            .aliases(&["input_schema"]),
        Field::optional("output", Kind::JsonMap, "JSON Schema of the output. Default: anything.")
            .aliases(&["output_schema"]),
        Field::required("steps", Kind::List(&Kind::Shape(&STEP)), "Steps of the task, in order."),
        Field::optional(
            "retry",
            Kind::Shape(&TASK_RETRY),
            "Retries of the whole task. Default: a single attempt.",
        ),
        Field::optional("timeout_ms", TIME_LIMIT, "Time limit of the task. Default: no limit."),
    ],
};

pub(super) static TASK_RETRY: Shape = Shape {
    name: "TaskRetry",
    doc: "Retries of the whole task.",
    fields: &[
        Field::optional("max_attempts", ONE_OR_MORE, "Maximum number of attempts.").default("1"),
        Field::optional(
            "backoff",
            Kind::Choice(&["none", "linear", "exponential"]),
            "Growth of the delay between attempts.",
        )
        .default("none"),
        Field::optional("delay_ms", DELAY, "First delay.").default("0"),
        Field::optional("max_delay_ms", DELAY, "Maximum delay. Default: no limit."),
    ],
};

pub(super) static STEP: Shape = Shape {
    name: "Step",
    doc: "One step of a task: one of `mock`, `echo`, `fail`, `context`, `assemble`, `memory` and `agent`.",
    fields: &[
        Field::optional("name", Kind::NonEmptyText, "Name of the step. Default: `step-N`, counted from 0."),
        Field::optional("mock", Kind::Shape(&MOCK), "Simulates a real action: returns a value, takes time, fails."),
        Field::optional("echo", Kind::Shape(&ECHO), "Returns its input: `echo: {}`."),
        Field::optional("fail", Kind::OneOf(&MESSAGE_OR_FAILURE), "Fails, with a message or a failure."),
        Field::optional("context", Kind::Shape(&CONTEXT), "Returns its input with merged members."),
        Field::optional(
            "assemble",
            Kind::Shape(&ASSEMBLE),
            "Builds a request to the model from the system prompt, earlier messages and the transcript of the turn.",
        ),
        Field::optional(
            "memory",
            Kind::Choice(&["write", "read", "search", "list", "delete"]),
            "Accesses the agent's memory. Its input is `content` (and `kind`, `significance` from 0 to 1) to write, `id` to \
             read or delete, `query` (and `limit`) to search.",
        ),
        Field::optional(
            "agent",
            Kind::OneOf(&NAME_OR_AGENT),
            "Calls an agent in a separate conversation: the name of a file or folder in `agents/`, a path, or the agent \
             itself. Its answer is the member `response` of the result.",
        ),
        Field::optional(
            "input",
            ONE_OR_MORE_EXPRESSIONS,
            "Input of the action: an expression, or members with expressions. `{}` is an empty input. Default: `input`, \
             the input of the task.",
        ),
        Field::optional(
            "output",
            ONE_OR_MORE_EXPRESSIONS,
            "Use of the result: an expression that becomes the output, or paths that start with `output` or `state` \
             with expressions. `{}` stores it at `state._lastOutput`. Default: `result` becomes the output.",
        ),
        Field::optional(
            "on_failure",
            Kind::Choice(&["abort", "retry", "continue"]),
            "Handling of a failed action: the task fails (and is retried after an infrastructure failure), it is \
             retried, or it continues with the failure added to `state._errors`.",
        )
        .default("abort"),
        Field::optional(
            "when",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&STEP_CONDITION)]),
            "Condition of the step; it is skipped if the condition is false.",
        ),
    ],
};

static ECHO: Shape = Shape { name: "Echo", doc: "Returns its input. It has no settings.", fields: &[] };

const STEP_BRANCH: Kind = Kind::Choice(&["continue", "skip", "succeed", "fail"]);

pub(super) static STEP_CONDITION: Shape = Shape {
    name: "StepCondition",
    doc: "Effect of a condition on a step: the step runs or is skipped, or the task ends successfully or \
          with a failure.",
    fields: &[
        Field::required("condition", EXPRESSION, "The condition, an expression."),
        Field::optional("then", STEP_BRANCH, "Branch if the condition is true.").default("continue"),
        Field::optional("else", STEP_BRANCH, "Branch if the condition is false.").default("skip"),
    ],
};

pub(super) static MOCK: Shape = Shape {
    name: "Mock",
    doc: "Simulates a real action. The result is an object; any other value becomes its member `value`.",
    fields: &[
        Field::optional("returns", Kind::Json, "Result of the mock."),
        Field::optional("computes", EXPRESSION, "Result of the mock, as an expression over `input`."),
        Field::optional("schema", Kind::JsonMap, "JSON Schema of a generated result."),
        Field::optional("fails", Kind::OneOf(&MESSAGE_OR_FAILURE), "Fails, with a message or a failure."),
        Field::optional(
            "first_attempts",
            ONE_OR_MORE,
            "Number of attempts that fail before one succeeds. Default: all of them.",
        ),
        Field::optional(
            "delay_ms",
            Kind::OneOf(&[DELAY, Kind::NonEmptyList(&DELAY)]),
            "Duration: a time, or a list of the shortest and the longest.",
        )
        .default("0"),
        Field::optional(
            "seed",
            Kind::Integer { min: 0, max: i64::MAX },
            "Seed for generated values and times, combined with the run.",
        )
        .default("0"),
    ],
};

pub(super) static FAILURE: Shape = Shape {
    name: "Failure",
    doc: "A failure. With `kind` it is an infrastructure failure, and another attempt may succeed; with `code` it is a \
          business failure, which is permanent.",
    fields: &[
        Field::required("message", Kind::NonEmptyText, "Message of the failure."),
        Field::optional(
            "kind",
            Kind::Choice(&["network", "timeout", "rate_limit", "server"]),
            "Kind of the infrastructure failure.",
        ),
        Field::optional(
            "code",
            Kind::Choice(&[
                "EXECUTION_FAILED",
                "TIMEOUT",
                "NOT_FOUND",
                "PERMISSION_DENIED",
                "INVALID_INPUT",
                "AGENT_DECLINED",
                "INTERNAL_ERROR",
            ]),
            "Error code for the model. Default: `EXECUTION_FAILED`, unless there is a `kind`.",
        ),
    ],
};

pub(super) static CONTEXT: Shape = Shape {
    name: "Context",
    doc: "Returns its input with merged members.",
    fields: &[Field::optional("merge", Kind::Shape(&MERGE), "Members to merge. Default: none.")],
};

pub(super) static MERGE: Shape = Shape {
    name: "Merge",
    doc: "Merges several members into one list.",
    fields: &[
        Field::required("target", Kind::NonEmptyText, "Name of the new member."),
        Field::required(
            "sources",
            Kind::NonEmptyList(&Kind::NonEmptyText),
            "Names of the merged members, in order.",
        ),
        Field::optional("flatten", Kind::Bool, "True if lists among them are flattened.").default("false"),
    ],
};

pub(super) static ASSEMBLE: Shape = Shape {
    name: "Assemble",
    doc: "Builds a request to the model from the input of context assembly.",
    fields: &[Field::optional("append_system", Kind::NonEmptyText, "Text appended to the system prompt.")],
};

/// A workflow.
pub static WORKFLOW: Shape = Shape {
    name: "Workflow",
    doc: "A graph of tasks. Expressions can use `input`, `state`, `output`, within branches `branch.index`, \
          `branch.total` and the item of the branch, and `result` in output mappings.",
    fields: &[
        Field::optional(
            "name",
            Kind::NonEmptyText,
            "Name of the workflow. The id is the name in lower case, with `-` for spaces. Default: the name of the file or the tool.",
        ),
        Field::optional("input", Kind::JsonMap, "JSON Schema of the input. Default: anything.")
            .aliases(&["input_schema"]),
        Field::optional("output", Kind::JsonMap, "JSON Schema of the output. Default: anything.")
            .aliases(&["output_schema"]),
        Field::optional(
            "returns",
            ONE_OR_MORE_EXPRESSIONS,
            "Result of the workflow: an expression, or members with expressions. Default: its `output`.",
        ),
        Field::optional("initial", Kind::NonEmptyText, "First node. Default: the first one in `nodes`."),
        Field::required("nodes", Kind::NonEmptyList(&Kind::Shape(&NODE)), "Nodes of the workflow."),
        Field::optional(
            "transitions",
            Kind::List(&Kind::Shape(&TRANSITION)),
            "Transitions between nodes. Without transitions, the nodes run in order.",
        ),
    ],
};

pub(super) static NODE: Shape = Shape {
    name: "Node",
    doc: "A node of a workflow, which runs a `task`, another `workflow` or an `agent`.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Name of the node, unique in the workflow."),
        Field::optional(
            "task",
            Kind::OneOf(&NAME_OR_TASK),
            "Task of the node: the name of a file in `tasks/`, a path, or the task itself.",
        ),
        Field::optional(
            "workflow",
            Kind::OneOf(&NAME_OR_WORKFLOW),
            "Workflow of the node: the name of a file in `workflows/`, a path, or the workflow itself.",
        ),
        Field::optional(
            "agent",
            Kind::OneOf(&NAME_OR_AGENT),
            "Agent of the node, called in a separate conversation: the name of a file or folder in `agents/`, a path, \
             or the agent itself. Its answer is the member `response` of the result.",
        ),
        Field::optional(
            "input",
            ONE_OR_MORE_EXPRESSIONS,
            "Input of the work: an expression, or members with expressions. Default: the input of the workflow.",
        ),
        Field::optional(
            "output",
            EXPRESSIONS,
            "Use of the result: paths that start with `output` or `state`, with expressions. Default: `result` \
             becomes the output.",
        ),
    ],
};

pub(super) static TRANSITION: Shape = Shape {
    name: "Transition",
    doc: "A transition between two nodes.",
    fields: &[
        Field::required("from", Kind::NonEmptyText, "Source node."),
        Field::required("to", Kind::NonEmptyText, "Target node."),
        Field::optional("name", Kind::NonEmptyText, "Name of the transition. Default: `FROM>TO`."),
        Field::optional("when", EXPRESSION, "Condition of the transition. Default: always true."),
        Field::optional(
            "priority",
            COUNT,
            "Transitions with the lowest number are checked first; all matching ones of that number are taken.",
        )
        .default("0"),
        Field::optional("spawn", ONE_OR_MORE, "Number of branches to start.").default("1"),
        Field::optional("for_each", Kind::Shape(&FOR_EACH), "Starts a branch for each item of a list."),
        Field::optional(
            "group",
            Kind::NonEmptyText,
            "Name of the group of branches; required for joining them.",
        ),
        Field::optional(
            "fan_in",
            Kind::Shape(&FAN_IN),
            "Joins branches before the target node.",
        ),
        Field::optional(
            "max_iterations",
            ONE_OR_MORE,
            "Maximum number of times the transition is taken along one path. Default: no limit.",
        ),
    ],
};

pub(super) static FOR_EACH: Shape = Shape {
    name: "ForEach",
    doc: "Starts one branch for each item of a list.",
    fields: &[
        Field::required("collection", Kind::NonEmptyText, "Expression for the list."),
        Field::required("item", Kind::NonEmptyText, "Name of the item in expressions of the branch."),
    ],
};

pub(super) static FAN_IN: Shape = Shape {
    name: "FanIn",
    doc: "Joins the branches of a group.",
    fields: &[
        Field::required("group", Kind::NonEmptyText, "Group of the joined branches."),
        Field::optional(
            "join",
            Kind::OneOf(&[Kind::Choice(&["all", "any"]), ONE_OR_MORE]),
            "Number of branches to wait for: all, the first, or a count.",
        )
        .default("all"),
        Field::optional(
            "merge",
            Kind::Shape(&MERGING),
            "Combination of the branch outputs. Default: they are dropped.",
        ),
        Field::optional(
            "timeout_ms",
            TIME_LIMIT,
            "Time limit after the first branch has arrived. Default: no limit.",
        ),
        Field::optional(
            "on_timeout",
            Kind::Choice(&["fail", "proceed"]),
            "Action when the time limit expires: the workflow fails, or continues with the arrived branches. Default: `fail`.",
        ),
    ],
};

pub(super) static MERGING: Shape = Shape {
    name: "Merging",
    doc: "Combination of the branch outputs, in branch order: one of these, with the path where the result is \
          stored, which starts with `output` or `state`.",
    fields: &[
        Field::optional("append", Kind::NonEmptyText, "Concatenates lists."),
        Field::optional("collect", Kind::NonEmptyText, "Collects all outputs in a list."),
        Field::optional("merge_object", Kind::NonEmptyText, "Merges objects; later branches win."),
        Field::optional(
            "keyed_by_branch",
            Kind::NonEmptyText,
            "Builds an object with the branch indexes as keys.",
        ),
        Field::optional("last_wins", Kind::NonEmptyText, "Uses the output of the last branch."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_have_no_problems() {
        for shape in [&super::AGENT, &super::TASK, &super::WORKFLOW] {
            assert_eq!(shape.problems(), Vec::<String>::new());
        }
    }
}
