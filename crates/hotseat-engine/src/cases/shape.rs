//! Shapes of case files, the source of validation, JSON Schema and reference pages.

use super::answer_shape::TOOL_ANSWER;
use super::assertions::{ASSERT_KIND, CRITERIA_KIND, OWN_ASSERT_KIND};
use super::judging::JUDGE_KIND;
use super::limits::{DURATION, MILLISECONDS};
use super::mcp_shape::{CASE_FAULT, MCP_KIND};
use super::models_shape::MODELS_KIND;
use super::topic_shape::{GRAPH_FIELD, SHARED, SIMULATE, TOPICS_FIELD};
use hotseat_document::{Field, Kind, Shape, TaggedShapes};
use hotseat_targets::message::MessageRole;

/// `reliability` of a case or of the project file.
pub const RELIABILITY_KIND: Kind = Kind::OneOf(&[Kind::False, Kind::Shape(&RELIABILITY)]);
/// Range of `retries`.
pub const RETRIES: Kind = Kind::Integer { min: 0, max: 100 };

/// Shape of a test case.
pub static CASE: Shape = Shape {
    name: "Case",
    doc: "A test case: a conversation and its assertions. A file of YAML holds one case, or several separated by `---`; a file of JSON holds values that follow each other, a list of them, or `{\"cases\": […]}`.",
    fields: &[
        Field::optional("name", Kind::NonEmptyText, "Display name in reports. Default: `id`."),
        Field::optional(
            "id",
            Kind::NonEmptyText,
            "Short id that stays the same when `name` changes. Default: `name`; one of the two is required.",
        ),
        Field::optional(
            "version",
            Kind::OneOf(&[Kind::Choice(&["1", "1.0"]), Kind::Integer { min: 1, max: 1 }]),
            "Version of this format.",
        ),
        Field::optional("description", Kind::Text, "Purpose of the case."),
        Field::optional(
            "skip",
            Kind::OneOf(&[Kind::Bool, Kind::NonEmptyText]),
            "`true`, or the reason, to skip the case.",
        ),
        Field::optional("tags", Kind::List(&Kind::NonEmptyText), "Tags for grouping cases."),
        Field::optional(
            "metadata",
            Kind::JsonMap,
            "Additional data for reports. Agents that support metadata receive it as well; `options.metadata` takes precedence.",
        ),
        Field::optional(
            "agent",
            Kind::NonEmptyText,
            "Name of the agent to test, from the project file. `-n` takes precedence. Default: the agent of the suite.",
        ),
        Field::optional(
            "user",
            Kind::NonEmptyText,
            "User id sent to the agent. `-u` takes precedence.",
        ),
        Field::optional("team", Kind::NonEmptyText, "Team id sent to the agent. `-t` takes precedence."),
        Field::optional("timeout_ms", MILLISECONDS, "Time limit for all turns together."),
        Field::optional("timeout", Kind::NonEmptyText, DURATION),
        Field::optional(
            "retries",
            RETRIES,
            "Number of retries of the whole conversation if the case fails. Default: the project's.",
        ),
        Field::optional(
            "reliability",
            RELIABILITY_KIND,
            "Required pass rate: the case is repeated until the rate is confirmed or refuted. `false` ignores the project's setting. Default: the project's.",
        ),
        Field::optional(
            "hooks",
            Kind::List(&Kind::Shape(&HOOK)),
            "Commands that run before the first turn, in order.",
        ),
        Field::optional(
            "before",
            Kind::NonEmptyText,
            "Hook that runs first: the name of a command in the project file, or a script function such as `env_test.Before`. A command reads `{test_case}` from standard input and may print a JSON object of variables.",
        ),
        Field::optional(
            "after",
            Kind::NonEmptyText,
            "Hook that runs last, regardless of the result; named as in `before`. A command reads `{test_case, result, before_data}`. A failure does not change the verdict. It does not run if `before` failed.",
        ),
        Field::optional(
            "type",
            Kind::Choice(&["single_turn", "multi_turn"]),
            "`single_turn`: exactly one turn. `multi_turn`: if the agent waits for input after the last turn, `on_missing_input` applies.",
        ),
        Field::optional(
            "messages",
            Kind::NonEmptyList(&Kind::Shape(&MESSAGE)),
            "Messages before the first turn. They are sent to the agent as history.",
        ),
        Field::optional(
            "input",
            Kind::OneOf(&[Kind::Text, Kind::Shape(&MESSAGE), Kind::NonEmptyList(&Kind::Shape(&MESSAGE))]),
            "User input of a single turn. In a list of messages the last one is the input, and the others are history.",
        ),
        Field::optional(
            "turns",
            Kind::NonEmptyList(&Kind::Shape(&TURN)),
            "User inputs, turn by turn. A turn is sent when the agent has finished the previous one.",
        ),
        Field::optional(
            "options",
            Kind::JsonMap,
            "Options sent to the agent with every turn.",
        ),
        Field::optional(
            "assert",
            ASSERT_KIND,
            "Assertions about the whole conversation, evaluated once after the last turn.",
        )
        .aliases(&["assertions"]),
        Field::optional(
            "expected",
            Kind::Json,
            "The expected answer, compared as in `equals`. Informational if the case has other assertions.",
        ),
        Field::optional(
            "final_assertions",
            OWN_ASSERT_KIND,
            "Like `assert`, reported separately from assertions of turns.",
        ),
        Field::optional(
            "evaluate",
            OWN_ASSERT_KIND,
            "Informational assertions about the whole conversation, which do not affect the verdict.",
        ),
        Field::optional(
            "checkpoints",
            Kind::List(&Kind::Shape(&CHECKPOINT)),
            "Conditions that must be reached in any turn. Evaluated after every turn.",
        ),
        Field::optional(
            "simulator",
            Kind::Shape(&SIMULATOR),
            "A simulated user that continues after the written turns, or starts if there are none: with `checkpoints` until these are reached, otherwise as long as the agent waits for input.",
        ),
        Field::optional(
            "scenarios",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::JsonMap), Kind::Shape(&SCENARIO_SET)]),
            "Scenarios: a file, or a list. The case runs once per scenario, and `${scenario.NAME}` is replaced by its values.",
        ),
        Field::optional(
            "simulate",
            Kind::Shape(&SIMULATE),
            "A simulated user with a goal, which continues after the written turns until it has nothing more to say. Replaces `simulator`.",
        ),
        TOPICS_FIELD,
        GRAPH_FIELD,
        Field::optional(
            "classify_topics",
            Kind::Choice(&["judge", "triggers"]),
            "How a turn is classified if no trigger fires: `judge` asks a judge, `triggers` keeps the current topic.",
        )
        .default("judge"),
        Field::optional(
            "decide_topics",
            Kind::Choice(&["simulated", "always"]),
            "In which conversations the assertions of topics are checked: those with a simulated user, or all.",
        )
        .default("simulated"),
        Field::optional(
            "interactive",
            Kind::Shape(&INTERACTIVE),
            "Asks a human if the agent waits for input after the last turn and no user is simulated.",
        ),
        Field::optional(
            "on_missing_input",
            Kind::Choice(&["skip", "fail", "end"]),
            "Action if the agent waits for input after the last turn: skip the case, fail it, or end and evaluate it. Default: `skip` with `type: multi_turn`, `simulator` or `interactive`, otherwise `end`.",
        ),
        Field::optional(
            "criteria",
            CRITERIA_KIND,
            "Criteria by name, for `satisfy`, in addition to those of the suite and the project; the same name replaces.",
        ),
        Field::optional(
            "judge",
            JUDGE_KIND,
            "Judge of this case, optionally with settings. Default: the judge of the suite, then of the project.",
        ),
        Field::optional("awaiting", Kind::Shape(&AWAITING), "Markers that show that the agent waits for input, if it does not report this itself. Default: those of the agent."),
        Field::optional(
            "max_turns",
            Kind::Integer { min: 1, max: 10_000 },
            "Maximum number of turns, including simulated ones; without it 1,000 with a human. Also read from `simulator.options.metadata.max_turns`.",
        )
        .default("20"),
        Field::optional(
            "on_complete",
            Kind::Choice(&["continue", "stop", "fail"]),
            "Action if the agent does not wait for input and another turn is written: send it, end the conversation, or fail the case.",
        )
        .default("continue"),
        Field::optional(
            "continue_on_failure",
            Kind::Bool,
            "Whether the conversation continues after a turn with failed assertions. The case fails either way.",
        )
        .default("false"),
        Field::optional("turn_assert", ASSERT_KIND, "Assertions about every turn of this case."),
        Field::optional(
            "tools",
            Kind::List(&Kind::Shape(&CLIENT_TOOL)),
            "Client-side tools offered to the agent, in addition to those of the target; the same name replaces.",
        ),
        Field::optional(
            "mcp",
            MCP_KIND,
            "MCP servers by name, in addition to those of the suite and the project. With `type` the same name replaces; without it the entry changes the inherited server.",
        ),
        Field::optional(
            "models",
            MODELS_KIND,
            "Language models that are served to the agent by name, in addition to those of the suite and the project. With `script` or `rules` the same name replaces; without them the entry adds faults.",
        ),
        Field::optional(
            "faults",
            Kind::NonEmptyList(&Kind::Shape(&CASE_FAULT)),
            "Faults in calls of the MCP servers of this case. A fault that no call reaches fails the case as an error of the test.",
        ),
        Field::optional(
            "threadId",
            Kind::NonEmptyText,
            "Id of the conversation. Default: the target's, or a new one.",
        ),
        Field::optional(
            "state",
            Kind::Json,
            "The shared state before the first turn. Default: the target's.",
        ),
        Field::optional(
            "context",
            Kind::List(&Kind::Shape(&CONTEXT)),
            "Context entries. Default: the target's.",
        ),
        Field::optional(
            "forwardedProps",
            Kind::JsonMap,
            "Properties forwarded to the agent. Default: the target's.",
        ),
        Field::optional(
            "suite",
            Kind::Shape(&SHARED),
            "Head of a suite: a first document with only this key is not a case, but defines settings shared by the cases that follow.",
        ),
    ],
};

