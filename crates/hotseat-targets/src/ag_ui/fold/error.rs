//! Errors of a run of the agent.

use std::sync::Arc;

use hotseat_trace::PatchError;

use super::super::chunks::ChunkError;
use super::super::thread::TooManySnapshots;
use super::super::wire::{ROLES, WireError};
use crate::connection::lines::TooManyValues;
use crate::message::shown_id;

/// Maximum number of run starts and ends in one response; each one checks all open items.
pub(super) const MAX_RUN_BOUNDARIES: usize = 200;

/// A violation of the protocol that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolViolation {
    /// An event cannot be processed.
    #[error("event {number}: {problem}")]
    Event {
        number: u64,
        #[source]
        problem: EventProblem,
    },
    /// A part of a call belongs to no call.
    #[error("{part} arrived for tool call {}, but no event names its tool", shown_id(.id))]
    UnknownCall { part: &'static str, id: Arc<str> },
    /// One of the results would hide the other from checks.
    #[error(
        "tool call {} has two different results; a tool that runs again is another call, with its own TOOL_CALL_START",
        shown_id(.0)
    )]
    SecondResult(Arc<str>),
    /// The same of several calls with one id.
    #[error(
        "several tool calls share the id {0:?}, and it has more results than calls; each call needs its own id"
    )]
    TooManyResults(Arc<str>),
    /// The agent waits for a call that it did not make.
    #[error("RUN_FINISHED lists the pending tool call {}, which was never announced", shown_id(.0))]
    UnknownPendingCall(Arc<str>),
}

/// Problem of one event.
#[derive(Debug, thiserror::Error)]
pub enum EventProblem {
    #[error("it {0}")]
    Values(#[from] TooManyValues),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    #[error(transparent)]
    Snapshots(#[from] TooManySnapshots),
    /// A rule about the order of events, under strict rules.
    #[error("{0}")]
    Rule(String),
    #[error("runs start and end more than {MAX_RUN_BOUNDARIES} times in one answer")]
    TooManyRuns,
    #[error("{0} has a tool call without a name")]
    NamelessCall(&'static str),
    #[error(
        "MESSAGES_SNAPSHOT has a tool call that is not an entry of `toolCalls` with `id`, `function.name` and `function.arguments`: {0}"
    )]
    InvalidCall(String),
    /// Checks read the texts of the agent, so a message of an unknown role would escape them.
    #[error("{event} has the role `{role}`, expected one of {}", ROLES.join(", "))]
    UnknownRole { event: &'static str, role: String },
    /// A patch that applies to no document.
    #[error("{0} has an invalid patch: {1}")]
    Patch(&'static str, PatchError),
    #[error("RUN_FINISHED has outcome `interrupt` but lists no interrupts")]
    NoInterrupts,
}
