//! What may be written in a case file, as data: validation, JSON Schema and reference page come from here.

use super::assertion_shape::ASSERTION;
use super::scenarios::SCENARIO_SET;
use super::topic_shape::{GRAPH_FIELD, SHARED, SIMULATE, TOPICS_FIELD};
use crate::session::Role;
use hotseat_document::{Field, Kind, Shape, Tagged};

pub(super) const MILLISECONDS: Kind = Kind::Integer { min: 1, max: 7 * 24 * 3600 * 1000 };
pub(super) const TIMES: Kind = Kind::Integer { min: 0, max: 1_000_000 };
pub(super) const TOKENS: Kind = Kind::Integer { min: 0, max: 1_000_000_000_000 };
const PATTERNS: Kind = Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]);
const NAMES: Kind = Kind::List(&Kind::NonEmptyText);
const ARGUMENTS: Kind = Kind::Map(&Kind::Pattern);

/// `reliability` of a case or of the project file.
pub const RELIABILITY_KIND: Kind = Kind::OneOf(&[Kind::False, Kind::Shape(&RELIABILITY)]);
/// How often a case may be tried again.
pub const RETRIES: Kind = Kind::Integer { min: 0, max: 100 };

const DURATION: &str = "The same as a duration: `500ms`, `30s`, `1m30s`.";