/// Shape of a set of scenarios.
pub static SCENARIO_SET: Shape = Shape {
    name: "ScenarioSet",
    doc: "A set of scenarios: `from` a file, or inline `scenarios`.",
    fields: &[
        Field::optional(
            "name",
            Kind::NonEmptyText,
            "Name of the set. Default: the name of its file, or of the case.",
        ),
        Field::optional(
            "from",
            Kind::NonEmptyText,
            "A file with a list of scenarios: JSON, JSON lines or YAML. Searched next to the suite, next to the project file, and in the working directory.",
        ),
        Field::optional("scenarios", Kind::NonEmptyList(&Kind::JsonMap), "The scenarios."),
    ],
};

/// Shape of a declared reliability.
pub static RELIABILITY: Shape = Shape {
    name: "Reliability",
    doc: "Required pass rate of a case, with a confidence level. The case is repeated until the rate is confirmed or refuted.",
    fields: &[
        Field::required("rate", Kind::Number, "Required fraction of passing attempts, between 0 and 1."),
        Field::optional(
            "confidence",
            Kind::Number,
            "Confidence level, between 0 and 1: with 0.95 at most one conclusion in twenty is wrong.",
        )
        .default("0.95"),
        Field::optional(
            "max_runs",
            Kind::Integer { min: 1, max: 10_000 },
            "Maximum number of attempts. A case without a conclusion by then fails. Default: three times the number that a case needs if it always passes.",
        ),
    ],
};

