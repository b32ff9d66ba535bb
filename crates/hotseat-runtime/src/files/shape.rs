//! What may be written in the files of an agent, as data: checks, JSON Schemas and reference pages come from here.

use hotseat_document::{Field, Kind, Shape, Tagged};

const MOST_MILLISECONDS: i64 = 7 * 24 * 3600 * 1000;
/// A time that may be none at all.
const WAIT: Kind = Kind::Integer { min: 0, max: MOST_MILLISECONDS };
/// A time limit.
const LIMIT: Kind = Kind::Integer { min: 1, max: MOST_MILLISECONDS };
const ONE_OR_MORE: Kind = Kind::Integer { min: 1, max: 1_000_000 };
const COUNT: Kind = Kind::Integer { min: 0, max: 1_000_000 };
/// An expression, or a number or truth value that stands for itself.
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
    doc: "An agent: what it is told, which model speaks for it, what it can do. In a file of its own (`agent.yaml`), or \
          within a tool.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Its name; its id is the name in lower case, with `-` for spaces."),
        Field::optional("description", Kind::Text, "What it is for, told to people and never to the model."),
        Field::optional("system", Kind::Text, "The system prompt: what the model is told about itself.")
            .aliases(&["system_prompt"]),
        Field::optional(
            "connector",
            Kind::NonEmptyText,
            "The model that speaks: the name of an entry of `connectors`. Default: the script beside the file \
             (`script.yaml` beside `agent.yaml`, `NAME.script.yaml` beside `NAME.yaml`), then the connector of the \
             agent that is loaded, then the connector `default`.",
        ),
        Field::optional(
            "connectors",
            Kind::Map(&Kind::Tagged(&CONNECTOR)),
            "Language models by name, for this agent and for those that it refers to.",
        ),
        Field::optional("temperature", Kind::Number, "How freely the model chooses its words. Default: the connector's."),
        Field::optional("max_tokens", ONE_OR_MORE, "The longest reply, in tokens. Default: the connector's."),
        Field::optional("tools", Kind::List(&Kind::Shape(&TOOL)), "What it can do."),
        Field::optional(
            "context",
            Kind::OneOf(&NAME_OR_WORKFLOW),
            "The workflow that builds requests to the model: its name, or the workflow itself. Default: a built-in one.",
        )
        .aliases(&["context_assembly"]),
        Field::optional(
            "context_policy",
            Kind::Choice(&["per_model_call", "per_turn"]),
            "When requests are built: before every model call, or once a turn.",
        )
        .default("per_model_call"),
        Field::optional(
            "memory",
            Kind::OneOf(&NAME_OR_WORKFLOW),
            "The workflow that keeps what a turn has brought: its name, or the workflow itself. Default: a built-in one \
             that keeps nothing.",
        )
        .aliases(&["memory_extraction"]),
        Field::optional("may_decline", Kind::Bool, "Whether it may decline what another agent asks of it.").default("false"),
        Field::optional("limits", Kind::Shape(&LIMITS), "How often and how long."),
    ],
};

static LIMITS: Shape = Shape {
    name: "Limits",
    doc: "How often and how long. The first two are the agent's own; the others hold for a conversation as a whole and \
          are those of the agent that it is held with.",
    fields: &[
        Field::optional(
            "max_moves",
            ONE_OR_MORE,
            "How many moves a turn may have; at the last one the model must answer without tools. Default: any number.",
        ),
        Field::optional("recent_turns", COUNT, "How many earlier turns the model is told of.").default("20"),
        Field::optional("depth", COUNT, "How deep agents may call agents.").default("8"),
        Field::optional("decisions", ONE_OR_MORE, "How many decisions one input may cause.").default("1000"),
        Field::optional(
            "context",
            Kind::Shape(&ATTEMPTS),
            "Attempts at building a request. Default: 3, with a wait of 100 ms, each 30 s long.",
        ),
        Field::optional(
            "model",
            Kind::Shape(&ATTEMPTS),
            "Attempts at a model call. Default: 3, with a wait of 500 ms, each 120 s long.",
        ),
        Field::optional(
            "memory",
            Kind::Shape(&ATTEMPTS),
            "Attempts at keeping what a turn has brought. Default: 3, with a wait of 100 ms, each 30 s long.",
        ),
    ],
};

