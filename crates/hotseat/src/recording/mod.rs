//! Recordings: what an agent did in one conversation, turn by turn, in a file that people can read and edit and that
//! an agent of `type: replay` serves again.
//!
//! A recording is made from the trace and not from what came over a wire, so it is the same whatever the agent speaks.

mod name;
mod of_trace;
mod read;
#[cfg(test)]
mod round_trip;
mod shape;
mod write;

use std::time::Duration;

use hotseat_document::Place;
use hotseat_trace::Origin;
use serde_json::Value;

pub use name::{file_name, suite_name};
pub use of_trace::turns_of;
pub use read::{NotRead, read};
pub use shape::RECORDING;
pub(crate) use write::temporary;
pub use write::write;

/// What an agent did in one conversation.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The suite of the case; none where it fits the case of any suite.
    pub suite: Option<String>,
    /// The id of the case.
    pub case: String,
    /// The agent, as the project calls it.
    pub agent: Option<String>,
    /// When it was recorded, as RFC 3339.
    pub recorded_at: Option<String>,
    /// The turns, in order.
    pub turns: Vec<Turn>,
}

/// What was said in a turn, and what the agent did.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// What the user said.
    pub user: String,
    /// What was attached to it, as it is called.
    pub attachments: Vec<String>,
    /// How long the turn took; none where nobody knows.
    pub duration: Option<Duration>,
    /// What the agent did, in order.
    pub events: Vec<Event>,
    /// Why the turn could not be held to its end, if it could not.
    pub unfinished: Option<String>,
    /// Where it is written, if it was read.
    pub place: Option<Place>,
}

/// Something that happened in a turn.
#[derive(Debug, Clone)]
pub struct Event {
    /// When, from the start of the turn.
    pub at: Option<Duration>,
    /// When it began, where that was before.
    pub started: Option<Duration>,
    /// What happened.
    pub what: What,
    /// Where it is written, if it was read.
    pub place: Option<Place>,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum What {
    /// The agent said something.
    Message {
        /// The whole text.
        text: String,
        /// Whether the same message called tools, where that is known.
        calls_tools: Option<bool>,
        /// The sub-agent that said it.
        subagent: Option<String>,
    },
    /// The agent thought something.
    Reasoning {
        /// The whole text.
        text: String,
    },
    /// The agent called a tool.
    ToolCall {
        /// Id of the call, unique in the recording.
        id: String,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Arguments,
        /// Where it was seen.
        origin: Origin,
        /// The sub-agent that called.
        subagent: Option<String>,
    },
    /// A tool answered.
    ToolResult {
        /// Id of the call.
        id: String,
        /// What it returned, or why it failed.
        result: Result<Value, String>,
        /// Where it was seen. The test itself answers its own tools.
        origin: Origin,
    },
    /// The agent paused and waited for an answer.
    Interrupt {
        /// Its id.
        id: String,
        /// Why, as a short name.
        reason: Option<String>,
        /// What a person was asked.
        message: Option<String>,
        /// The tool whose call it held up.
        tool: Option<String>,
        /// That call.
        tool_call_id: Option<String>,
        /// Everything the agent said of it.
        value: Value,
    },
    /// The test answered an interrupt.
    InterruptAnswer {
        /// The interrupt.
        id: String,
        /// What was answered; none where it was refused.
        payload: Option<Value>,
    },
    /// The agent shared its state.
    State {
        /// The whole state.
        state: Value,
    },
    /// The agent said whether it waits for the user.
    AwaitingInput {
        /// Whether it waits.
        awaiting: bool,
        /// What it waits for.
        hint: Option<String>,
    },
    /// Something about the protocol that a person should know.
    Note {
        /// What.
        text: String,
    },
    /// The agent ended a run in order.
    Finished {
        /// How it says that it ended.
        outcome: String,
        /// What it returned.
        result: Option<Value>,
        /// What it cost.
        usage: Option<Value>,
        /// Why its last reply ends where it does.
        finish_reason: Option<String>,
    },
    /// The agent said that it failed.
    Error {
        /// In its words.
        message: String,
        /// As a short name.
        code: Option<String>,
    },
}

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// None were given.
    None,
    /// As JSON.
    Json(Value),
    /// What should have been JSON and is not.
    Broken(String),
}

impl Arguments {
    /// No arguments: an empty object.
    pub fn empty() -> Self {
        Arguments::Json(Value::Object(serde_json::Map::new()))
    }

    /// Arguments that should be JSON.
    pub fn of_text(text: String) -> Self {
        match crate::session::json_of(&text) {
            Some(value) => Arguments::Json(value),
            None => Arguments::Broken(text),
        }
    }
}

impl Event {
    /// Something of which nobody knows when it happened.
    pub fn untimed(what: What) -> Self {
        Event { at: None, started: None, what, place: None }
    }
}

impl Recording {
    /// Whether it is known how long each turn took.
    pub fn is_timed(&self) -> bool {
        self.turns.iter().all(|turn| turn.duration.is_some())
    }
}
