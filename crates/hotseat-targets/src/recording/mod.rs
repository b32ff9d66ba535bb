//! Recordings: the behavior of an agent in one conversation, turn by turn, in a readable and editable file
//! that an agent of `type: replay` serves.
//!
//! A recording is made from the trace, not from wire data, so it does not depend on the protocol of the
//! agent.

mod from_trace;
mod name;
mod read;
#[cfg(test)]
mod round_trip;
mod shape;
mod write;

use std::time::Duration;

use hotseat_document::SourceSpan;
use hotseat_trace::Origin;
use serde_json::Value;

use crate::message::ToolReply;

pub use from_trace::turns_of;
pub use name::{file_name, suite_name};
pub(crate) use read::mcp_payload;
pub use read::{ReadRecordingError, read};
pub use shape::RECORDING;
pub use write::create_temporary;
pub use write::write;

/// Behavior of an agent in one conversation.
#[derive(Debug, Clone, Default)]
pub struct AgentRecording {
    /// Suite of the case, or `None` if the recording matches the case in any suite.
    pub suite: Option<String>,
    /// Id of the case.
    pub case: String,
    /// Name of the agent in the project.
    pub agent: Option<String>,
    /// Recording time, as RFC 3339.
    pub recorded_at: Option<String>,
    /// Turns in order.
    pub turns: Vec<RecordedTurn>,
}

/// User input and agent behavior of a turn.
#[derive(Debug, Clone, Default)]
pub struct RecordedTurn {
    /// Text of the user.
    pub user: String,
    /// Names of the attachments.
    pub attachments: Vec<String>,
    /// Duration of the turn, if known.
    pub duration: Option<Duration>,
    /// Events in order.
    pub events: Vec<RecordedEvent>,
    /// Reason why the turn is incomplete.
    pub unfinished: Option<String>,
    /// Location in the file, if it was read from one.
    pub place: Option<SourceSpan>,
}

/// An event of a turn.
#[derive(Debug, Clone)]
pub struct RecordedEvent {
    /// Time since the start of the turn.
    pub at: Option<Duration>,
    /// Start time, if the event took time.
    pub started: Option<Duration>,
    /// Content of the event.
    pub kind: RecordedEventKind,
    /// Location in the file, if it was read from one.
    pub place: Option<SourceSpan>,
}

/// Kind and content of an event.
#[derive(Debug, Clone)]
pub enum RecordedEventKind {
    /// The agent sent a message.
    Message {
        /// Full text.
        text: String,
        /// True if the same message called tools, if known.
        calls_tools: Option<bool>,
        /// Sub-agent that sent it.
        subagent: Option<String>,
    },
    /// The agent produced reasoning text.
    Reasoning {
        /// Full text.
        text: String,
    },
    /// The agent called a tool.
    ToolCall {
        /// Id of the call, unique in the recording.
        id: String,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: RecordedArguments,
        /// Source of the information.
        origin: Origin,
        /// Sub-agent that made the call.
        subagent: Option<String>,
    },
    /// A tool returned a result.
    ToolResult {
        /// Id of the call.
        id: String,
        /// Returned value or error message.
        result: ToolReply,
        /// Source of the result: the test answers its own tools.
        origin: Origin,
    },
    /// The agent paused for an answer.
    Interrupt {
        /// Id of the interrupt.
        id: String,
        /// Reason, as a short name.
        reason: Option<String>,
        /// Question for a human.
        message: Option<String>,
        /// Tool whose call is on hold.
        tool: Option<String>,
        /// Id of the call on hold.
        tool_call_id: Option<String>,
        /// Full data of the interrupt.
        value: Value,
    },
    /// The test answered an interrupt.
    InterruptAnswer {
        /// The interrupt.
        id: String,
        /// Answer, or `None` if cancelled.
        payload: Option<Value>,
    },
    /// The agent published its state.
    State {
        /// Full state.
        state: Value,
    },
    /// The agent declared if it waits for the user.
    AwaitingInput {
        /// True if it waits.
        awaiting: bool,
        /// Requested input.
        hint: Option<String>,
    },
    /// A note about the protocol.
    Note {
        /// Text of the note.
        text: String,
    },
    /// An MCP server of the test observed something: a call, its answer, a fault.
    Mcp {
        /// Type of the event in the trace.
        event: String,
        /// Its payload, without the turn.
        payload: Value,
    },
    /// The agent completed a run.
    Finished {
        /// Outcome as reported by the agent.
        outcome: String,
        /// Returned value.
        result: Option<Value>,
        /// Usage.
        usage: Option<Value>,
        /// Finish reason of the last reply.
        finish_reason: Option<String>,
    },
    /// The agent reported a failure.
    Error {
        /// Message of the agent.
        message: String,
        /// Short error code.
        code: Option<String>,
    },
}

/// Arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedArguments {
    /// No arguments given.
    None,
    /// JSON arguments.
    Json(Value),
    /// Text that is not valid JSON.
    Broken(String),
}

impl RecordedArguments {
    /// Returns an empty object.
    pub fn empty() -> Self {
        RecordedArguments::Json(Value::Object(serde_json::Map::new()))
    }

    /// Parses arguments that should be JSON.
    pub fn parse(text: String) -> Self {
        match crate::message::parse_json(&text) {
            Some(value) => RecordedArguments::Json(value),
            None => RecordedArguments::Broken(text),
        }
    }
}

impl RecordedEvent {
    /// Creates an event without a time.
    pub fn untimed(what: RecordedEventKind) -> Self {
        RecordedEvent { at: None, started: None, kind: what, place: None }
    }
}

impl AgentRecording {
    /// Returns true if the duration of every turn is known.
    pub fn is_timed(&self) -> bool {
        self.turns.iter().all(|turn| turn.duration.is_some())
    }
}