/// Shape of a hook command.
pub static HOOK: Shape = Shape {
    name: "Hook",
    doc: "A command that runs before the first turn. It may print a JSON object of variables.",
    fields: &[
        Field::required(
            "cmd",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. Runs without a shell, so nothing is expanded.",
        ),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "Time limit, after which the command and its children are killed.",
        )
        .default("30000"),
        Field::optional("env", Kind::Map(&Kind::Text), "Additional environment variables."),
        Field::optional(
            "cwd",
            Kind::NonEmptyText,
            "Working directory, relative to the project file (without one, to the suite). Default: that directory.",
        ),
    ],
};

/// Shape of a turn.
pub static TURN: Shape = Shape {
    name: "Turn",
    doc: "A user input, and the agent's response to it.",
    fields: &[
        Field::required(
            "user",
            Kind::OneOf(&[Kind::Text, Kind::Shape(&MESSAGE), PARTS]),
            "User input: text, parts, or a message with such `content`.",
        )
        .aliases(&["input"]),
        Field::optional("type", Kind::Choice(&["user"]), "The speaker."),
        Field::optional(
            "attachments",
            Kind::NonEmptyList(&Kind::Tagged(&ATTACHMENT)),
            "Attachments of the user input.",
        ),
        Field::optional(
            "options",
            Kind::JsonMap,
            "Options sent with this turn, merged onto the `options` of the case.",
        ),
        Field::optional(
            "assert",
            ASSERT_KIND,
            "Assertions about this turn only, evaluated right after it. If one fails, no further turn is sent.",
        )
        .aliases(&["assertions"]),
        Field::optional("evaluate", OWN_ASSERT_KIND, "Informational assertions about this turn, which do not affect the verdict."),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "Time limit of the turn. Default: the target's `timeout_ms`.",
        ),
        Field::optional("timeout", Kind::NonEmptyText, DURATION),
        Field::optional(
            "expect_error",
            Kind::OneOf(&[Kind::Pattern, Kind::Shape(&EXPECTED_ERROR)]),
            "The agent must end this turn with an error (`RUN_ERROR`) whose message matches.",
        ),
        Field::optional(
            "resume",
            Kind::List(&Kind::Shape(&INTERRUPT_ANSWER)),
            "Answers to interrupts. The first matching answer is used; an answer that is never used fails the turn.",
        ),
    ],
};

