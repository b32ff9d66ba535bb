//! Shapes of case files, the source of validation, JSON Schema and reference pages.

use super::answer_shape::TOOL_ANSWER;
use super::assertions::{ASSERT_KIND, CRITERIA_KIND, OWN_ASSERT_KIND};
use super::judging::JUDGE_KIND;
use super::limits::{MILLISECONDS, TIMEOUT};
use super::mcp_shape::{CASE_FAULT, MCP_KIND};
use super::models_shape::MODELS_KIND;
use super::pass_rate::RATE;
use super::topic_shape::{GRAPH_FIELD, SHARED, SIMULATE, TOPICS_FIELD};
use hotseat_document::{Kind, TaggedShapes, document_shape};
use hotseat_targets::message::MessageRole;

/// `reliability` of a case or of the project file.
pub const RELIABILITY_KIND: Kind = Kind::OneOf(&[Kind::False, Kind::Shape(&RELIABILITY)]);
/// Range of `retries`.
pub const RETRIES: Kind = Kind::Integer { min: 0, max: 100 };

document_shape! {
    /// A test case: a conversation and its assertions. A file of YAML holds one case, or several separated by
    /// `---`; a file of JSON holds values that follow each other, a list of them, or `{"cases": […]}`.
    pub static CASE "Case" {
        /// Display name in reports. Default: `id`.
        optional "name" = Kind::NonEmptyText,
        /// Short id that stays the same when `name` changes. Default: `name`; one of the two is required.
        optional "id" = Kind::NonEmptyText,
        /// Version of this format.
        optional "version" = Kind::OneOf(&[Kind::Choice(&["1", "1.0"]), Kind::Integer { min: 1, max: 1 }]),
        /// Purpose of the case.
        optional "description" = Kind::Text,
        /// `true`, or the reason, to skip the case.
        optional "skip" = Kind::OneOf(&[Kind::Bool, Kind::NonEmptyText]),
        /// Tags for grouping cases.
        optional "tags" = Kind::List(&Kind::NonEmptyText),
        /// Additional data for reports. Agents that support metadata receive it as well; `options.metadata`
        /// takes precedence.
        optional "metadata" = Kind::JsonMap,
        /// Name of the agent to test, from the project file. `-n` takes precedence. Default: the agent of the
        /// suite.
        optional "agent" = Kind::NonEmptyText,
        /// User id sent to the agent. `-u` takes precedence.
        optional "user" = Kind::NonEmptyText,
        /// Team id sent to the agent. `-t` takes precedence.
        optional "team" = Kind::NonEmptyText,
        /// Time limit for all turns together.
        optional "timeout_ms" = MILLISECONDS,
        ..TIMEOUT,
        /// Number of retries of the whole conversation if the case fails. Default: the project's.
        optional "retries" = RETRIES,
        /// Required pass rate: the case is repeated until the rate is confirmed or refuted. `false` ignores
        /// the project's setting. Default: the project's.
        optional "reliability" = RELIABILITY_KIND,
        /// Commands that run before the first turn, in order.
        optional "hooks" = Kind::List(&Kind::Shape(&HOOK)),
        /// Hook that runs first: the name of a command in the project file, or a script function such as
        /// `env_test.Before`. A command reads `{test_case}` from standard input and may print a JSON object
        /// of variables.
        optional "before" = Kind::NonEmptyText,
        /// Hook that runs last, regardless of the result; named as in `before`. A command reads
        /// `{test_case, result, before_data}`. A failure does not change the verdict. It does not run if
        /// `before` failed.
        optional "after" = Kind::NonEmptyText,
        /// `single_turn`: exactly one turn, without a simulated user or `interactive`. `multi_turn`: if the agent
        /// waits for input after the last turn, `on_missing_input` applies.
        optional "type" = Kind::Choice(&["single_turn", "multi_turn"]),
        /// Messages before the first turn. They are sent to the agent as history.
        optional "messages" = Kind::NonEmptyList(&Kind::Shape(&MESSAGE)),
        /// User input of a single turn. In a list of messages the last one is the input, and the others are
        /// history.
        optional "input" =
            Kind::OneOf(&[Kind::Text, Kind::Shape(&MESSAGE), Kind::NonEmptyList(&Kind::Shape(&MESSAGE))]),
        /// User inputs, turn by turn. A turn is sent when the agent has finished the previous one.
        optional "turns" = Kind::NonEmptyList(&Kind::Shape(&TURN)),
        /// Options sent to the agent with every turn.
        optional "options" = Kind::JsonMap,
        /// Assertions about the whole conversation, evaluated once after the last turn.
        optional "assert" = ASSERT_KIND, aliases &["assertions"],
        /// The expected answer, compared as in `equals`. Informational if the case has other assertions.
        optional "expected" = Kind::Json,
        /// Like `assert`, reported separately from assertions of turns.
        optional "final_assertions" = OWN_ASSERT_KIND,
        /// Informational assertions about the whole conversation, which do not affect the verdict.
        optional "evaluate" = OWN_ASSERT_KIND,
        /// Conditions that must be reached in any turn. Evaluated after every turn.
        optional "checkpoints" = Kind::List(&Kind::Shape(&CHECKPOINT)),
        /// A simulated user that continues after the written turns, or starts if there are none: with
        /// `checkpoints` until these are reached, otherwise as long as the agent waits for input.
        optional "simulator" = Kind::Shape(&SIMULATOR),
        /// Scenarios: a file, or a list. The case runs once per scenario, and `${scenario.NAME}` is replaced
        /// by its values.
        optional "scenarios" = Kind::OneOf(&[
            Kind::NonEmptyText, Kind::NonEmptyList(&Kind::JsonMap), Kind::Shape(&SCENARIO_SET)
        ]),
        /// A simulated user with a goal, which continues after the written turns until it has nothing more to
        /// say. Replaces `simulator`.
        optional "simulate" = Kind::Shape(&SIMULATE),
        ..TOPICS_FIELD,
        ..GRAPH_FIELD,
        /// How a turn is classified if no trigger fires: `judge` asks a judge, `triggers` keeps the current
        /// topic.
        optional "classify_topics" = Kind::Choice(&["judge", "triggers"]), shown "judge",
        /// In which conversations the assertions of topics are checked: those with a simulated user, or all.
        optional "decide_topics" = Kind::Choice(&["simulated", "always"]), shown "simulated",
        /// Asks a human if the agent waits for input after the last turn and no user is simulated.
        optional "interactive" = Kind::Shape(&INTERACTIVE),
        /// Action if the agent waits for input after the last turn: skip the case, fail it, or end and
        /// evaluate it. Default: `skip` with `type: multi_turn`, `simulator` or `interactive`, otherwise
        /// `end`.
        optional "on_missing_input" = Kind::Choice(&["skip", "fail", "end"]),
        /// Criteria by name, for `satisfy`, in addition to those of the suite and the project; the same name
        /// replaces.
        optional "criteria" = CRITERIA_KIND,
        /// Judge of this case, optionally with settings. Default: the judge of the suite, then of the
        /// project.
        optional "judge" = JUDGE_KIND,
        /// Markers that show that the agent waits for input, if it does not report this itself. Default:
        /// those of the agent.
        optional "awaiting" = Kind::Shape(&AWAITING),
        /// Maximum number of turns, including simulated ones; without it 1,000 with a human. Also read from
        /// `simulator.options.metadata.max_turns`.
        optional "max_turns" = Kind::Integer { min: 1, max: 10_000 }, shown "20",
        /// Action if the agent does not wait for input and another turn is written: send it, end the
        /// conversation, or fail the case.
        optional "on_complete" = Kind::Choice(&["continue", "stop", "fail"]), shown "continue",
        /// Whether the conversation continues after a turn with failed assertions. The case fails either way.
        optional "continue_on_failure" = Kind::Bool, shown "false",
        /// Assertions about every turn of this case.
        optional "turn_assert" = ASSERT_KIND,
        /// Client-side tools offered to the agent, in addition to those of the target; the same name
        /// replaces.
        optional "tools" = Kind::List(&Kind::Shape(&CLIENT_TOOL)),
        /// MCP servers by name, in addition to those of the suite and the project. With `type` the same name
        /// replaces; without it the entry changes the inherited server.
        optional "mcp" = MCP_KIND,
        /// Language models that are served to the agent by name, in addition to those of the suite and the
        /// project. With `script` or `rules` the same name replaces; without them the entry adds faults.
        optional "models" = MODELS_KIND,
        /// Faults in calls of the MCP servers of this case. A fault that no call reaches fails the case as an
        /// error of the test.
        optional "faults" = Kind::NonEmptyList(&Kind::Shape(&CASE_FAULT)),
        /// Id of the conversation. Default: the target's, or a new one.
        optional "threadId" = Kind::NonEmptyText,
        /// The shared state before the first turn. Default: the target's.
        optional "state" = Kind::Json,
        /// Context entries. Default: the target's.
        optional "context" = Kind::List(&Kind::Shape(&CONTEXT)),
        /// Properties forwarded to the agent. Default: the target's.
        optional "forwardedProps" = Kind::JsonMap,
        /// Head of a suite: a first document with only this key is not a case, but defines settings shared by
        /// the cases that follow.
        optional "suite" = Kind::Shape(&SHARED),
    }

    /// A set of scenarios: `from` a file, or inline `scenarios`.
    pub static SCENARIO_SET "ScenarioSet" {
        /// Name of the set. Default: the name of its file, or of the case.
        optional "name" = Kind::NonEmptyText,
        /// A file with a list of scenarios: JSON, JSON lines or YAML. Searched next to the suite, next to the
        /// project file, and in the working directory.
        optional "from" = Kind::NonEmptyText,
        /// The scenarios.
        optional "scenarios" = Kind::NonEmptyList(&Kind::JsonMap),
    }

    /// Required pass rate of a case, with a confidence level. The case is repeated until the rate is
    /// confirmed or refuted.
    pub static RELIABILITY "Reliability" {
        /// Required fraction of passing attempts, between 0 and 1: 0.9 or 90%.
        required "rate" = RATE,
        /// Confidence level, between 0 and 1: with 0.95 or 95% at most one conclusion in twenty is wrong.
        optional "confidence" = RATE, shown "0.95",
        /// Maximum number of attempts. A case without a conclusion by then fails. Default: three times the
        /// number that a case needs if it always passes, but at most 10000.
        optional "max_runs" = Kind::Integer { min: 1, max: 10_000 },
    }

    /// A command that runs before the first turn. It may print a JSON object of variables.
    pub static HOOK "Hook" {
        /// The program and its arguments. Runs without a shell, so nothing is expanded.
        required "cmd" = Kind::NonEmptyList(&Kind::Text),
        /// Time limit, after which the command and its children are killed.
        optional "timeout_ms" = MILLISECONDS, shown "30000",
        /// Additional environment variables.
        optional "env" = Kind::Map(&Kind::Text),
        /// Working directory, relative to the project file (without one, to the suite). Default: that
        /// directory.
        optional "cwd" = Kind::NonEmptyText,
    }

    /// A user input, and the agent's response to it.
    pub static TURN "Turn" {
        /// User input: text, parts, or a message with such `content`.
        required "user" = Kind::OneOf(&[Kind::Text, Kind::Shape(&MESSAGE), PARTS]), aliases &["input"],
        /// The speaker.
        optional "type" = Kind::Choice(&["user"]),
        /// Attachments of the user input.
        optional "attachments" = Kind::NonEmptyList(&Kind::Tagged(&ATTACHMENT)),
        /// Options sent with this turn, merged onto the `options` of the case.
        optional "options" = Kind::JsonMap,
        /// Assertions about this turn only, evaluated right after it. If one fails, no further turn is sent.
        optional "assert" = ASSERT_KIND, aliases &["assertions"],
        /// Informational assertions about this turn, which do not affect the verdict.
        optional "evaluate" = OWN_ASSERT_KIND,
        /// Time limit of the turn. Default: the target's `timeout_ms`.
        optional "timeout_ms" = MILLISECONDS,
        ..TIMEOUT,
        /// The agent must end this turn with an error whose message matches.
        optional "expect_error" = Kind::OneOf(&[Kind::Pattern, Kind::Shape(&EXPECTED_ERROR)]),
        /// Answers to interrupts. The first matching answer is used; an answer that is never used fails the
        /// turn.
        optional "resume" = Kind::List(&Kind::Shape(&INTERRUPT_ANSWER)),
    }

    /// A condition that must be reached: an assertion that passes in at least one turn.
    pub static CHECKPOINT "Checkpoint" {
        /// Name, unique in the case.
        required "id" = Kind::NonEmptyText,
        /// Description.
        optional "description" = Kind::Text,
        /// Checkpoints that must be reached before it, or in the same turn.
        optional "after" = Kind::List(&Kind::NonEmptyText),
        /// The assertion that the reaching turn must pass. All assertions of a list must pass in the same
        /// turn.
        required "assertion" = OWN_ASSERT_KIND, aliases &["assert"],
        /// Whether the case fails if it is not reached.
        optional "required" = Kind::Bool, shown "true",
    }

    /// A simulated user.
    pub static SIMULATOR "Simulator" {
        /// The simulator: `agents:ID` or the bare id; `scripts:path.function`; `connectors:NAME` for a model
        /// with the built-in prompt. Default: `--simulator`, or `simulator` of the project file.
        optional "use" = Kind::NonEmptyText,
        /// Options passed to the simulator: `metadata` with `persona` and `goal`, `connector`.
        optional "options" = Kind::JsonMap,
        /// The same as `options.metadata`.
        optional "metadata" = Kind::JsonMap,
        /// How the conversation is passed to it: within a single message, or as preceding messages.
        optional "style" = Kind::Choice(&["message", "transcript"]), shown "message",
    }

    /// Settings for a human who answers when the agent waits for input.
    pub static INTERACTIVE "Interactive" {
        /// Whether a human is asked.
        optional "enabled" = Kind::Bool, shown "false",
        /// Time limit for an answer.
        optional "timeout" = Kind::Duration, shown "5m",
    }

    /// Markers that show that an agent waits for input, if it does not report this itself.
    pub static AWAITING "Awaiting" {
        /// Tools that the agent uses to ask the user.
        optional "tools" = Kind::List(&Kind::NonEmptyText),
            shown "[request_confirmation, ask_user, get_user_input]",
        /// Whether questions in the agent's text count as waiting.
        optional "questions" = Kind::Bool, shown "true",
    }

    /// A message of a conversation.
    pub static MESSAGE "Message" {
        /// Role of the speaker.
        optional "role" = Kind::Choice(MessageRole::NAMES), shown "user",
        /// Content: text or parts. Optional, or null, only for an assistant that calls tools or refuses.
        optional "content" = Kind::OneOf(&[Kind::Text, PARTS, Kind::Null]),
        /// What an assistant said in place of a content, as chat completions return it; sent as content. May be null.
        optional "refusal" = Kind::OneOf(&[Kind::Text, Kind::Null]),
        /// Name of the speaker.
        optional "name" = Kind::NonEmptyText,
        /// Tool calls of an assistant.
        optional "tool_calls" = Kind::NonEmptyList(&Kind::Shape(&MESSAGE_CALL)), aliases &["toolCalls"],
        /// Id of the call that a `tool` message answers.
        optional "tool_call_id" = Kind::NonEmptyText, aliases &["toolCallId"],
    }

    /// A tool call in a message: `name` and `arguments`, or both under `function`.
    pub static MESSAGE_CALL "MessageCall" {
        /// Its id.
        required "id" = Kind::NonEmptyText,
        /// Type of the call.
        optional "type" = Kind::Choice(&["function"]),
        /// Name and arguments.
        optional "function" = Kind::Shape(&MESSAGE_FUNCTION),
        /// The tool.
        optional "name" = Kind::NonEmptyText,
        /// Its arguments, as a mapping or JSON text.
        optional "arguments" = Kind::OneOf(&[Kind::Text, Kind::JsonMap]), aliases &["args"],
    }

    /// Name and arguments of a call.
    static MESSAGE_FUNCTION "MessageFunction" {
        /// The tool.
        required "name" = Kind::NonEmptyText,
        /// Its arguments, as a mapping or JSON text.
        optional "arguments" = Kind::OneOf(&[Kind::Text, Kind::JsonMap]),
    }
}

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

