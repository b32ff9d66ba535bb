//! Recordings: the behavior of an agent in one conversation, turn by turn, in a readable and editable file
//! that an agent of `type: replay` serves.
//!
//! A recording is made from the trace, not from wire data, so it does not depend on the protocol of the
//! agent.

mod events;
mod from_trace;
mod name;
mod read;
#[cfg(test)]
mod round_trip;
mod shape;
mod write;

use std::collections::BTreeMap;
use std::time::Duration;

use hotseat_document::SourceSpan;

pub use events::{RecordedArguments, RecordedEventKind};
pub use from_trace::turns_of;
pub use name::{file_name, suite_name};
pub(crate) use read::mcp_payload;
pub use read::{ReadRecordingError, read};
pub use shape::RECORDING;
pub use write::{create_temporary, find_other, write};

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
    /// True if nothing showed the tool calls of the agent. The turns then have no calls, whatever it called.
    pub hides_calls: bool,
    /// Digests of the secrets that were replaced, by name.
    pub secrets: BTreeMap<String, String>,
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
    /// Error of the protocol after the turn, if it was the last one.
    pub trailing_error: Option<String>,
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
    /// Time of the last part of the arguments of a call without a result, if it is not the time of the event.
    pub ended: Option<Duration>,
    /// Content of the event.
    pub kind: RecordedEventKind,
    /// Location in the file, if it was read from one.
    pub place: Option<SourceSpan>,
}

impl RecordedEvent {
    /// Creates an event without a time.
    pub fn untimed(what: RecordedEventKind) -> Self {
        RecordedEvent { at: None, started: None, ended: None, kind: what, place: None }
    }
}

impl AgentRecording {
    /// Returns true if the duration of every turn is known.
    pub fn is_timed(&self) -> bool {
        self.turns.iter().all(|turn| turn.duration.is_some())
    }
}
