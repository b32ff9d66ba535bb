//! File formats of agents as data, the source of checks, JSON Schemas and reference pages.

use hotseat_document::{Kind, TaggedShapes, document_shape};

const MAX_MILLISECONDS: i64 = 7 * 24 * 3600 * 1000;
/// A duration that may be 0.
const DELAY: Kind = Kind::Integer { min: 0, max: MAX_MILLISECONDS };
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

document_shape! {
    /// An agent: its prompt, model and tools. Either a file of its own (`agent.yaml`) or within a tool.
    pub static AGENT "Agent" {
        /// Name of the agent. The id is the name in lower case, with `-` for spaces.
        required "name" = Kind::NonEmptyText,
        /// Description for users; not sent to the model.
        optional "description" = Kind::Text,
        /// System prompt of the model.
        optional "system" = Kind::Text, aliases &["system_prompt"],
        /// Model of the agent: the name of an entry of `connectors`. Default: the script beside the file
        /// (`script.yaml` beside `agent.yaml`, `NAME.script.yaml` beside `NAME.yaml`), then the connector of
        /// the loaded agent, then the connector `default`.
        optional "connector" = Kind::NonEmptyText,
        /// Language models by name, for this agent and the agents it refers to.
        optional "connectors" = Kind::Map(&Kind::Tagged(&CONNECTOR)),
        /// Sampling temperature. Default: the connector's.
        optional "temperature" = Kind::Number,
        /// Maximum length of a reply, in tokens. Default: the connector's.
        optional "max_tokens" = ONE_OR_MORE,
        /// Tools of the agent.
        optional "tools" = Kind::List(&Kind::Shape(&TOOL)),
        /// Workflow that builds requests to the model: its name, or the workflow itself. Default: a built-in
        /// one.
        optional "context" = Kind::OneOf(&NAME_OR_WORKFLOW), aliases &["context_assembly"],
        /// When requests are built: before every model call, or once per turn.
        optional "context_policy" = Kind::Choice(&["per_model_call", "per_turn"]), shown "per_model_call",
        /// Workflow that extracts memories from a turn: its name, or the workflow itself. Default: a built-in
        /// one that keeps nothing.
        optional "memory" = Kind::OneOf(&NAME_OR_WORKFLOW), aliases &["memory_extraction"],
        /// True if the agent may decline calls of other agents.
        optional "may_decline" = Kind::Bool, shown "false",
        /// Limits on attempts, depth and time.
        optional "limits" = Kind::Shape(&LIMITS),
    }

    /// Limits on attempts, depth and time. The first two belong to the agent; the others apply to a whole
    /// conversation and are taken from the agent of that conversation.
    static LIMITS "Limits" {
        /// Maximum number of moves of a turn; at the last one no tool is offered, and
        /// calls fail. Default: no limit.
        optional "max_moves" = ONE_OR_MORE,
        /// Number of earlier turns sent to the model.
        optional "recent_turns" = COUNT, shown "20",
        /// Maximum depth of nested agent calls.
        optional "depth" = COUNT, shown "8",
        /// Maximum number of decisions that one input may cause.
        optional "decisions" = ONE_OR_MORE, shown "1000",
        /// Attempts at building a request. Default: 3, with a delay of 100 ms and a limit of 30 s each.
        optional "context" = Kind::Shape(&ATTEMPTS),
        /// Attempts at a model call. Default: 3, with a delay of 500 ms and a limit of 120 s each.
        optional "model" = Kind::Shape(&ATTEMPTS),
        /// Attempts at extracting memories. Default: 3, with a delay of 100 ms and a limit of 30 s each.
        optional "memory" = Kind::Shape(&ATTEMPTS),
    }

    /// Limits on the attempts at one operation.
    static ATTEMPTS "Attempts" {
        /// Maximum number of attempts.
        optional "attempts" = ONE_OR_MORE,
        /// Delay after the first failed attempt; it doubles after each further one.
        optional "backoff_ms" = DELAY,
        /// Time limit of one attempt.
        optional "timeout_ms" = TIME_LIMIT,
    }
}

/// Configured language model.
pub static CONNECTOR: TaggedShapes =
    TaggedShapes { key: "type", shapes: &[&SCRIPTED, &OPENAI, &ANTHROPIC], untagged: None };