document_shape! {
    /// A text part.
    static TEXT_PART "TextPart" {
        /// Type of the part.
        required "type" = Kind::Choice(&["text"]),
        /// The text.
        required "text" = Kind::Text,
    }

    /// An image by its URL.
    static IMAGE_URL "ImageUrl" {
        /// Type of the part.
        required "type" = Kind::Choice(&["image_url"]),
        /// Its URL, which may be a `data:` URL.
        required "image_url" = Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&IMAGE_ADDRESS)]),
    }

    /// The URL of an image.
    pub static IMAGE_ADDRESS "ImageAddress" {
        /// The URL, which may be a `data:` URL.
        required "url" = Kind::NonEmptyText,
        /// Level of detail.
        optional "detail" = Kind::NonEmptyText,
    }
}

/// Defines the shape of an attachment of one type.
macro_rules! attachment {
    ($shape:ident, $name:literal, $word:literal, $doc:literal) => {
        document_shape! {
            #[doc = $doc]
            pub static $shape $name {
                /// Type of the part.
                required "type" = Kind::Choice(&[$word]),
                /// `file://PATH`, an HTTP URL, or `data:`. A path is searched next to the suite, next to the project
                /// file, and in the working directory.
                required "source" = Kind::NonEmptyText, aliases &["url"],
                /// Name of the attachment. Default: the name of the file.
                optional "name" = Kind::NonEmptyText,
                /// Media type. Default: derived from the file extension.
                optional "mimeType" = Kind::NonEmptyText, aliases &["mime_type"],
            }
        }
    };
}