/// One test: a conversation and what is asserted of it.
pub static CASE: Shape = Shape {
    name: "Case",
    doc: "One test: a conversation and what is asserted of it. A file of YAML holds one case, or several separated by `---`; a file of JSON holds values that follow each other, a list of them, or `{\"cases\": […]}`.",
    fields: &[
        Field::optional("name", Kind::NonEmptyText, "What the case is called in reports. Default: `id`."),
        Field::optional(
            "id",
            Kind::NonEmptyText,
            "A short name that stays when `name` changes. Default: `name`; one of the two is needed.",
        ),
        Field::optional(
            "version",
            Kind::OneOf(&[Kind::Choice(&["1", "1.0"]), Kind::Integer { min: 1, max: 1 }]),
            "Version of this format.",
        ),
        Field::optional("description", Kind::Text, "What the case is for."),
        Field::optional(
            "skip",
            Kind::OneOf(&[Kind::Bool, Kind::NonEmptyText]),
            "`true`, or the reason, to leave the case out of runs.",
        ),
        Field::optional("tags", Kind::List(&Kind::NonEmptyText), "Words by which cases are grouped."),
        Field::optional(
            "metadata",
            Kind::JsonMap,
            "Anything else that reports should hold of the case. It is part of the metadata of its calls, below `options.metadata`, where its agent is told any.",
        ),
        Field::optional(
            "agent",
            Kind::NonEmptyText,
            "Which of the agents of the project file this case tests, by its name. `-n` goes before it. Default: as for the suite.",
        ),
        Field::optional(
            "user",
            Kind::NonEmptyText,
            "On whose behalf the agent is spoken to. `-u` goes before it.",
        ),
        Field::optional("team", Kind::NonEmptyText, "The team of the user. `-t` goes before it."),
        Field::optional("timeout_ms", MILLISECONDS, "How long all turns together may take."),
        Field::optional("timeout", Kind::NonEmptyText, DURATION),
        Field::optional(
            "retries",
            RETRIES,
            "How often the whole conversation is held again when the case fails. Default: the project's.",
        ),
        Field::optional(
            "reliability",
            RELIABILITY_KIND,
            "How often the case has to pass: it is run until that is shown or refuted. `false`: whatever the project declares. Default: the project's.",
        ),
        Field::optional(
            "hooks",
            Kind::List(&Kind::Shape(&HOOK)),
            "Commands that run before the first turn, in order.",
        ),
        Field::optional(
            "before",
            Kind::NonEmptyText,
            "A hook that runs before everything else: a command of the project file by its name, or a function of a script as `env_test.Before`. A command reads `{test_case}` from its standard input; what it prints is a JSON object of variables, or nothing.",
        ),
        Field::optional(
            "after",
            Kind::NonEmptyText,
            "A hook, named as in `before`, that runs when all is over, whatever it came to. A command reads `{test_case, result, before_data}`. That it fails changes no verdict. It does not run if `before` failed.",
        ),
        Field::optional(
            "type",
            Kind::Choice(&["single_turn", "multi_turn"]),
            "`single_turn`: there is one turn. `multi_turn`: an agent that waits when the turns are over needs another input; see `on_missing_input`.",
        ),
        Field::optional(
            "messages",
            Kind::NonEmptyList(&Kind::Shape(&MESSAGE)),
            "What was said before the first turn. The agent is told of it and not asked again.",
        ),
        Field::optional(
            "input",
            Kind::OneOf(&[Kind::Text, Kind::Shape(&MESSAGE), Kind::NonEmptyList(&Kind::Shape(&MESSAGE))]),
            "What the user says, where there is one turn. Of a list of messages the last one is said, and those before it were said before.",
        ),
        Field::optional(
            "turns",
            Kind::NonEmptyList(&Kind::Shape(&TURN)),
            "What the user says, turn by turn. The next turn is sent when the agent is done with the one before.",
        ),
        Field::optional(
            "options",
            Kind::JsonMap,
            "What the agent is told beside the conversation, with every turn.",
        ),
        Field::optional(
            "assert",
            ASSERT_KIND,
            "What is asserted of the whole conversation, once, after its last turn.",
        )
        .aliases(&["assertions"]),
        Field::optional(
            "expected",
            Kind::Json,
            "The whole answer, as `equals` compares it. Where the case asserts something else, it is only measured.",
        ),
        Field::optional(
            "final_assertions",
            OWN_ASSERT_KIND,
            "The same, under the name that they have beside assertions of turns.",
        ),
        Field::optional(
            "evaluate",
            OWN_ASSERT_KIND,
            "What is measured of the whole conversation, and decides nothing.",
        ),
        Field::optional(
            "checkpoints",
            Kind::List(&Kind::Shape(&CHECKPOINT)),
            "What has to be reached in some turn or other. Looked at after every turn.",
        ),
        Field::optional(
            "simulator",
            Kind::Shape(&SIMULATOR),
            "A simulated user, who begins where no turn is written, and goes on when the turns are over: with `checkpoints` until these are reached, otherwise as long as the agent waits for an input.",
        ),
        Field::optional(
            "scenarios",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::NonEmptyList(&Kind::JsonMap), Kind::Shape(&SCENARIO_SET)]),
            "Scenarios: the case is held once with each of them, and `${scenario.NAME}` stands for what it says. A file, or a list.",
        ),
        Field::optional(
            "simulate",
            Kind::Shape(&SIMULATE),
            "A simulated user with a goal, who goes on when the turns are over, until there is nothing more to say. Instead of `simulator`.",
        ),
        TOPICS_FIELD,
        GRAPH_FIELD,
        Field::optional(
            "classify_topics",
            Kind::Choice(&["judge", "triggers"]),
            "Who says to which topic a turn belongs where no trigger does: a judge; or nobody, and the conversation stays in its topic.",
        )
        .default("judge"),
        Field::optional(
            "decide_topics",
            Kind::Choice(&["simulated", "always"]),
            "In which conversations that is decided which topics assert: in those with a simulated user, or in all.",
        )
        .default("simulated"),
        Field::optional(
            "interactive",
            Kind::Shape(&INTERACTIVE),
            "A person, asked when the turns are over and the agent waits, where no user is simulated.",
        ),
        Field::optional(
            "on_missing_input",
            Kind::Choice(&["skip", "fail", "end"]),
            "What happens when the turns are over and the agent waits: the case is skipped, fails, or is judged as it is. Default: `skip` with `type: multi_turn`, `simulator` or `interactive`, otherwise `end`.",
        ),
        Field::optional(
            "criteria",
            CRITERIA_KIND,
            "Criteria by name, for `satisfy`, beside those of the suite and the project; the same name replaces.",
        ),
        Field::optional(
            "judge",
            JUDGE_KIND,
            "Who judges in this case, or who and how. Default: as for the suite, then the project.",
        ),
        Field::optional("awaiting", Kind::Shape(&AWAITING), "What shows that the agent waits, where it does not say so itself. Default: as for the agent."),
        Field::optional(
            "max_turns",
            Kind::Integer { min: 1, max: 10_000 },
            "How many turns there may be, simulated ones included. Also read from `simulator.options.metadata.max_turns`.",
        )
        .default("20"),
        Field::optional(
            "on_complete",
            Kind::Choice(&["continue", "stop", "fail"]),
            "What happens when the agent does not wait for an input and another turn is written: it is sent, or the conversation is over, or the case fails.",
        )
        .default("continue"),
        Field::optional(
            "continue_on_failure",
            Kind::Bool,
            "Whether the conversation goes on after a turn whose assertions do not hold. The case fails all the same.",
        )
        .default("false"),
        Field::optional("turn_assert", ASSERT_KIND, "What is asserted of every turn of this case."),
        Field::optional(
            "tools",
            Kind::List(&Kind::Shape(&CLIENT_TOOL)),
            "Client-side tools that are offered to the agent, beside those of the target; the same name replaces.",
        ),
        Field::optional(
            "threadId",
            Kind::NonEmptyText,
            "Id of the conversation. Default: the target's, or a fresh one.",
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
            "What is forwarded to the agent. Default: the target's.",
        ),
        Field::optional(
            "suite",
            Kind::Shape(&SHARED),
            "The head of a suite: a first document with this key alone is no case, and says what the cases behind it have in common.",
        ),
    ],
};