static ATTEMPTS: Shape = Shape {
    name: "Attempts",
    doc: "Attempts at one thing.",
    fields: &[
        Field::optional("attempts", ONE_OR_MORE, "How many attempts there are in all."),
        Field::optional(
            "backoff_ms",
            WAIT,
            "The wait after the first failed attempt; it doubles with each further one.",
        ),
        Field::optional("timeout_ms", LIMIT, "How long one attempt may take."),
    ],
};

/// A configured language model.
pub static CONNECTOR: Tagged =
    Tagged { key: "type", shapes: &[&SCRIPTED, &RECORDED, &OPENAI, &ANTHROPIC], untagged: None };

static SCRIPTED: Shape = Shape {
    name: "ScriptedModel",
    doc: "A language model that answers what a script says. `${ENV.NAME}` in texts of connectors stands for an \
          environment variable, which must be set if the connector is used.",
    fields: &[
        Field::required("type", Kind::Choice(&["scripted"]), "What answers."),
        Field::required("script", Kind::NonEmptyText, "The file with the rules."),
        PRICE,
    ],
};

static RECORDED: Shape = Shape {
    name: "RecordedModel",
    doc: "A language model that answers what was recorded.",
    fields: &[
        Field::required("type", Kind::Choice(&["recorded"]), "What answers."),
        Field::required("file", Kind::NonEmptyText, "The file with the recording."),
        Field::optional(
            "in_recorded_time",
            Kind::Bool,
            "Whether answers take as long as they took; otherwise they are there at once.",
        )
        .default("false"),
        PRICE,
    ],
};

const PRICE: Field =
    Field::optional("price", Kind::Shape(&PRICES), "What its tokens cost; without it nobody knows.");

static PRICES: Shape = Shape {
    name: "Price",
    doc: "What a million tokens of a model cost, in any currency, as long as it is the same everywhere.",
    fields: &[
        Field::required("input", Kind::Number, "Tokens of requests."),
        Field::required("output", Kind::Number, "Tokens of replies."),
        Field::optional(
            "cached_input",
            Kind::Number,
            "Tokens of requests that the provider had in a cache. Default: as `input`.",
        ),
    ],
};

const MODEL: Field = Field::required("model", Kind::NonEmptyText, "The model, in the words of its provider.");
const BASE_URL: Field =
    Field::optional("base_url", Kind::Url, "Where the provider is. Default: its own address.");
const API_KEY: Field = Field::optional("api_key", Kind::NonEmptyText, "The key. Default: none is sent.");
const HEADERS: Field = Field::optional("headers", Kind::Map(&Kind::Text), "Further headers.");
const TEMPERATURE: Field = Field::optional(
    "temperature",
    Kind::Number,
    "How freely the model chooses its words. Default: the provider's.",
);
const MAX_TOKENS: Field =
    Field::optional("max_tokens", ONE_OR_MORE, "The longest reply, in tokens. Default: the provider's.");
const STREAM: Field = Field::optional("stream", Kind::Bool, "Whether replies are streamed.").default("true");
const EXTRA: Field =
    Field::optional("extra", Kind::JsonMap, "Further members of the request's body; `null` takes one away.");
const CONNECT_TIMEOUT: Field =
    Field::optional("connect_timeout_ms", LIMIT, "How long it may take until the connection is there.")
        .default("10000");
const FIRST_BYTE_TIMEOUT: Field = Field::optional(
    "first_byte_timeout_ms",
    LIMIT,
    "How long it may take until the first byte of a streamed reply.",
)
.default("60000");
const IDLE_TIMEOUT: Field =
    Field::optional("idle_timeout_ms", LIMIT, "How long it may take between two pieces of a reply.")
        .default("60000");
const CALL_TIMEOUT: Field =
    Field::optional("timeout_ms", LIMIT, "How long a whole call may take.").default("120000");

static OPENAI: Shape = Shape {
    name: "OpenAiModel",
    doc: "A language model behind chat completions, as OpenAI defined them and many servers speak them.",
    fields: &[
        Field::required("type", Kind::Choice(&["openai"]), "What answers."),
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
    ],
};