attachment!(IMAGE, "Image", "image", "An image.");
attachment!(AUDIO, "Audio", "audio", "An audio recording.");
attachment!(VIDEO, "Video", "video", "A video.");
attachment!(DOCUMENT, "Document", "document", "A document.");
attachment!(FILE, "File", "file", "Any file; the same as `document`.");

document_shape! {
    /// An error with which the agent must end its turn.
    pub static EXPECTED_ERROR "ExpectedError" {
        /// Pattern for the message.
        optional "message" = Kind::Pattern,
        /// Pattern for the code.
        optional "code" = Kind::Pattern,
    }

    /// An answer to an interrupt of the agent. Without conditions it matches every interrupt.
    pub static INTERRUPT_ANSWER "InterruptAnswer" {
        /// Only for interrupts whose reason matches.
        optional "reason" = Kind::Pattern,
        /// Only for interrupts whose message matches.
        optional "message" = Kind::Pattern,
        /// Only for interrupts that suspend a call of this tool.
        optional "tool" = Kind::NonEmptyText,
        /// Payload that resolves the interrupt.
        optional "payload" = Kind::Json,
        /// `cancelled` rejects the interrupt and has no payload.
        optional "status" = Kind::Choice(&["resolved", "cancelled"]), shown "resolved",
        /// Used for one interrupt only.
        optional "once" = Kind::Bool, shown "false",
    }

    /// A tool offered to the agent and answered by the test.
    pub static CLIENT_TOOL "ClientTool" {
        /// Its name.
        required "name" = Kind::NonEmptyText,
        /// Description of the tool for the agent.
        optional "description" = Kind::Text,
        /// JSON Schema of its arguments.
        optional "parameters" = Kind::JsonMap,
        /// Answers of the tool: the first matching one is used. A call without a matching answer is answered
        /// by `url`, or fails the case.
        optional "answers" = Kind::NonEmptyList(&Kind::Shape(&TOOL_ANSWER)),
        /// URL that answers calls without a matching entry in `answers`: each call is posted there as
        /// `{id, name, arguments}`, and the response body is the result. An HTTP error status makes the tool
        /// fail.
        optional "url" = Kind::Url,
    }

    /// A context entry, sent to the agent in addition to the conversation.
    pub static CONTEXT "Context" {
        /// Description of the entry.
        required "description" = Kind::Text,
        /// Its value.
        required "value" = Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shapes_are_valid() {
        assert_eq!(super::CASE.problems(), Vec::<String>::new());
    }
}