/// How reliable an agent has to be.
pub static RELIABILITY: Shape = Shape {
    name: "Reliability",
    doc: "How often a case has to pass, and how sure that has to be. The case is run until the rate is known to be reached or missed.",
    fields: &[
        Field::required("rate", Kind::Number, "The part of all attempts that has to pass, between 0 and 1."),
        Field::optional(
            "confidence",
            Kind::Number,
            "How sure it has to be, between 0 and 1: 0.95 is wrong in one of twenty cases at most.",
        )
        .default("0.95"),
        Field::optional(
            "max_runs",
            Kind::Integer { min: 1, max: 10_000 },
            "After how many runs it is given up, undecided; such a case fails. Default: three times as many as a case takes that always passes.",
        ),
    ],
};

/// A command that runs before the first turn.
pub static HOOK: Shape = Shape {
    name: "Hook",
    doc: "A command that runs before the first turn. What it prints is a JSON object of variables, or nothing.",
    fields: &[
        Field::required(
            "cmd",
            Kind::NonEmptyList(&Kind::Text),
            "The program and its arguments. No shell is involved: nothing is expanded.",
        ),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "How long it may run before it and its children are killed.",
        )
        .default("30000"),
        Field::optional("env", Kind::Map(&Kind::Text), "Environment variables added for it."),
        Field::optional(
            "cwd",
            Kind::NonEmptyText,
            "Its working folder, relative to the project file's (without one, to the suite's). Default: that folder.",
        ),
    ],
};

/// One user input and what is asserted of the agent's doings until it is done.
pub static TURN: Shape = Shape {
    name: "Turn",
    doc: "One user input, and everything until the agent is done with it.",
    fields: &[
        Field::required(
            "user",
            Kind::OneOf(&[Kind::Text, Kind::Shape(&MESSAGE), PARTS]),
            "What the user says: text, parts, or a message with such `content`.",
        )
        .aliases(&["input"]),
        Field::optional("type", Kind::Choice(&["user"]), "Who speaks."),
        Field::optional(
            "attachments",
            Kind::NonEmptyList(&Kind::Tagged(&ATTACHMENT)),
            "What is attached to what the user says.",
        ),
        Field::optional(
            "options",
            Kind::JsonMap,
            "What the agent is told with this turn, on top of the `options` of the case.",
        ),
        Field::optional(
            "assert",
            ASSERT_KIND,
            "What is asserted of this turn alone, right after it. If it fails, no further turn is sent.",
        )
        .aliases(&["assertions"]),
        Field::optional("evaluate", OWN_ASSERT_KIND, "What is measured of this turn, and decides nothing."),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "How long the turn may take. Default: the target's `timeout_ms`.",
        ),
        Field::optional("timeout", Kind::NonEmptyText, DURATION),
        Field::optional(
            "expect_error",
            Kind::OneOf(&[Kind::Pattern, Kind::Shape(&EXPECTED_ERROR)]),
            "The agent must end this turn with an error (`RUN_ERROR`) whose message fits.",
        ),
        Field::optional(
            "resume",
            Kind::List(&Kind::Shape(&INTERRUPT_ANSWER)),
            "Answers to interrupts. The first one that fits is used; one that is never used fails the turn.",
        ),
    ],
};