document_shape! {
    /// A language model whose replies follow a script. `${ENV.NAME}` in texts of connectors is replaced by an
    /// environment variable, which must be set if the connector is used.
    static SCRIPTED "ScriptedModel" {
        /// Kind of the model.
        required "type" = Kind::Choice(&["scripted"]),
        /// File with the rules.
        required "script" = Kind::NonEmptyText,
        ..PRICE,
    }
}

document_shape! {
    /// Prices of the model's tokens. Default: costs are unknown.
    const PRICE: optional "price" = Kind::Shape(&PRICES),
}

document_shape! {
    /// Prices of a million tokens of a model. All prices must use the same currency.
    static PRICES "Price" {
        /// Input tokens.
        required "input" = Kind::Number,
        /// Output tokens.
        required "output" = Kind::Number,
        /// Input tokens that the provider had cached. Default: same as `input`.
        optional "cached_input" = Kind::Number,
    }
}

/// Declares a model of a provider.
macro_rules! provider {
    ($(#[doc = $doc:literal])+ $shape:ident $name:literal $word:literal) => {
        document_shape! {
            $(#[doc = $doc])+
            static $shape $name {
                /// Kind of the model.
                required "type" = Kind::Choice(&[$word]),
                /// Name of the model, as the provider defines it.
                required "model" = Kind::NonEmptyText,
                /// Base URL of the API. Default: the provider's public API.
                optional "base_url" = Kind::Url,
                /// API key. Default: none is sent.
                optional "api_key" = Kind::NonEmptyText,
                /// Additional request headers.
                optional "headers" = Kind::Map(&Kind::Text),
                /// Sampling temperature. Default: the provider's.
                optional "temperature" = Kind::Number,
                /// Maximum length of a reply, in tokens. Default: the provider's.
                optional "max_tokens" = ONE_OR_MORE,
                /// True if replies are streamed.
                optional "stream" = Kind::Bool, shown "true",
                /// Additional members of the request body; `null` removes one. Members that Hotseat sets are refused: `model`,
                /// `messages`, `tools`, `stream`, `stream_options` (except `null`).
                optional "extra" = Kind::JsonMap,
                /// Time limit for opening the connection.
                optional "connect_timeout_ms" = TIME_LIMIT, shown "10000",
                /// Time limit for the first byte of a streamed reply.
                optional "first_byte_timeout_ms" = TIME_LIMIT, shown "60000",
                /// Time limit between two pieces of a reply.
                optional "idle_timeout_ms" = TIME_LIMIT, shown "60000",
                /// Time limit of the whole call.
                optional "timeout_ms" = TIME_LIMIT, shown "120000",
                ..PRICE,
            }
        }
    };
}

provider! {
    /// A language model with an API compatible with OpenAI chat completions.
    OPENAI "OpenAiModel" "openai"
}

provider! {
    /// A language model with the Anthropic messages API.
    ANTHROPIC "AnthropicModel" "anthropic"
}

document_shape! {
    /// A tool that the model can call. Its target is one of `task`, `workflow`, `agent` and `client`.
    pub(super) static TOOL "Tool" {
        /// Name of the tool for the model.
        required "name" = Kind::NonEmptyText,
        /// Description of the tool for the model.
        optional "description" = Kind::Text,
        /// JSON Schema of the input.
        optional "input" = Kind::JsonMap, aliases &["input_schema", "parameters"], shown "{ type: object }",
        /// Target task: the name of a file in `tasks/`, a path, or the task itself.
        optional "task" = Kind::OneOf(&NAME_OR_TASK),
        /// Target workflow: the name of a file in `workflows/`, a path, or the workflow itself.
        optional "workflow" = Kind::OneOf(&NAME_OR_WORKFLOW),
        /// Target agent: the name of a file or folder in `agents/`, a path, or the agent itself.
        optional "agent" = Kind::OneOf(&NAME_OR_AGENT),
        /// `true` if the client of the conversation executes the tool.
        optional "client" = Kind::Bool,
        /// Question that a human must approve before each call; `{member}` is replaced by a member of the
        /// input. Default: no human is asked.
        optional "approval" = Kind::NonEmptyText,
        /// True if the agent continues before the tool has answered.
        optional "async" = Kind::Bool, shown "false",
        /// Invocation of a target agent: it answers in a separate conversation, or it joins this one.
        /// Default: `delegate`.
        optional "mode" = Kind::Choice(&["delegate", "loop_in"]), aliases &["invocation_mode"],
        /// Input of the target: each member with the name of the member of the model's input that it is taken
        /// from. Default: the unchanged input.
        optional "map" = Kind::Map(&Kind::NonEmptyText), aliases &["input_mapping"],
        /// Additional members of the target's input: expressions over the model's `input` and the shared
        /// `state` of the conversation.
        optional "reads" = EXPRESSIONS,
        /// Changes to the shared state of the conversation when the tool has completed: paths with
        /// expressions over `input`, `result` and `state`.
        optional "writes" = EXPRESSIONS,
        /// Retries after infrastructure failures.
        optional "retry" = Kind::Shape(&TOOL_RETRY),
        /// Time limit of one attempt; `false` for no limit. Default: 60000, for a client tool `false`.
        optional "timeout_ms" = Kind::OneOf(&[TIME_LIMIT, Kind::False]),
    }

    /// Retries of a tool after infrastructure failures; business failures are not retried.
    pub(super) static TOOL_RETRY "ToolRetry" {
        /// Maximum number of attempts.
        optional "max_attempts" = ONE_OR_MORE, shown "1",
        /// Delay between attempts.
        optional "backoff_ms" = DELAY, shown "1000",
    }

    /// Work that runs to completion without user interaction: a sequence of steps. Expressions can use
    /// `input`, `state` and `output`, and `result` in output mappings.
    pub static TASK "Task" {
        /// Name of the task. The id is the name in lower case, with `-` for spaces. Default: the name of the
        /// file, the tool or the workflow and its node.
        optional "name" = Kind::NonEmptyText,
        /// JSON Schema of the input. Default: anything.
        optional "input" = Kind::JsonMap, aliases &["input_schema"],
        /// JSON Schema of the output. Default: anything.
        optional "output" = Kind::JsonMap, aliases &["output_schema"],
        /// Steps of the task, in order.
        required "steps" = Kind::List(&Kind::Shape(&STEP)),
        /// Retries of the whole task. Default: a single attempt.
        optional "retry" = Kind::Shape(&TASK_RETRY),
        /// Time limit of the task. Default: no limit.
        optional "timeout_ms" = TIME_LIMIT,
    }

    /// Retries of the whole task.
    pub(super) static TASK_RETRY "TaskRetry" {
        /// Maximum number of attempts.
        optional "max_attempts" = ONE_OR_MORE, shown "1",
        /// Growth of the delay between attempts.
        optional "backoff" = Kind::Choice(&["none", "linear", "exponential"]), shown "none",
        /// First delay.
        optional "delay_ms" = DELAY, shown "0",
        /// Maximum delay. Default: no limit.
        optional "max_delay_ms" = DELAY,
    }

    /// One step of a task: one of `mock`, `echo`, `fail`, `context`, `assemble`, `memory` and `agent`.
    pub(super) static STEP "Step" {
        /// Name of the step. Default: `step-N`, counted from 0.
        optional "name" = Kind::NonEmptyText,
        /// Simulates a real action: returns a value, takes time, fails.
        optional "mock" = Kind::Shape(&MOCK),
        /// Returns its input: `echo: {}`.
        optional "echo" = Kind::Shape(&ECHO),
        /// Fails, with a message or a failure.
        optional "fail" = Kind::OneOf(&MESSAGE_OR_FAILURE),
        /// Returns its input with merged members.
        optional "context" = Kind::Shape(&CONTEXT),
        /// Builds a request to the model from the system prompt, earlier messages and the transcript of the
        /// turn.
        optional "assemble" = Kind::Shape(&ASSEMBLE),
        /// Accesses the agent's memory. Its input is `content` (and `kind`, `significance` from 0 to 1) to
        /// write, `id` to read or delete, `query` (and `limit`) to search.
        optional "memory" = Kind::Choice(&["write", "read", "search", "list", "delete"]),
        /// Calls an agent in a separate conversation: the name of a file or folder in `agents/`, a path, or
        /// the agent itself. Its answer is the member `response` of the result.
        optional "agent" = Kind::OneOf(&NAME_OR_AGENT),
        /// Input of the action: an expression, or members with expressions. `{}` is an empty input. Default:
        /// `input`, the input of the task.
        optional "input" = ONE_OR_MORE_EXPRESSIONS,
        /// Use of the result: an expression that becomes the output, or paths that start with `output` or
        /// `state` with expressions. `{}` stores it at `state._lastOutput`. Default: `result` becomes the
        /// output.
        optional "output" = ONE_OR_MORE_EXPRESSIONS,
        /// Handling of a failed action: the task fails (and is retried after an infrastructure failure), it
        /// is retried, or it continues with the failure added to `state._errors`.
        optional "on_failure" = Kind::Choice(&["abort", "retry", "continue"]), shown "abort",
        /// Condition of the step; it is skipped if the condition is false.
        optional "when" = Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&STEP_CONDITION)]),
    }

    /// Returns its input. It has no settings.
    static ECHO "Echo" {}
}

