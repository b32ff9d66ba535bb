//! File format of recordings.

use hotseat_document::{Field, Kind, Shape, TaggedShapes};

/// A recording.
pub static RECORDING: Shape = Shape {
    name: "Recording",
    doc: "Behavior of an agent in one conversation. `hotseat test --record` and `hotseat import` write it, and an agent of `type: replay` serves it again.",
    fields: &[
        Field::required("version", Kind::Integer { min: 1, max: 1 }, "Version of this format."),
        Field::optional(
            "suite",
            Kind::NonEmptyText,
            "The suite of the case, as a path from the project folder. Without it the recording matches the case in any suite.",
        ),
        Field::required("case", Kind::Text, "Id of the case."),
        Field::optional("agent", Kind::Text, "Name of the agent in the project."),
        Field::optional("recorded_at", Kind::Text, "Time of the recording."),
        Field::required(
            "turns",
            Kind::NonEmptyList(&Kind::Shape(&TURN)),
            "Turns in order. The first turn of a case is served from the first one.",
        ),
    ],
};

const MILLISECONDS: Kind = Kind::Number;

/// A turn.
pub static TURN: Shape = Shape {
    name: "RecordedTurn",
    doc: "User input and agent behavior of a turn.",
    fields: &[
        Field::required("user", Kind::Text, "Text of the user."),
        Field::optional("attachments", Kind::List(&Kind::Text), "Names of the attachments."),
        Field::optional(
            "duration_ms",
            MILLISECONDS,
            "Duration of the turn. Without it, checks of time cannot be evaluated.",
        ),
        Field::required("events", Kind::List(&Kind::Tagged(&EVENT)), "Events of the agent, in order."),
        Field::optional(
            "unfinished",
            Kind::NonEmptyText,
            "Reason why the turn is incomplete. It is replayed as an error.",
        ),
    ],
};

/// An event of a turn.
pub static EVENT: TaggedShapes = TaggedShapes {
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
        &MCP,
        &FINISHED,
        &ERROR,
    ],
    untagged: None,
};

/// Defines the shape of one event type: `type`, its time, and its own keys.
macro_rules! event {
    ($shape:ident, $name:literal, $word:literal, $doc:literal, [$($field:expr),* $(,)?]) => {
        #[doc = $doc]
        pub static $shape: Shape = Shape {
            name: $name,
            doc: $doc,
            fields: &[
                Field::required("type", Kind::Choice(&[$word]), "Type of the event."),
                Field::optional("at_ms", MILLISECONDS, "Time since the start of the turn. Default: that of the previous event."),
                $($field,)*
            ],
        };
    };
}

const STARTED: Field = Field::optional("started_ms", MILLISECONDS, "Start time, if the event took time.");
const SUBAGENT: Field = Field::optional("subagent", Kind::Text, "Sub-agent that caused the event.");
const CALL: Field = Field::required("id", Kind::Text, "Id of the call.");
const SEEN: &str =
    "`snapshot`: seen only in a snapshot of the messages. `model`: seen only in the reply of a served model.";

event!(
    MESSAGE,
    "RecordedMessage",
    "message",
    "The agent sent a message.",
    [
        STARTED,
        Field::required("text", Kind::Text, "The full text."),
        Field::optional(
            "calls_tools",
            Kind::Bool,
            "True if the same message called tools. Omitted if unknown.",
        ),
        SUBAGENT,
    ]
);

event!(
    REASONING,
    "RecordedReasoning",
    "reasoning",
    "Reasoning of the agent; never part of its messages.",
    [Field::required("text", Kind::Text, "The full text.")]
);

event!(
    TOOL_CALL,
    "RecordedToolCall",
    "tool_call",
    "The agent called a tool.",
    [
        STARTED,
        Field::required("id", Kind::Text, "Id of the call, unique in the recording."),
        Field::required("tool", Kind::Text, "The tool."),
        Field::optional("arguments", Kind::Json, "The arguments."),
        Field::optional("arguments_text", Kind::Text, "The arguments, if they are not valid JSON."),
        Field::optional("origin", Kind::Choice(&["snapshot", "model"]), SEEN),
        SUBAGENT,
    ]
);