/// Shape of a checkpoint.
pub static CHECKPOINT: Shape = Shape {
    name: "Checkpoint",
    doc: "A condition that must be reached: an assertion that passes in at least one turn.",
    fields: &[
        Field::required("id", Kind::NonEmptyText, "Name, unique in the case."),
        Field::optional("description", Kind::Text, "Description."),
        Field::optional(
            "after",
            Kind::List(&Kind::NonEmptyText),
            "Checkpoints that must be reached before it, or in the same turn.",
        ),
        Field::required(
            "assertion",
            OWN_ASSERT_KIND,
            "The assertion that the reaching turn must pass. All assertions of a list must pass in the same turn.",
        )
        .aliases(&["assert"]),
        Field::optional("required", Kind::Bool, "Whether the case fails if it is not reached.")
            .default("true"),
    ],
};

/// Shape of a simulator.
pub static SIMULATOR: Shape = Shape {
    name: "Simulator",
    doc: "A simulated user.",
    fields: &[
        Field::optional(
            "use",
            Kind::NonEmptyText,
            "The simulator: `agents:ID` or the bare id; `scripts:path.function`; `connectors:NAME` for a model with the built-in prompt. Default: `--simulator`, or `simulator` of the project file.",
        ),
        Field::optional(
            "options",
            Kind::JsonMap,
            "Options passed to the simulator: `metadata` with `persona` and `goal`, `connector`.",
        ),
        Field::optional("metadata", Kind::JsonMap, "The same as `options.metadata`."),
        Field::optional(
            "style",
            Kind::Choice(&["message", "transcript"]),
            "How the conversation is passed to it: within a single message, or as preceding messages.",
        )
        .default("message"),
    ],
};

/// Shape of the settings for human input.
pub static INTERACTIVE: Shape = Shape {
    name: "Interactive",
    doc: "Settings for a human who answers when the agent waits for input.",
    fields: &[
        Field::optional("enabled", Kind::Bool, "Whether a human is asked.").default("false"),
        Field::optional("timeout", Kind::NonEmptyText, "Time limit for an answer.").default("5m"),
    ],
};