/// Something that has to be reached.
pub static CHECKPOINT: Shape = Shape {
    name: "Checkpoint",
    doc: "Something that has to be reached: an assertion that holds of some turn.",
    fields: &[
        Field::required("id", Kind::NonEmptyText, "Its name, once in the case."),
        Field::optional("description", Kind::Text, "What it stands for."),
        Field::optional(
            "after",
            Kind::List(&Kind::NonEmptyText),
            "Checkpoints that are reached before it, or in the same turn.",
        ),
        Field::required(
            "assertion",
            OWN_ASSERT_KIND,
            "What holds of the turn in which it is reached. Of a list all hold of the same turn.",
        )
        .aliases(&["assert"]),
        Field::optional("required", Kind::Bool, "Whether the case fails if it is not reached.")
            .default("true"),
    ],
};

/// Criteria by name.
pub const CRITERIA_KIND: Kind = Kind::Map(&Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&CRITERION)]));

/// The shape of a criterion, with keys of its own before those that all have.
macro_rules! criterion {
    ($shape:ident, $name:literal, $doc:literal, [$($field:expr),* $(,)?]) => {
        #[doc = $doc]
        pub static $shape: Shape = Shape {
            name: $name,
            doc: $doc,
            fields: &[
                $($field,)*
                Field::optional(
                    "description",
                    Kind::NonEmptyText,
                    "What has to be so, in words that a judge understands.",
                ),
                Field::optional(
                    "good_examples",
                    Kind::NonEmptyList(&Kind::Shape(&EXAMPLE)),
                    "Responses that satisfy the criterion.",
                ),
                Field::optional(
                    "bad_examples",
                    Kind::NonEmptyList(&Kind::Shape(&EXAMPLE)),
                    "Responses that do not satisfy it.",
                ),
                Field::optional(
                    "edge_cases",
                    Kind::NonEmptyList(&Kind::Shape(&EDGE_CASE)),
                    "Responses where it is not plain whether they satisfy it.",
                ),
                Field::optional(
                    "match",
                    Kind::OneOf(&[
                        Kind::NonEmptyText,
                        Kind::Tagged(&ASSERTION),
                        Kind::NonEmptyList(&Kind::Tagged(&ASSERTION)),
                    ]),
                    "Decides instead of a judge: assertions that all hold, or a function of a script, `scripts:…`, that is given the conversation.",
                ),
                Field::optional(
                    "match_messages",
                    Kind::NonEmptyText,
                    "Decides instead of a judge: a function of a script that is given the messages.",
                ),
                Field::optional(
                    "function",
                    Kind::NonEmptyText,
                    "Decides instead of a judge: a function of a script that is given the turn.",
                ),
                Field::optional("judge", JUDGE_KIND, "Who judges this criterion, or who and how."),
            ],
        };
    };
}

criterion!(
    CRITERION,
    "Criterion",
    "A standard that what the agent says is measured by: `description` for a judge, or what decides instead of one.",
    []
);

criterion!(
    CRITERION_OF_ITS_OWN,
    "CriterionInPlace",
    "A criterion that is written where it is used.",
    [Field::optional("name", Kind::NonEmptyText, "What it is called in reports. Default: what it says.")]
);

/// A response, and why it is judged as it is.
pub static EXAMPLE: Shape = Shape {
    name: "Example",
    doc: "A response, and why it is judged as it is.",
    fields: &[
        Field::required("text", Kind::NonEmptyText, "What an agent says."),
        Field::required("explanation", Kind::NonEmptyText, "Why it is judged so."),
    ],
};

/// A response where it is not plain how it is judged.
pub static EDGE_CASE: Shape = Shape {
    name: "EdgeCase",
    doc: "A response where it is not plain how it is judged.",
    fields: &[
        Field::required("text", Kind::NonEmptyText, "What an agent says."),
        Field::required("verdict", Kind::Bool, "Whether it satisfies the criterion."),
        Field::required("explanation", Kind::NonEmptyText, "Why it is judged so."),
    ],
};

/// Who judges, or who and how.
pub const JUDGE_KIND: Kind = Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&JUDGE)]);