static ANTHROPIC: Shape = Shape {
    name: "AnthropicModel",
    doc: "A language model behind Anthropic's messages.",
    fields: &[
        Field::required("type", Kind::Choice(&["anthropic"]), "What answers."),
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
    ],
};

pub(super) static TOOL: Shape = Shape {
    name: "Tool",
    doc: "Something the model can call. One of `task`, `workflow`, `agent` and `client` is behind it.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "What the model calls it."),
        Field::optional("description", Kind::Text, "What the model is told of it."),
        Field::optional("input", Kind::JsonMap, "The JSON Schema of its input.")
            .aliases(&["input_schema", "parameters"])
            .default("{ type: object }"),
        Field::optional(
            "task",
            Kind::OneOf(&NAME_OR_TASK),
            "The task behind it: the name of a file in `tasks/`, a path, or the task itself.",
        ),
        Field::optional(
            "workflow",
            Kind::OneOf(&NAME_OR_WORKFLOW),
            "The workflow behind it: the name of a file in `workflows/`, a path, or the workflow itself.",
        ),
        Field::optional(
            "agent",
            Kind::OneOf(&NAME_OR_AGENT),
            "The agent behind it: the name of a file or folder in `agents/`, a path, or the agent itself.",
        ),
        Field::optional(
            "client",
            Kind::Bool,
            "`true`: whoever holds the conversation from outside carries the tool out.",
        ),
        Field::optional(
            "approval",
            Kind::NonEmptyText,
            "What a person is asked before each call; `{member}` stands for a member of the input. Default: nobody is \
             asked.",
        ),
        Field::optional("async", Kind::Bool, "Whether the agent goes on before the tool has answered.").default("false"),
        Field::optional(
            "mode",
            Kind::Choice(&["delegate", "loop_in"]),
            "How an agent behind it takes part: it works and answers, or it joins the conversation. Default: `delegate`.",
        )
        .aliases(&["invocation_mode"]),
        Field::optional(
            "map",
            Kind::Map(&Kind::NonEmptyText),
            "What the target is given: each member with the name of the member of the model's input it is taken from. \
             Default: the whole input as it is.",
        )
        .aliases(&["input_mapping"]),
        Field::optional(
            "reads",
            EXPRESSIONS,
            "Members that the target is given besides: expressions over the model's `input` and the shared `state` of \
             the conversation.",
        ),
        Field::optional(
            "writes",
            EXPRESSIONS,
            "What is put into the shared state of the conversation when the tool has completed: paths in it with \
             expressions over `input`, `result` and `state`.",
        ),
        Field::optional("retry", Kind::Shape(&TOOL_RETRY), "How often it is tried when the means fail."),
        Field::optional(
            "timeout_ms",
            Kind::OneOf(&[LIMIT, Kind::False]),
            "How long one attempt may take; `false` for as long as it wants. Default: 60000, for a tool of the client \
             `false`.",
        ),
    ],
};

pub(super) static TOOL_RETRY: Shape = Shape {
    name: "ToolRetry",
    doc: "How often a tool is tried when the means fail; what fails in itself is not tried again.",
    fields: &[
        Field::optional("max_attempts", ONE_OR_MORE, "Attempts in all.").default("1"),
        Field::optional("backoff_ms", WAIT, "The wait between attempts.").default("1000"),
    ],
};

/// A task.
pub static TASK: Shape = Shape {
    name: "Task",
    doc: "Work that runs to its end without asking anybody: steps that run one after the other. Expressions in it see \
          `input`, `state` and `output`, and `result` where a step's result is taken.",
    fields: &[
        Field::optional(
            "name",
            Kind::NonEmptyText,
            "Its name; its id is the name in lower case, with `-` for spaces. Default: the name of the file, the tool or \
             the workflow and its node.",
        ),
        Field::optional("input", Kind::JsonMap, "The JSON Schema of what it is given. Default: anything.")
            .aliases(&["input_schema"]),
        Field::optional("output", Kind::JsonMap, "The JSON Schema of what it returns. Default: anything.")
            .aliases(&["output_schema"]),
        Field::required("steps", Kind::List(&Kind::Shape(&STEP)), "Its steps, in order."),
        Field::optional(
            "retry",
            Kind::Shape(&TASK_RETRY),
            "How often it is tried as a whole. Default: once.",
        ),
        Field::optional("timeout_ms", LIMIT, "How long it may take. Default: as long as it wants."),
    ],
};