/// Shape of the awaiting markers.
pub static AWAITING: Shape = Shape {
    name: "Awaiting",
    doc: "Markers that show that an agent waits for input, if it does not report this itself.",
    fields: &[
        Field::optional(
            "tools",
            Kind::List(&Kind::NonEmptyText),
            "Tools that the agent uses to ask the user.",
        )
        .default("[request_confirmation, ask_user, get_user_input]"),
        Field::optional("questions", Kind::Bool, "Whether questions in the agent's text count as waiting.")
            .default("true"),
    ],
};

/// Shape of a message.
pub static MESSAGE: Shape = Shape {
    name: "Message",
    doc: "A message of a conversation.",
    fields: &[
        Field::optional("role", Kind::Choice(MessageRole::NAMES), "Role of the speaker.").default("user"),
        Field::optional(
            "content",
            Kind::OneOf(&[Kind::Text, PARTS]),
            "Content: text or parts. Optional only for an assistant that calls tools.",
        ),
        Field::optional("name", Kind::NonEmptyText, "Name of the speaker."),
        Field::optional(
            "tool_calls",
            Kind::NonEmptyList(&Kind::Shape(&MESSAGE_CALL)),
            "Tool calls of an assistant.",
        )
        .aliases(&["toolCalls"]),
        Field::optional("tool_call_id", Kind::NonEmptyText, "Id of the call that a `tool` message answers.")
            .aliases(&["toolCallId"]),
    ],
};

/// Shape of a tool call in a message.
pub static MESSAGE_CALL: Shape = Shape {
    name: "MessageCall",
    doc: "A tool call in a message: `name` and `arguments`, or both under `function`.",
    fields: &[
        Field::required("id", Kind::NonEmptyText, "Its id."),
        Field::optional("type", Kind::Choice(&["function"]), "Type of the call."),
        Field::optional("function", Kind::Shape(&MESSAGE_FUNCTION), "Name and arguments."),
        Field::optional("name", Kind::NonEmptyText, "The tool."),
        Field::optional(
            "arguments",
            Kind::OneOf(&[Kind::Text, Kind::JsonMap]),
            "Its arguments, as a mapping or JSON text.",
        )
        .aliases(&["args"]),
    ],
};

/// Shape of the name and arguments of a tool call.
static MESSAGE_FUNCTION: Shape = Shape {
    name: "MessageFunction",
    doc: "Name and arguments of a call.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "The tool."),
        Field::optional(
            "arguments",
            Kind::OneOf(&[Kind::Text, Kind::JsonMap]),
            "Its arguments, as a mapping or JSON text.",
        ),
    ],
};

/// Message content in parts.
const PARTS: Kind = Kind::NonEmptyList(&Kind::Tagged(&PART));

/// A part of message content.
pub static PART: TaggedShapes = TaggedShapes {
    key: "type",
    shapes: &[&TEXT_PART, &IMAGE, &IMAGE_URL, &AUDIO, &VIDEO, &DOCUMENT, &FILE],
    untagged: None,
};

/// An attachment.
pub static ATTACHMENT: TaggedShapes =
    TaggedShapes { key: "type", shapes: &[&IMAGE, &AUDIO, &VIDEO, &DOCUMENT, &FILE], untagged: None };

/// Shape of a text part.
static TEXT_PART: Shape = Shape {
    name: "TextPart",
    doc: "A text part.",
    fields: &[
        Field::required("type", Kind::Choice(&["text"]), "Type of the part."),
        Field::required("text", Kind::Text, "The text."),
    ],
};

/// Shape of an image in the format of OpenAI.
static IMAGE_URL: Shape = Shape {
    name: "ImageUrl",
    doc: "An image by its URL.",
    fields: &[
        Field::required("type", Kind::Choice(&["image_url"]), "Type of the part."),
        Field::required(
            "image_url",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&IMAGE_ADDRESS)]),
            "Its URL, which may be a `data:` URL.",
        ),
    ],
};