/// A judge and how it is asked.
pub static JUDGE: Shape = Shape {
    name: "Judge",
    doc: "A judge and how it is asked. What is not written holds as it is written above: for the case, its suite, the project.",
    fields: &[
        Field::optional(
            "use",
            Kind::NonEmptyText,
            "Who judges: `agents:ID`, `scripts:path.function`, or `connectors:NAME` for a model with the built-in prompts.",
        ),
        Field::optional(
            "connector",
            Kind::NonEmptyText,
            "With which model, where the judge is an agent that can be told. Without `use`: the model that judges.",
        ),
        Field::optional(
            "retries",
            Kind::Integer { min: 0, max: 10 },
            "How often it is asked again where its answer is not of the form that it must have, or does not come. Default: 2.",
        ),
        Field::optional(
            "votes",
            Kind::Integer { min: 1, max: 15 },
            "How many judgements are asked for. More than half of them decide; if there is no such majority, that is an error of the judge. Default: 1.",
        ),
        Field::optional(
            "timeout_ms",
            MILLISECONDS,
            "How long one answer may take. Default: 2 minutes for a model, the agent's own limit for an agent.",
        ),
        Field::optional("timeout", Kind::NonEmptyText, DURATION),
        Field::optional(
            "evidence",
            Kind::OneOf(&[EVIDENCE_CHARACTERS, Kind::Shape(&EVIDENCE)]),
            "How many characters of the conversation the judge is shown at most, or a mapping that also says what happens when there are more. Default: 1000000, and more is an error of the judge.",
        ),
    ],
};

/// How many characters a judge may be shown at most.
const EVIDENCE_CHARACTERS: Kind = Kind::Integer { min: 1_000, max: 10_000_000 };

/// How much of a conversation a judge is shown.
pub static EVIDENCE: Shape = Shape {
    name: "Evidence",
    doc: "How much of a conversation a judge is shown.",
    fields: &[
        Field::optional(
            "max_characters",
            EVIDENCE_CHARACTERS,
            "How many characters of the conversation the judge is shown at most. Default: 1000000.",
        ),
        Field::optional(
            "on_overflow",
            Kind::Choice(&["error", "truncate"]),
            "What happens when the conversation is longer: `error` ends the check with a judge error; `truncate` shortens the conversation, and the judge, the console and the reports are told. Default: error.",
        ),
    ],
};

/// A simulated user.
pub static SIMULATOR: Shape = Shape {
    name: "Simulator",
    doc: "A simulated user.",
    fields: &[
        Field::optional(
            "use",
            Kind::NonEmptyText,
            "Who simulates: `agents:ID` or the bare id; `scripts:path.function`; `connectors:NAME` for a model with the built-in prompt. Default: `--simulator`, or `simulator` of the project file.",
        ),
        Field::optional(
            "options",
            Kind::JsonMap,
            "What it is told: `metadata` with `persona` and `goal`, `connector`.",
        ),
        Field::optional("metadata", Kind::JsonMap, "The same as `options.metadata`."),
        Field::optional(
            "style",
            Kind::Choice(&["message", "transcript"]),
            "How it is told of the conversation: within the one message that it gets, or as messages that were said before.",
        )
        .default("message"),
    ],
};

/// A person who answers.
pub static INTERACTIVE: Shape = Shape {
    name: "Interactive",
    doc: "A person who answers when the agent waits.",
    fields: &[
        Field::optional("enabled", Kind::Bool, "Whether a person is asked.").default("false"),
        Field::optional("timeout", Kind::NonEmptyText, "How long is waited for an answer.").default("5m"),
    ],
};

/// How it is seen that an agent waits.
pub static AWAITING: Shape = Shape {
    name: "Awaiting",
    doc: "How it is seen that an agent waits for an input, where it does not say so itself.",
    fields: &[
        Field::optional("tools", Kind::List(&Kind::NonEmptyText), "Tools by which the agent asks the user.")
            .default("[request_confirmation, ask_user, get_user_input]"),
        Field::optional("questions", Kind::Bool, "Whether what the agent says is read for questions.")
            .default("true"),
    ],
};

/// A message.
pub static MESSAGE: Shape = Shape {
    name: "Message",
    doc: "A message of a conversation.",
    fields: &[
        Field::optional("role", Kind::Choice(Role::NAMES), "Who said it.").default("user"),
        Field::optional(
            "content",
            Kind::OneOf(&[Kind::Text, PARTS]),
            "What was said: text or parts. Only an assistant that calls tools may say nothing.",
        ),
        Field::optional("name", Kind::NonEmptyText, "The name of whoever said it."),
        Field::optional(
            "tool_calls",
            Kind::NonEmptyList(&Kind::Shape(&MESSAGE_CALL)),
            "The calls that an assistant made.",
        )
        .aliases(&["toolCalls"]),
        Field::optional("tool_call_id", Kind::NonEmptyText, "The call whose result a `tool` message is.")
            .aliases(&["toolCallId"]),
    ],
};