pub(super) static TASK_RETRY: Shape = Shape {
    name: "TaskRetry",
    doc: "How often a task is tried as a whole.",
    fields: &[
        Field::optional("max_attempts", ONE_OR_MORE, "Attempts in all.").default("1"),
        Field::optional(
            "backoff",
            Kind::Choice(&["none", "linear", "exponential"]),
            "How the wait between attempts grows.",
        )
        .default("none"),
        Field::optional("delay_ms", WAIT, "The first wait.").default("0"),
        Field::optional("max_delay_ms", WAIT, "The longest wait. Default: any."),
    ],
};

pub(super) static STEP: Shape = Shape {
    name: "Step",
    doc: "One step of a task: one of `mock`, `echo`, `fail`, `context`, `assemble`, `memory` and `agent`.",
    fields: &[
        Field::optional("name", Kind::NonEmptyText, "Its name. Default: `step-N`, counted from 0."),
        Field::optional("mock", Kind::Shape(&MOCK), "Stands for something real: returns a value, takes time, fails."),
        Field::optional("echo", Kind::Shape(&ECHO), "Returns what it is given: `echo: {}`."),
        Field::optional("fail", Kind::OneOf(&MESSAGE_OR_FAILURE), "Fails: with a message, or more."),
        Field::optional("context", Kind::Shape(&CONTEXT), "Returns what it is given, some of it merged."),
        Field::optional(
            "assemble",
            Kind::Shape(&ASSEMBLE),
            "Builds a request to the model: system prompt, what was said before, what has happened in the turn.",
        ),
        Field::optional(
            "memory",
            Kind::Choice(&["write", "read", "search", "list", "delete"]),
            "Uses the agent's memory. It is given `content` (and `kind`, `significance` from 0 to 1) to write, `id` to \
             read or delete, `query` (and `limit`) to search.",
        ),
        Field::optional(
            "agent",
            Kind::OneOf(&NAME_OR_AGENT),
            "Asks an agent in a conversation of its own: the name of a file or folder in `agents/`, a path, or the agent \
             itself. Its answer is the member `response` of the result.",
        ),
        Field::optional(
            "input",
            ONE_OR_MORE_EXPRESSIONS,
            "What the action is given: an expression, or members with expressions. `{}` is nothing. Default: `input`, \
             what the task was given.",
        ),
        Field::optional(
            "output",
            ONE_OR_MORE_EXPRESSIONS,
            "Where the result goes: an expression that becomes the output, or paths that begin with `output` or `state` \
             with expressions. `{}` puts it to `state._lastOutput`. Default: `result` becomes the output.",
        ),
        Field::optional(
            "on_failure",
            Kind::Choice(&["abort", "retry", "continue"]),
            "What becomes of the task when the action fails: it fails (and is tried again if the means failed), it is \
             tried again, or it goes on with the failure added to `state._errors`.",
        )
        .default("abort"),
        Field::optional(
            "when",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&STEP_CONDITION)]),
            "The condition under which the step runs; it is skipped otherwise.",
        ),
    ],
};

static ECHO: Shape =
    Shape { name: "Echo", doc: "Returns what it is given. It has no settings.", fields: &[] };

const STEP_BRANCH: Kind = Kind::Choice(&["continue", "skip", "succeed", "fail"]);

pub(super) static STEP_CONDITION: Shape = Shape {
    name: "StepCondition",
    doc: "What becomes of a step depending on a condition: it runs, it is skipped, or the task ends there in order or \
          with a failure.",
    fields: &[
        Field::required("condition", EXPRESSION, "The condition, an expression."),
        Field::optional("then", STEP_BRANCH, "When it holds.").default("continue"),
        Field::optional("else", STEP_BRANCH, "When it does not hold.").default("skip"),
    ],
};

