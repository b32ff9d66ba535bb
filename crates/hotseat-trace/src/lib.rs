//! Events and traces of conversations, and the tools to read them.
//!
//! Every action of an agent is an [`Event`]; the ordered events of one conversation are its trace.
//! [`TracedConversation`] folds them into turns, messages and tool calls for checks and reports, for live and
//! stored traces alike. [`Verdict`] is the result of an attempt.
//!
//! A [`Trace`] holds such a sequence, including several conversations that called each other. Its views list
//! the events of each turn, [`verify()`] compares it with expectations, and [`check_invariants`] checks that it
//! is consistent.
//!
//! This crate does no I/O, never blocks and reads no clock: callers pass all times.

// Macros name this crate as others do.
extern crate self as hotseat_trace;

#[macro_use]
mod named;
#[macro_use]
mod optional_members;

mod comparison;
mod conversation;
mod event;
mod excerpt;
mod invariants;
mod json;
mod patch;
mod payload;
mod record;
mod result_label;
mod server_calls;
mod time;
mod topic_visits;
mod topics;
mod trace;
mod unique_ids;
mod usage;
mod verdict;
mod verify;

pub use comparison::{
    CallComparison, ComparedPart, ComparisonLine, DifferenceReason, MissingCall, NearestCall, ValueDifference,
};
pub use conversation::{
    AgentClock, AgentInterrupt, AgentMessage, AgentToolCall, AwaitingReport, CUT_ARGUMENTS, CallVisibility,
    CallingMessages, ConversationTurn, ReasoningText, ServiceUse, SimulationSpan, ToolResult,
    TracedConversation, TurnItem, TurnOutcome, TurnScope, UNREADABLE_ARGUMENTS, UNREADABLE_REPLY,
    UnseenCalls,
};
pub use event::{Event, FORMAT_VERSION};
pub use excerpt::excerpt_around;
pub use invariants::{
    EventSelector, InvariantOptions, InvariantViolation, OrderConstraint, OrderRule,
    assert_conversation_invariants, check_invariants, order_violations,
};
pub use json::{
    PathStep, RecordedRequest, as_integer, canonical_text, filled_text, first_differences, json_equal,
    nearest_request, plain_text,
};
pub use optional_members::{OptionalContent, present};
pub use patch::{PatchBudget, PatchError, PatchProblem, apply_patch, is_malformed_patch};
pub use payload::*;
pub use record::{EventRecord, ExecutionInfo, ExecutionKind, TimelessRecord};
pub use result_label::{LabelColor, LabelCounts, ResultLabel, format_count, format_first};
pub use server_calls::{InjectedFault, ServerCall, canonical_arguments, is_reported_tool_name};
pub use time::{Millis, TimeOffset};
pub use topics::{GraphError, GraphErrorKind, GraphNode, TopicGraph, TriggerOrder, Visit};
pub use trace::*;
pub use unique_ids::UniqueIds;
pub use usage::{ReportedCost, UsageTotals};
pub use verdict::{AttemptFailure, CheckVerdict, FailureKind, ResponsibleParty, Verdict, VerdictStatus};
pub use verify::*;