/// A tool call in a message.
pub static MESSAGE_CALL: Shape = Shape {
    name: "MessageCall",
    doc: "A tool call in a message: `name` and `arguments`, or both under `function`.",
    fields: &[
        Field::required("id", Kind::NonEmptyText, "Its id."),
        Field::optional("type", Kind::Choice(&["function"]), "What is called."),
        Field::optional("function", Kind::Shape(&MESSAGE_FUNCTION), "Name and arguments."),
        Field::optional("name", Kind::NonEmptyText, "The tool."),
        Field::optional(
            "arguments",
            Kind::OneOf(&[Kind::Text, Kind::JsonMap]),
            "Its arguments, also as JSON text.",
        )
        .aliases(&["args"]),
    ],
};

/// Name and arguments of a call.
pub static MESSAGE_FUNCTION: Shape = Shape {
    name: "MessageFunction",
    doc: "Name and arguments of a call.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "The tool."),
        Field::optional(
            "arguments",
            Kind::OneOf(&[Kind::Text, Kind::JsonMap]),
            "Its arguments, also as JSON text.",
        ),
    ],
};

/// What is said in parts.
const PARTS: Kind = Kind::NonEmptyList(&Kind::Tagged(&PART));

/// A part of what is said.
pub static PART: Tagged = Tagged {
    key: "type",
    shapes: &[&TEXT_PART, &IMAGE, &IMAGE_URL, &AUDIO, &VIDEO, &DOCUMENT, &FILE],
    untagged: None,
};

/// What may be attached.
pub static ATTACHMENT: Tagged =
    Tagged { key: "type", shapes: &[&IMAGE, &AUDIO, &VIDEO, &DOCUMENT, &FILE], untagged: None };

/// Words.
pub static TEXT_PART: Shape = Shape {
    name: "TextPart",
    doc: "Words.",
    fields: &[
        Field::required("type", Kind::Choice(&["text"]), "Which part this is."),
        Field::required("text", Kind::Text, "The words."),
    ],
};

/// A picture as OpenAI writes it.
pub static IMAGE_URL: Shape = Shape {
    name: "ImageUrl",
    doc: "A picture by its address.",
    fields: &[
        Field::required("type", Kind::Choice(&["image_url"]), "Which part this is."),
        Field::required(
            "image_url",
            Kind::OneOf(&[Kind::NonEmptyText, Kind::Shape(&IMAGE_ADDRESS)]),
            "Its address, also `data:`.",
        ),
    ],
};

/// The address of a picture.
pub static IMAGE_ADDRESS: Shape = Shape {
    name: "ImageAddress",
    doc: "The address of a picture.",
    fields: &[
        Field::required("url", Kind::NonEmptyText, "The address, also `data:`."),
        Field::optional("detail", Kind::NonEmptyText, "How closely it is looked at."),
    ],
};

/// Something attached, of one type.
macro_rules! attachment {
    ($shape:ident, $name:literal, $word:literal, $doc:literal) => {
        #[doc = $doc]
        pub static $shape: Shape = Shape {
            name: $name,
            doc: $doc,
            fields: &[
                Field::required("type", Kind::Choice(&[$word]), "Which part this is."),
                Field::required(
                    "source",
                    Kind::NonEmptyText,
                    "`file://PATH`, an address of HTTP, or `data:`. A path is looked for beside the suite, beside the project file, and in the working folder.",
                )
                .aliases(&["url"]),
                Field::optional("name", Kind::NonEmptyText, "What it is called. Default: the name of the file."),
                Field::optional("mimeType", Kind::NonEmptyText, "Its media type. Default: what the ending of the file says.")
                    .aliases(&["mime_type"]),
            ],
        };
    };
}

attachment!(IMAGE, "Image", "image", "A picture.");
attachment!(AUDIO, "Audio", "audio", "Sound.");
attachment!(VIDEO, "Video", "video", "Moving pictures.");
attachment!(DOCUMENT, "Document", "document", "A document.");
attachment!(FILE, "File", "file", "Any file; the same as `document`.");

