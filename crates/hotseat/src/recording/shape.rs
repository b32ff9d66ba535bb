//! What may be written in a recording, as data.

use hotseat_document::{Field, Kind, Shape, Tagged};

/// A recording.
pub static RECORDING: Shape = Shape {
    name: "Recording",
    doc: "What an agent did in one conversation. `hotseat test --record` and `hotseat import` write it, and an agent of `type: replay` serves it again.",
    fields: &[
        Field::required("version", Kind::Integer { min: 1, max: 1 }, "Version of this format."),
        Field::optional(
            "suite",
            Kind::NonEmptyText,
            "The suite of the case, from the folder of the project. Without it the recording fits the case of any suite.",
        ),
        Field::required("case", Kind::Text, "The id of the case."),
        Field::optional("agent", Kind::Text, "The agent, as the project calls it."),
        Field::optional("recorded_at", Kind::Text, "When it was recorded."),
        Field::required(
            "turns",
            Kind::NonEmptyList(&Kind::Shape(&TURN)),
            "The turns, in order: the first turn of a case gets the first one.",
        ),
    ],
};

const MILLISECONDS: Kind = Kind::Number;

/// A turn.
pub static TURN: Shape = Shape {
    name: "RecordedTurn",
    doc: "What was said in a turn, and what the agent did.",
    fields: &[
        Field::required("user", Kind::Text, "What the user said."),
        Field::optional("attachments", Kind::List(&Kind::Text), "What was attached to it, as it is called."),
        Field::optional(
            "duration_ms",
            MILLISECONDS,
            "How long the turn took. Where a turn has none, nothing that asserts time can be judged.",
        ),
        Field::required("events", Kind::List(&Kind::Tagged(&EVENT)), "What the agent did, in order."),
        Field::optional(
            "unfinished",
            Kind::NonEmptyText,
            "Why the turn could not be held to its end. Served again it is an error.",
        ),
    ],
};

/// Something that happened.
pub static EVENT: Tagged = Tagged {
    key: "type",
    shapes: &[
        &MESSAGE,
        &REASONING,
        &TOOL_CALL,
        &TOOL_RESULT,
        &INTERRUPT,
        &INTERRUPT_ANSWER,
        &STATE,
        &AWAITING_INPUT,
        &NOTE,
        &FINISHED,
        &ERROR,
    ],
    untagged: None,
};

/// The shape of one type of event: `type`, when it happened, and its own keys.
macro_rules! event {
    ($shape:ident, $name:literal, $word:literal, $doc:literal, [$($field:expr),* $(,)?]) => {
        #[doc = $doc]
        pub static $shape: Shape = Shape {
            name: $name,
            doc: $doc,
            fields: &[
                Field::required("type", Kind::Choice(&[$word]), "What happened."),
                Field::optional("at_ms", MILLISECONDS, "When, from the start of the turn. Default: with the event before it."),
                $($field,)*
            ],
        };
    };
}

const STARTED: Field = Field::optional("started_ms", MILLISECONDS, "When it began, where that was before.");
const SUBAGENT: Field = Field::optional("subagent", Kind::Text, "The sub-agent that did it.");
const CALL: Field = Field::required("id", Kind::Text, "Id of the call.");
const SEEN: &str = "`client`: the test answered. `snapshot`: it was seen only in a snapshot of the messages.";

event!(
    MESSAGE,
    "RecordedMessage",
    "message",
    "The agent said something.",
    [
        STARTED,
        Field::required("text", Kind::Text, "The whole text."),
        Field::optional(
            "calls_tools",
            Kind::Bool,
            "Whether the same message called tools. Left out where nobody knows.",
        ),
        SUBAGENT,
    ]
);

event!(
    REASONING,
    "RecordedReasoning",
    "reasoning",
    "The agent thought something; never part of what it said.",
    [Field::required("text", Kind::Text, "The whole text.")]
);

event!(
    TOOL_CALL,
    "RecordedToolCall",
    "tool_call",
    "The agent called a tool.",
    [
        STARTED,
        Field::required("id", Kind::Text, "Id of the call, once in the recording."),
        Field::required("tool", Kind::Text, "The tool."),
        Field::optional("arguments", Kind::Json, "The arguments."),
        Field::optional("arguments_text", Kind::Text, "The arguments where they are not JSON."),
        Field::optional("origin", Kind::Choice(&["snapshot"]), SEEN),
        SUBAGENT,
    ]
);

event!(
    TOOL_RESULT,
    "RecordedToolResult",
    "tool_result",
    "A tool answered. Either `result` or `error`.",
    [
        CALL,
        Field::optional("result", Kind::Json, "What it returned."),
        Field::optional("error", Kind::Text, "It failed with this message."),
        Field::optional(
            "origin",
            Kind::Choice(&["client", "snapshot"]),
            "`client`: the test answered, and has to answer the same when this is served again. `snapshot`: it was seen only in a snapshot of the messages.",
        ),
    ]
);

event!(
    INTERRUPT,
    "RecordedInterrupt",
    "interrupt",
    "The agent paused and waited for an answer.",
    [
        Field::required("id", Kind::Text, "Its id."),
        Field::optional("reason", Kind::Text, "Why, as a short name."),
        Field::optional("message", Kind::Text, "What a person was asked."),
        Field::optional("tool", Kind::Text, "The tool whose call it held up."),
        Field::optional("tool_call_id", Kind::Text, "That call."),
        Field::optional("value", Kind::Json, "Everything the agent said of it."),
    ]
);

event!(
    INTERRUPT_ANSWER,
    "RecordedInterruptAnswer",
    "interrupt_answer",
    "The test answered an interrupt, and has to answer the same when this is served again.",
    [
        Field::required("id", Kind::Text, "Id of the interrupt."),
        Field::required(
            "status",
            Kind::Choice(&["resolved", "cancelled"]),
            "Whether it was resolved or refused."
        ),
        Field::optional("payload", Kind::Json, "What was answered."),
    ]
);

event!(
    STATE,
    "RecordedState",
    "state",
    "The agent shared its state.",
    [Field::required("state", Kind::Json, "The whole state, as last seen in the turn.")]
);

event!(
    AWAITING_INPUT,
    "RecordedAwaitingInput",
    "awaiting_input",
    "The agent said whether it waits for the user.",
    [
        Field::required("awaiting", Kind::Bool, "Whether it waits."),
        Field::optional("hint", Kind::Text, "What it waits for, in its words."),
    ]
);

event!(
    NOTE,
    "RecordedNote",
    "note",
    "Something about the protocol that a person should know. It decides nothing.",
    [Field::required("text", Kind::Text, "What.")]
);

event!(
    FINISHED,
    "RecordedFinish",
    "finished",
    "The agent ended a run in order. A turn may need several.",
    [
        Field::optional("outcome", Kind::Text, "How, in its word.").default("success"),
        Field::optional("result", Kind::Json, "What the run returned."),
        Field::optional("usage", Kind::Json, "What it cost."),
        Field::optional("finish_reason", Kind::Text, "Why the last reply ends where it does."),
    ]
);

event!(
    ERROR,
    "RecordedError",
    "error",
    "The agent said that it failed. Nothing comes behind it in its turn.",
    [
        Field::required("message", Kind::Text, "What it said."),
        Field::optional("code", Kind::Text, "The same as a short name."),
    ]
);

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::RECORDING.problems(), Vec::<String>::new());
    }
}