/// Shape of the URL of an image.
pub static IMAGE_ADDRESS: Shape = Shape {
    name: "ImageAddress",
    doc: "The URL of an image.",
    fields: &[
        Field::required("url", Kind::NonEmptyText, "The URL, which may be a `data:` URL."),
        Field::optional("detail", Kind::NonEmptyText, "Level of detail."),
    ],
};

/// Defines the shape of an attachment of one type.
macro_rules! attachment {
    ($shape:ident, $name:literal, $word:literal, $doc:literal) => {
        #[doc = $doc]
        pub static $shape: Shape = Shape {
            name: $name,
            doc: $doc,
            fields: &[
                Field::required("type", Kind::Choice(&[$word]), "Type of the part."),
                Field::required(
                    "source",
                    Kind::NonEmptyText,
                    "`file://PATH`, an HTTP URL, or `data:`. A path is searched next to the suite, next to the project file, and in the working directory.",
                )
                .aliases(&["url"]),
                Field::optional("name", Kind::NonEmptyText, "Name of the attachment. Default: the name of the file."),
                Field::optional("mimeType", Kind::NonEmptyText, "Media type. Default: derived from the file extension.")
                    .aliases(&["mime_type"]),
            ],
        };
    };
}

attachment!(IMAGE, "Image", "image", "An image.");
attachment!(AUDIO, "Audio", "audio", "An audio recording.");
attachment!(VIDEO, "Video", "video", "A video.");
attachment!(DOCUMENT, "Document", "document", "A document.");
attachment!(FILE, "File", "file", "Any file; the same as `document`.");

/// Shape of an expected error.
pub static EXPECTED_ERROR: Shape = Shape {
    name: "ExpectedError",
    doc: "An error with which the agent must end its turn.",
    fields: &[
        Field::optional("message", Kind::Pattern, "Pattern for the message."),
        Field::optional("code", Kind::Pattern, "Pattern for the code."),
    ],
};

/// Shape of a scripted answer to an interrupt.
pub static INTERRUPT_ANSWER: Shape = Shape {
    name: "InterruptAnswer",
    doc: "An answer to an interrupt of the agent. Without conditions it matches every interrupt.",
    fields: &[
        Field::optional("reason", Kind::Pattern, "Only for interrupts whose reason matches."),
        Field::optional("message", Kind::Pattern, "Only for interrupts whose message matches."),
        Field::optional("tool", Kind::NonEmptyText, "Only for interrupts that suspend a call of this tool."),
        Field::optional("payload", Kind::Json, "Payload that resolves the interrupt."),
        Field::optional(
            "status",
            Kind::Choice(&["resolved", "cancelled"]),
            "`cancelled` rejects the interrupt and has no payload.",
        )
        .default("resolved"),
        Field::optional("once", Kind::Bool, "Used for one interrupt only.").default("false"),
    ],
};

/// Shape of a client-side tool, which is answered by the test.
pub static CLIENT_TOOL: Shape = Shape {
    name: "ClientTool",
    doc: "A tool offered to the agent and answered by the test.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Its name."),
        Field::optional("description", Kind::Text, "Description of the tool for the agent."),
        Field::optional("parameters", Kind::JsonMap, "JSON Schema of its arguments."),
        Field::optional(
            "answers",
            Kind::NonEmptyList(&Kind::Shape(&TOOL_ANSWER)),
            "Answers of the tool: the first matching one is used. A call without a matching answer is answered by `url`, or fails the case.",
        ),
        Field::optional(
            "url",
            Kind::Url,
            "URL that answers calls without a matching entry in `answers`: each call is posted there as `{id, name, arguments}`, and the response body is the result. An HTTP error status makes the tool fail.",
        ),
    ],
};

/// Shape of a context entry.
pub static CONTEXT: Shape = Shape {
    name: "Context",
    doc: "A context entry, sent to the agent in addition to the conversation.",
    fields: &[
        Field::required("description", Kind::Text, "Description of the entry."),
        Field::required("value", Kind::Text, "Its value."),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::CASE.problems(), Vec::<String>::new());
    }
}