/// An error that is expected.
pub static EXPECTED_ERROR: Shape = Shape {
    name: "ExpectedError",
    doc: "An error that the agent must end its turn with.",
    fields: &[
        Field::optional("message", Kind::Pattern, "Its message fits this."),
        Field::optional("code", Kind::Pattern, "Its code fits this."),
    ],
};

/// A scripted answer to an interrupt.
pub static INTERRUPT_ANSWER: Shape = Shape {
    name: "InterruptAnswer",
    doc: "An answer to an agent that paused. Without conditions it fits every interrupt.",
    fields: &[
        Field::optional("reason", Kind::Pattern, "Only for interrupts whose reason fits this."),
        Field::optional("message", Kind::Pattern, "Only for interrupts whose message fits this."),
        Field::optional("tool", Kind::NonEmptyText, "Only for interrupts that hold up a call of this tool."),
        Field::optional("payload", Kind::Json, "Resolves the interrupt with this."),
        Field::optional(
            "status",
            Kind::Choice(&["resolved", "cancelled"]),
            "`cancelled` refuses, without a payload.",
        )
        .default("resolved"),
        Field::optional("once", Kind::Bool, "Used for one interrupt only.").default("false"),
    ],
};

/// A tool that the client, here the test, offers to the agent.
pub static CLIENT_TOOL: Shape = Shape {
    name: "ClientTool",
    doc: "A tool that is offered to the agent and answered by the test.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Its name."),
        Field::optional("description", Kind::Text, "What the agent is told it does."),
        Field::optional("parameters", Kind::JsonMap, "JSON Schema of its arguments."),
        Field::optional(
            "answers",
            Kind::NonEmptyList(&Kind::Shape(&TOOL_ANSWER)),
            "What it returns: the first answer that fits. A call that none fits is answered by `url`, or fails the case.",
        ),
        Field::optional(
            "url",
            Kind::Url,
            "Who answers the calls that no entry of `answers` fits: each is posted there as `{id, name, arguments}`, and the body of the answer is the result. An HTTP status that is an error makes the tool fail.",
        ),
    ],
};

/// What a client-side tool returns.
pub static TOOL_ANSWER: Shape = Shape {
    name: "ToolAnswer",
    doc: "What a client-side tool returns. Either `content` or `error`.",
    fields: &[
        Field::optional("args_match", ARGUMENTS, "Only for calls whose arguments fit."),
        Field::optional("content", Kind::Json, "What it returns: text, or JSON."),
        Field::optional("error", Kind::NonEmptyText, "It fails with this message."),
        Field::optional("once", Kind::Bool, "Used for one call only.").default("false"),
    ],
};

/// An entry of the context.
pub static CONTEXT: Shape = Shape {
    name: "Context",
    doc: "Something the agent is told beside the conversation.",
    fields: &[
        Field::required("description", Kind::Text, "What it is."),
        Field::required("value", Kind::Text, "Its value."),
    ],
};

/// Where assertions may stand: a block, a typed assertion, a list of these, or `false` to drop what would be
/// inherited.
pub const ASSERT_KIND: Kind =
    Kind::OneOf(&[Kind::False, Kind::Tagged(&ASSERTION), Kind::NonEmptyList(&Kind::Tagged(&ASSERTION))]);

/// Where assertions stand that are inherited by nobody.
pub const OWN_ASSERT_KIND: Kind =
    Kind::OneOf(&[Kind::Tagged(&ASSERTION), Kind::NonEmptyList(&Kind::Tagged(&ASSERTION))]);

/// Assertions. All of them must hold.
pub static ASSERT: Shape = Shape {
    name: "Assert",
    doc: "Assertions; all of them must hold. Lists add to what is inherited, limits replace it, `false` drops it.",
    fields: &[
        Field::optional(
            "tools",
            Kind::OneOf(&[Kind::False, Kind::Shape(&TOOLS)]),
            "What is asserted of tool calls.",
        ),
        Field::optional("timing", Kind::OneOf(&[Kind::False, Kind::Shape(&TIMING)]), "How long it may take."),
        Field::optional(
            "budget",
            Kind::OneOf(&[Kind::False, Kind::Shape(&BUDGET)]),
            "How much it may spend.",
        ),
        Field::optional(
            "text",
            Kind::OneOf(&[Kind::False, Kind::Shape(&TEXT)]),
            "What is asserted of the agent's words.",
        ),
    ],
};