pub(super) static MOCK: Shape = Shape {
    name: "Mock",
    doc: "Stands for something real. What it returns is an object; another value becomes its member `value`.",
    fields: &[
        Field::optional("returns", Kind::Json, "What it returns."),
        Field::optional("computes", EXPRESSION, "An expression over `input` that says what it returns."),
        Field::optional("schema", Kind::JsonMap, "A JSON Schema; it returns something made up that fits."),
        Field::optional("fails", Kind::OneOf(&MESSAGE_OR_FAILURE), "Fails instead: with a message, or more."),
        Field::optional(
            "first_attempts",
            ONE_OR_MORE,
            "How many attempts fail before it works. Default: all of them.",
        ),
        Field::optional(
            "delay_ms",
            Kind::OneOf(&[WAIT, Kind::NonEmptyList(&WAIT)]),
            "How long it takes: a time, or a list of the shortest and the longest.",
        )
        .default("0"),
        Field::optional(
            "seed",
            Kind::Integer { min: 0, max: i64::MAX },
            "What its made-up values and times depend on, besides the run.",
        )
        .default("0"),
    ],
};

pub(super) static FAILURE: Shape = Shape {
    name: "Failure",
    doc: "How something fails. With `kind` the means fail, and another attempt may succeed; with `code` the thing \
          itself fails, and will again.",
    fields: &[
        Field::required("message", Kind::NonEmptyText, "What is said of it."),
        Field::optional(
            "kind",
            Kind::Choice(&["network", "timeout", "rate_limit", "server"]),
            "Which means fail.",
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
            "What the model is told. Default: `EXECUTION_FAILED`, unless there is a `kind`.",
        ),
    ],
};

pub(super) static CONTEXT: Shape = Shape {
    name: "Context",
    doc: "Returns what it is given, some of it merged.",
    fields: &[Field::optional("merge", Kind::Shape(&MERGE), "What is merged. Default: nothing.")],
};

pub(super) static MERGE: Shape = Shape {
    name: "Merge",
    doc: "Members that become one list.",
    fields: &[
        Field::required("target", Kind::NonEmptyText, "The member that is made."),
        Field::required(
            "sources",
            Kind::NonEmptyList(&Kind::NonEmptyText),
            "The members it is made of, in order.",
        ),
        Field::optional("flatten", Kind::Bool, "Whether lists among them are taken apart.").default("false"),
    ],
};

pub(super) static ASSEMBLE: Shape = Shape {
    name: "Assemble",
    doc: "Builds a request to the model from what context assembly is given.",
    fields: &[Field::optional("append_system", Kind::NonEmptyText, "What is added to the system prompt.")],
};

/// A workflow.
pub static WORKFLOW: Shape = Shape {
    name: "Workflow",
    doc: "A graph of tasks. Expressions in it see `input`, `state`, `output`, within branches `branch.index`, \
          `branch.total` and the item they are for, and `result` where the result of a node is taken.",
    fields: &[
        Field::optional(
            "name",
            Kind::NonEmptyText,
            "Its name; its id is the name in lower case, with `-` for spaces. Default: the name of the file or the tool.",
        ),
        Field::optional("input", Kind::JsonMap, "The JSON Schema of what it is given. Default: anything.")
            .aliases(&["input_schema"]),
        Field::optional("output", Kind::JsonMap, "The JSON Schema of what it returns. Default: anything.")
            .aliases(&["output_schema"]),
        Field::optional(
            "returns",
            ONE_OR_MORE_EXPRESSIONS,
            "What it returns: an expression, or members with expressions. Default: its `output`.",
        ),
        Field::optional("initial", Kind::NonEmptyText, "The node where it begins. Default: the first one."),
        Field::required("nodes", Kind::NonEmptyList(&Kind::Shape(&NODE)), "Its nodes."),
        Field::optional(
            "transitions",
            Kind::List(&Kind::Shape(&TRANSITION)),
            "Its transitions. Without any the nodes follow each other as they stand.",
        ),
    ],
};

