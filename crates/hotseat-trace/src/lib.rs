//! What happened in a conversation, and how to look at it.
//!
//! Everything an agent did is an [`Event`]; the events of one conversation, in order, are its trace.
//! [`Conversation`] folds them into turns, messages and tool calls, which is what checks and reports
//! read, whether the trace is live or stored. [`Verdict`] says what an attempt came to.
//!
//! This crate does no I/O, waits for nobody and reads no clock: times are given to it.

mod conversation;
mod event;
mod time;
mod verdict;

pub use conversation::{Conversation, Interrupt, Message, Reasoning, Scope, ToolCall, ToolResult, Turn, TurnOutcome};
pub use event::{
    AgentRunFailed, AgentRunFinished, AgentRunStarted, AssistantMessage, Custom, ErrorInfo, Event, FORMAT_VERSION,
    InterruptAnswered, InterruptRaised, Note, Origin, Payload, Raw, ReasoningMessage, StateDelta, StateSnapshot, Step,
    Subagent, ToolArguments, ToolCompleted, ToolFailed, ToolInvoked, TurnCompleted, TurnFailed, TurnStarted,
    UserMessage,
};
pub use time::{Millis, Offset};
pub use verdict::{CheckVerdict, Failure, FailureKind, Fault, Status, Verdict};