/// Assertions about tool calls.
pub static TOOLS: Shape = Shape {
    name: "Tools",
    doc: "What is asserted of tool calls. Tool names are compared exactly.",
    fields: &[
        Field::optional("forbid", NAMES, "Tools that are never called."),
        Field::optional(
            "require",
            Kind::List(&Kind::Shape(&REQUIRE)),
            "Tools that are called; each entry is judged on its own.",
        ),
        Field::optional("forbid_calls", Kind::List(&Kind::Shape(&FORBID_CALL)), "Calls that are never made."),
    ],
};

/// A tool that is called.
pub static REQUIRE: Shape = Shape {
    name: "Require",
    doc: "A tool that is called. The calls that fit `args_match` and `result_match` are counted.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Name of the tool."),
        Field::optional("count", Kind::Shape(&COUNT), "How many calls there are. Default: at least one."),
        Field::optional(
            "args_match",
            ARGUMENTS,
            "Patterns by argument. Paths lead inside: `cart.items.0.sku`.",
        ),
        Field::optional(
            "args_not_match",
            ARGUMENTS,
            "No call that fits `args_match` has an argument that fits one of these.",
        ),
        Field::optional("result_match", PATTERNS, "The result fits; objects are matched as compact JSON."),
        Field::optional(
            "result_not_match",
            PATTERNS,
            "No call that fits `args_match` has a result that fits.",
        ),
        Field::optional(
            "after",
            Kind::NonEmptyText,
            "Each counted call began after a call of this tool had begun. With its own name: it is called again.",
        ),
    ],
};

/// A number of calls.
pub static COUNT: Shape = Shape {
    name: "Count",
    doc: "A number of calls: `exact`, or `min` and `max`. `max` alone allows none.",
    fields: &[
        Field::optional("exact", TIMES, "Just so many; 0 means never."),
        Field::optional("min", TIMES, "At least so many."),
        Field::optional("max", TIMES, "At most so many."),
    ],
};

/// A call that is never made.
pub static FORBID_CALL: Shape = Shape {
    name: "ForbidCall",
    doc: "A call that is never made: one that fits everything given here.",
    fields: &[
        Field::required("name", Kind::NonEmptyText, "Name of the tool."),
        Field::optional("args_match", ARGUMENTS, "Patterns by argument; all must fit."),
        Field::optional("result_match", PATTERNS, "The result fits. A call without a result does not."),
    ],
};

/// Limits on time.
pub static TIMING: Shape = Shape {
    name: "Timing",
    doc: "How long it may take, on a monotonic clock. A limit itself is allowed.",
    fields: &[
        Field::optional(
            "max_duration_ms",
            MILLISECONDS,
            "The turn, or the whole conversation. A turn is given up when it is over.",
        ),
        Field::optional(
            "max_gap_ms",
            MILLISECONDS,
            "Idle time between two tool calls. A running tool is not idle.",
        ),
        Field::optional(
            "max_idle_ms",
            MILLISECONDS,
            "Idle time between two tool calls, before the first and after the last; without a call, the whole time.",
        ),
    ],
};

/// Limits on what is spent.
pub static BUDGET: Shape = Shape {
    name: "Budget",
    doc: "How much the turn, or the whole conversation, may spend. A limit itself is allowed. Where nobody says what was \
          spent, that is an error of its own.",
    fields: &[
        Field::optional(
            "max_tokens",
            TOKENS,
            "Tokens of requests and replies, as agent and models report them.",
        ),
        Field::optional(
            "max_cost",
            Kind::Number,
            "What they cost, by the prices of the project's connectors.",
        ),
        Field::optional("max_tool_calls", TIMES, "Calls of tools."),
    ],
};

/// Assertions about the agent's words.
pub static TEXT: Shape = Shape {
    name: "Text",
    doc: "What the agent says. Several messages are joined by line ends; patterns are searched, not anchored.",
    fields: &[
        Field::optional("must_match", PATTERNS, "Each of these fits."),
        Field::optional("must_not_match", PATTERNS, "None of these fits."),
        Field::optional(
            "beside_calls",
            Kind::Choice(&["forbid"]),
            "`forbid`: no message says something and calls tools too. Where an agent does not tell which message makes a call, that cannot be judged and does not hold.",
        ),
    ],
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::CASE.problems(), Vec::<String>::new());
    }
}