pub(super) static NODE: Shape = Shape {
    name: "Node",
    doc: "A place in a workflow where work is done: by a `task`, another `workflow` or an `agent`.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Its name in the workflow."),
        Field::optional(
            "task",
            Kind::OneOf(&NAME_OR_TASK),
            "The task: the name of a file in `tasks/`, a path, or the task itself.",
        ),
        Field::optional(
            "workflow",
            Kind::OneOf(&NAME_OR_WORKFLOW),
            "The workflow: the name of a file in `workflows/`, a path, or the workflow itself.",
        ),
        Field::optional(
            "agent",
            Kind::OneOf(&NAME_OR_AGENT),
            "The agent, which is asked in a conversation of its own: the name of a file or folder in `agents/`, a path, \
             or the agent itself. Its answer is the member `response` of the result.",
        ),
        Field::optional(
            "input",
            ONE_OR_MORE_EXPRESSIONS,
            "What the work is given: an expression, or members with expressions. Default: what the workflow was given.",
        ),
        Field::optional(
            "output",
            EXPRESSIONS,
            "Where the result goes: paths that begin with `output` or `state` with expressions. Default: `result` \
             becomes the output.",
        ),
    ],
};

pub(super) static TRANSITION: Shape = Shape {
    name: "Transition",
    doc: "A way from one node to another.",
    fields: &[
        Field::required("from", Kind::NonEmptyText, "The node from which it leads."),
        Field::required("to", Kind::NonEmptyText, "The node to which it leads."),
        Field::optional("name", Kind::NonEmptyText, "Its name. Default: `FROM>TO`."),
        Field::optional("when", EXPRESSION, "The condition under which it is taken. Default: always."),
        Field::optional(
            "priority",
            COUNT,
            "Those of the lowest number are looked at first; all of one number that hold are taken.",
        )
        .default("0"),
        Field::optional("spawn", ONE_OR_MORE, "How many branches it makes.").default("1"),
        Field::optional("for_each", Kind::Shape(&FOR_EACH), "Makes a branch for each item of a list."),
        Field::optional(
            "group",
            Kind::NonEmptyText,
            "What the branches are called together; needed where they come together again.",
        ),
        Field::optional(
            "fan_in",
            Kind::Shape(&FAN_IN),
            "Brings branches together before the node it leads to.",
        ),
        Field::optional(
            "max_iterations",
            ONE_OR_MORE,
            "How often it is taken at most along one path. Default: any number.",
        ),
    ],
};

pub(super) static FOR_EACH: Shape = Shape {
    name: "ForEach",
    doc: "One branch for each item of a list.",
    fields: &[
        Field::required("collection", Kind::NonEmptyText, "The list, an expression."),
        Field::required("item", Kind::NonEmptyText, "What an item is called in the branch."),
    ],
};

pub(super) static FAN_IN: Shape = Shape {
    name: "FanIn",
    doc: "How branches come together.",
    fields: &[
        Field::required("group", Kind::NonEmptyText, "The branches that do."),
        Field::optional(
            "join",
            Kind::OneOf(&[Kind::Choice(&["all", "any"]), ONE_OR_MORE]),
            "How many of them are waited for: all, the first, or so many.",
        )
        .default("all"),
        Field::optional(
            "merge",
            Kind::Shape(&MERGING),
            "What becomes of what they have brought. Default: nothing, it is dropped.",
        ),
        Field::optional(
            "timeout_ms",
            LIMIT,
            "How long is waited after the first has arrived. Default: as long as it takes.",
        ),
        Field::optional(
            "on_timeout",
            Kind::Choice(&["fail", "proceed"]),
            "What happens then: the workflow fails, or goes on with those that have arrived. Default: `fail`.",
        ),
    ],
};

pub(super) static MERGING: Shape = Shape {
    name: "Merging",
    doc: "What becomes of what branches have brought, in the order of the branches: one of these, with the path it is \
          put at, which begins with `output` or `state`.",
    fields: &[
        Field::optional("append", Kind::NonEmptyText, "Lists are joined to one."),
        Field::optional("collect", Kind::NonEmptyText, "A list of what each has brought."),
        Field::optional("merge_object", Kind::NonEmptyText, "One object; later branches win."),
        Field::optional(
            "keyed_by_branch",
            Kind::NonEmptyText,
            "An object with the number of the branch as key.",
        ),
        Field::optional("last_wins", Kind::NonEmptyText, "What the last branch has brought."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        for shape in [&super::AGENT, &super::TASK, &super::WORKFLOW] {
            assert_eq!(shape.problems(), Vec::<String>::new());
        }
    }
}