const STEP_BRANCH: Kind = Kind::Choice(&["continue", "skip", "succeed", "fail"]);

document_shape! {
    /// Effect of a condition on a step: the step runs or is skipped, or the task ends successfully or with a
    /// failure.
    pub(super) static STEP_CONDITION "StepCondition" {
        /// The condition, an expression.
        required "condition" = EXPRESSION,
        /// Branch if the condition is true.
        optional "then" = STEP_BRANCH, shown "continue",
        /// Branch if the condition is false.
        optional "else" = STEP_BRANCH, shown "skip",
    }

    /// Simulates a real action. The result is an object; any other value becomes its member `value`.
    pub(super) static MOCK "Mock" {
        /// Result of the mock. A value that is not a mapping becomes the member `value` of one.
        optional "returns" = Kind::Json,
        /// Result of the mock, as an expression over `input`.
        optional "computes" = EXPRESSION,
        /// JSON Schema of a generated result.
        optional "schema" = Kind::JsonMap,
        /// Fails, with a message or a failure.
        optional "fails" = Kind::OneOf(&MESSAGE_OR_FAILURE),
        /// Number of attempts that fail before one succeeds. Default: all of them.
        optional "first_attempts" = ONE_OR_MORE,
        /// Duration: a time, or a list of the shortest and the longest.
        optional "delay_ms" = Kind::OneOf(&[DELAY, Kind::NonEmptyList(&DELAY)]), shown "0",
        /// Seed for generated values and times, combined with the run.
        optional "seed" = Kind::Integer { min: 0, max: i64::MAX }, shown "0",
    }

    /// A failure. With `kind` it is an infrastructure failure, and another attempt may succeed; with `code`
    /// it is a business failure, which is permanent.
    pub(super) static FAILURE "Failure" {
        /// Message of the failure.
        required "message" = Kind::NonEmptyText,
        /// Kind of the infrastructure failure.
        optional "kind" = Kind::Choice(&["network", "timeout", "rate_limit", "server"]),
        /// Error code for the model. Default: `EXECUTION_FAILED`, unless there is a `kind`.
        optional "code" = Kind::Choice(&[
            "EXECUTION_FAILED", "TIMEOUT", "NOT_FOUND", "PERMISSION_DENIED", "INVALID_INPUT",
            "AGENT_DECLINED", "INTERNAL_ERROR",
        ]),
    }

    /// Returns its input with merged members.
    pub(super) static CONTEXT "Context" {
        /// Members to merge. Default: none.
        optional "merge" = Kind::Shape(&MERGE),
    }

    /// Merges several members into one list.
    pub(super) static MERGE "Merge" {
        /// Name of the new member.
        required "target" = Kind::NonEmptyText,
        /// Names of the merged members, in order.
        required "sources" = Kind::NonEmptyList(&Kind::NonEmptyText),
        /// True if lists among them are flattened.
        optional "flatten" = Kind::Bool, shown "false",
    }

    /// Builds a request to the model from the input of context assembly.
    pub(super) static ASSEMBLE "Assemble" {
        /// Text appended to the system prompt.
        optional "append_system" = Kind::NonEmptyText,
    }

    /// A graph of tasks. Expressions can use `input`, `state`, `output`, within branches `branch.index`,
    /// `branch.total` and the item of the branch, and `result` in output mappings.
    pub static WORKFLOW "Workflow" {
        /// Name of the workflow. The id is the name in lower case, with `-` for spaces. Default: the name of
        /// the file or the tool.
        optional "name" = Kind::NonEmptyText,
        /// JSON Schema of the input. Default: anything.
        optional "input" = Kind::JsonMap, aliases &["input_schema"],
        /// JSON Schema of the output. Default: anything.
        optional "output" = Kind::JsonMap, aliases &["output_schema"],
        /// Result of the workflow: an expression, or members with expressions. Default: its `output`.
        optional "returns" = ONE_OR_MORE_EXPRESSIONS,
        /// First node. Default: the first one in `nodes`.
        optional "initial" = Kind::NonEmptyText,
        /// Nodes of the workflow.
        required "nodes" = Kind::NonEmptyList(&Kind::Shape(&NODE)),
        /// Transitions between nodes. Without transitions, the nodes run in order.
        optional "transitions" = Kind::List(&Kind::Shape(&TRANSITION)),
    }

    /// A node of a workflow, which runs a `task`, another `workflow` or an `agent`.
    pub(super) static NODE "Node" {
        /// Name of the node, unique in the workflow.
        required "name" = Kind::NonEmptyText,
        /// Task of the node: the name of a file in `tasks/`, a path, or the task itself.
        optional "task" = Kind::OneOf(&NAME_OR_TASK),
        /// Workflow of the node: the name of a file in `workflows/`, a path, or the workflow itself.
        optional "workflow" = Kind::OneOf(&NAME_OR_WORKFLOW),
        /// Agent of the node, called in a separate conversation: the name of a file or folder in `agents/`, a
        /// path, or the agent itself. Its answer is the member `response` of the result.
        optional "agent" = Kind::OneOf(&NAME_OR_AGENT),
        /// Input of the work: an expression, or members with expressions. Default: the input of the workflow.
        optional "input" = ONE_OR_MORE_EXPRESSIONS,
        /// Use of the result: paths that start with `output` or `state`, with expressions. Default: `result`
        /// becomes the output.
        optional "output" = EXPRESSIONS,
    }

    /// A transition between two nodes.
    pub(super) static TRANSITION "Transition" {
        /// Source node.
        required "from" = Kind::NonEmptyText,
        /// Target node.
        required "to" = Kind::NonEmptyText,
        /// Name of the transition. Default: `FROM>TO`.
        optional "name" = Kind::NonEmptyText,
        /// Condition of the transition. Default: always true.
        optional "when" = EXPRESSION,
        /// Transitions with the lowest number are checked first; all matching ones of that number are taken.
        optional "priority" = COUNT, shown "0",
        /// Number of branches to start.
        optional "spawn" = ONE_OR_MORE, shown "1",
        /// Starts a branch for each item of a list.
        optional "for_each" = Kind::Shape(&FOR_EACH),
        /// Name of the group of branches; required for joining them.
        optional "group" = Kind::NonEmptyText,
        /// Joins branches before the target node.
        optional "fan_in" = Kind::Shape(&FAN_IN),
        /// Maximum number of times the transition is taken along one path. Default: no limit.
        optional "max_iterations" = ONE_OR_MORE,
    }

    /// Starts one branch for each item of a list.
    pub(super) static FOR_EACH "ForEach" {
        /// Expression for the list.
        required "collection" = Kind::NonEmptyText,
        /// Name of the item in expressions of the branch.
        required "item" = Kind::NonEmptyText,
    }

    /// Joins the branches of a group.
    pub(super) static FAN_IN "FanIn" {
        /// Group of the joined branches.
        required "group" = Kind::NonEmptyText,
        /// Number of branches to wait for: all, the first, or a count.
        optional "join" = Kind::OneOf(&[Kind::Choice(&["all", "any"]), ONE_OR_MORE]), shown "all",
        /// Combination of the branch outputs. Default: they are dropped.
        optional "merge" = Kind::Shape(&MERGING),
        /// Time limit after the first branch has arrived. Default: no limit.
        optional "timeout_ms" = TIME_LIMIT,
        /// Action when the time limit expires: the workflow fails, or continues with the arrived branches.
        /// Default: `fail`.
        optional "on_timeout" = Kind::Choice(&["fail", "proceed"]),
    }

    /// Combination of the branch outputs, in branch order: one of these, with the path where the result is
    /// stored, which starts with `output` or `state`.
    pub(super) static MERGING "Merging" {
        /// Concatenates lists.
        optional "append" = Kind::NonEmptyText,
        /// Collects all outputs in a list.
        optional "collect" = Kind::NonEmptyText,
        /// Merges objects; later branches win.
        optional "merge_object" = Kind::NonEmptyText,
        /// Builds an object with the branch indexes as keys.
        optional "keyed_by_branch" = Kind::NonEmptyText,
        /// Uses the output of the last branch.
        optional "last_wins" = Kind::NonEmptyText,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_have_no_problems() {
        for shape in [&super::AGENT, &super::TASK, &super::WORKFLOW] {
            assert_eq!(shape.problems(), Vec::<String>::new());
        }
    }
}