event!(
    TOOL_RESULT,
    "RecordedToolResult",
    "tool_result",
    "A tool returned. Either `result` or `error`.",
    [
        CALL,
        Field::optional("result", Kind::Json, "The returned value."),
        Field::optional("error", Kind::Text, "The error message."),
        Field::optional(
            "origin",
            Kind::Choice(&["client", "snapshot"]),
            "`client`: answered by the test, which must answer the same during replay. `snapshot`: seen only in a snapshot of the messages.",
        ),
    ]
);

event!(
    INTERRUPT,
    "RecordedInterrupt",
    "interrupt",
    "The agent paused for an answer.",
    [
        Field::required("id", Kind::Text, "Its id."),
        Field::optional("reason", Kind::Text, "Reason, as a short name."),
        Field::optional("message", Kind::Text, "Question for a human."),
        Field::optional("tool", Kind::Text, "Tool whose call is on hold."),
        Field::optional("tool_call_id", Kind::Text, "That call."),
        Field::optional("value", Kind::Json, "Full data of the interrupt."),
    ]
);

event!(
    INTERRUPT_ANSWER,
    "RecordedInterruptAnswer",
    "interrupt_answer",
    "The test answered an interrupt, and must answer the same during replay.",
    [
        Field::required("id", Kind::Text, "Id of the interrupt."),
        Field::required(
            "status",
            Kind::Choice(&["resolved", "cancelled"]),
            "`resolved` if answered, `cancelled` if refused."
        ),
        Field::optional("payload", Kind::Json, "The answer."),
    ]
);

event!(
    STATE,
    "RecordedState",
    "state",
    "The agent published its state.",
    [Field::required("state", Kind::Json, "The full state, as last seen in the turn.")]
);

event!(
    AWAITING_INPUT,
    "RecordedAwaitingInput",
    "awaiting_input",
    "The agent declared if it waits for the user.",
    [
        Field::required("awaiting", Kind::Bool, "True if it waits."),
        Field::optional("hint", Kind::Text, "Requested input."),
    ]
);

event!(
    NOTE,
    "RecordedNote",
    "note",
    "A note about the protocol. It affects no check.",
    [Field::required("text", Kind::Text, "What.")]
);

event!(
    MCP,
    "RecordedMcp",
    "mcp",
    "An MCP server of the test observed a call, its answer or a fault, or a served model of the test injected a fault.",
    [
        Field::required("event", Kind::Choice(MCP_EVENTS), "Type of the event in the trace."),
        Field::required("payload", Kind::JsonMap, "Payload of the event, without the turn."),
    ]
);

/// Types of events that MCP servers observe.
const MCP_EVENTS: &[&str] = &[
    "mcp.connected",
    "tool.invoked",
    "mcp.arguments_invalid",
    "mcp.arguments_unchecked",
    "mcp.fault_injected",
    "interrupt.raised",
    "interrupt.answered",
    "tool.completed",
    "tool.failed",
    "mcp.answer_lost",
    "llm.fault_injected",
];

event!(
    FINISHED,
    "RecordedFinish",
    "finished",
    "The agent completed a run. A turn may have several runs.",
    [
        Field::optional("outcome", Kind::Text, "Outcome as reported by the agent.").default("success"),
        Field::optional("result", Kind::Json, "The returned value."),
        Field::optional("usage", Kind::Json, "Token usage."),
        Field::optional("finish_reason", Kind::Text, "Finish reason of the last reply."),
    ]
);

event!(
    ERROR,
    "RecordedError",
    "error",
    "The agent reported a failure. It is the last event of its turn.",
    [
        Field::required("message", Kind::Text, "Error message."),
        Field::optional("code", Kind::Text, "Short error code."),
    ]
);

#[cfg(test)]
mod tests {
    #[test]
    fn the_shapes_are_sound() {
        assert_eq!(super::RECORDING.problems(), Vec::<String>::new());
    }
}
