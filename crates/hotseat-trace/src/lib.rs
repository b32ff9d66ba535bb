//! What happened in a conversation, and how to look at it.
//!
//! Everything an agent did is an [`Event`]; the events of one conversation, in order, are its trace.
//! [`Conversation`] folds them into turns, messages and tool calls, which is what checks and reports
//! read, whether the trace is live or stored. [`Verdict`] says what an attempt came to.
//!
//! A [`Trace`] is such a sequence as a whole, also of several conversations that called each other: its views
//! answer what happened in which turn, [`verify`] compares it with what was expected of it, and
//! [`check_invariants`] says whether it can have been written by an agent that works at all.
//!
//! This crate does no I/O, waits for nobody and reads no clock: times are given to it.

mod conversation;
mod event;
mod invariants;
mod order;
mod patch;
mod payload;
mod record;
mod show;
mod spent;
mod time;
mod topics;
mod trace;
mod verdict;
mod verify;

pub use conversation::{
    Awaiting, CallingMessages, Conversation, Interrupt, Message, Reasoning, Scope, Simulation, ToolCall,
    ToolResult, Turn, TurnOutcome,
};
pub use event::{Event, FORMAT_VERSION};
pub use invariants::{InvariantOptions, Violation, assert_conversation_invariants, check_invariants};
pub use order::{Demand, OrderRule, Point, order_violations};
pub use patch::{PatchAllowance, apply_patch};
pub use payload::*;
pub use record::{Execution, ExecutionKind, Record};
pub use show::around;
pub use spent::Spent;
pub use time::{Millis, Offset};
pub use topics::{GraphError, GraphMistake, GraphNode, Precedence, TopicGraph, Visit, Wired};
pub use trace::*;
pub use verdict::{CheckVerdict, Failure, FailureKind, Fault, Status, Verdict};
pub use verify::*;
