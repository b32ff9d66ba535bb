//! Payloads of the events that only adapters emit: state, runs, interrupts and steps of a protocol.

use std::sync::Arc;

use serde_json::Value;

use super::members::members;
use super::{ErrorInfo, Origin, Payload, ToolInvocation, TurnCompletion, TurnStart};
use crate::TimeOffset;

members! {
    turn {
        /// `state.snapshot`
        StateSnapshot {
            /// The new state.
            state: Value,
        }
        /// `state.delta`
        StateDelta {
            /// A JSON Patch (RFC 6902).
            patch: Value,
            /// True if the patch applied to the state known from earlier events.
            applied?: bool,
            /// The resulting state, if the previous state is unknown from the events. If absent and `applied`
            /// is false, the patch failed and changed nothing.
            state?: Option<Value>,
        }
        /// `agent.run.started`
        AgentRunStarted {
            /// Id of the run.
            run_id: Arc<str>,
            /// The protocol version that the agent announced.
            protocol_version?: Option<String>,
        }
        /// `agent.run.finished`
        AgentRunFinished {
            /// Id of the run.
            run_id: Arc<str>,
            /// `success`, `interrupt`, `cancelled`, or another value sent by the agent.
            outcome: Arc<str>,
            /// Result of the run.
            result?: Option<Value>,
            /// Usage of the run, as reported by the agent.
            usage?: Option<Value>,
            /// Finish reason, as sent by the agent: `stop`, `length`, `tool_calls`, …
            finish_reason?: Option<Arc<str>>,
        }
        /// `agent.awaiting_input`
        AwaitingInput {
            /// True if the agent reports that it waits for user input; `false` is reported too.
            awaiting: bool,
            /// Expected input, in the agent's words.
            hint?: Option<String>,
        }
        /// `agent.run.failed`
        AgentRunFailed {
            /// Error of the run.
            error: ErrorInfo,
        }
        /// `interrupt.raised`
        InterruptRaised {
            /// Id of the interrupt.
            interrupt_id: Arc<str>,
            /// Short name of the reason.
            reason?: Option<String>,
            /// Question shown to the human.
            message?: Option<String>,
            /// Id of the tool call that is paused.
            tool_call_id?: Option<Arc<str>>,
            /// MCP server of the test that asks the user; absent if the agent asks.
            server?: Option<Arc<str>>,
            /// The interrupt as sent by the agent or the server.
            value: Value,
        }
        /// `interrupt.answered`
        InterruptAnswered {
            /// Id of the interrupt.
            interrupt_id: Arc<str>,
            /// `resolved` or `cancelled`; `declined` at MCP servers.
            status: Arc<str>,
            /// The answer; absent when cancelled.
            payload?: Option<Value>,
        }
        /// `step.started`, `step.finished`
        Step {
            /// Name of the step.
            name: String,
        }
        /// `subagent.started`, `subagent.finished`, `subagent.failed`
        Subagent {
            /// Id of the subtask.
            subagent: Arc<str>,
            /// Name of the agent, if known.
            name?: Option<String>,
            /// Result of the subtask.
            result?: Option<Value>,
            /// Error of the subtask.
            error?: Option<ErrorInfo>,
        }
        /// `custom`
        Custom {
            /// Name of the event.
            name: String,
            /// Its value.
            value: Value,
        }
        /// `raw`
        Raw {
            /// The event as received.
            event: Value,
        }
        /// `role.answered`
        RoleAnswered {
            /// Kind of role: `simulator` or `judge`.
            role: Arc<str>,
            /// Name of the role, as used in the case.
            agent: Arc<str>,
            /// The question.
            question: Value,
            /// The answer verbatim; empty if there was none.
            answer: String,
            /// Parsed answer. Absent if it could not be parsed.
            finding?: Option<Value>,
            /// Reason why the answer is not usable.
            error?: Option<String>,
            /// Name of the model that answered, as reported by the provider, if known.
            model?: Option<Arc<str>>,
            /// Cost of the answer: `input_tokens` and `output_tokens` of a model, or the usage that an agent
            /// reports.
            usage?: Option<Value>,
            /// For a judge: number of the vote, from 1.
            vote?: Option<u64>,
            /// For a judge: number of the attempt at this vote, from 1. Above 1 after unusable answers.
            attempt?: Option<u64>,
            /// Console output of a script that answered.
            logs?: Vec<String>,
            /// Duration in microseconds.
            duration_us: u64,
        }
        /// `protocol.note`
        Note {
            /// Note for the user.
            message: String,
            /// Number of the received protocol event in its run, from 1.
            event?: Option<u64>,
        }
    }
}

/// Start of a turn, with the fields an adapter knows.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnStarted {
    /// The turn.
    pub turn_id: Arc<str>,
    /// The conversation; for AG-UI its thread id.
    pub conversation_id: Arc<str>,
    /// Id of the caller: a user, a run or an agent.
    pub caller_id: Arc<str>,
    /// Kind of `caller_id`: `user`, `workflow` or `agent`.
    pub caller_type: Arc<str>,
}

/// Completion of a turn, with the fields an adapter knows.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnCompleted {
    /// The turn.
    pub turn_id: Arc<str>,
}

/// Start of a tool call, with the fields an adapter knows.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInvoked {
    /// The turn it belongs to.
    pub turn_id: Arc<str>,
    /// Id of the call, unique in the trace.
    pub tool_call_id: Arc<str>,
    /// Name of the tool.
    pub tool_name: Arc<str>,
    /// Kind of the tool, if the agent reports it: `task`, `workflow`, `agent`, or `client` for client-side
    /// tools.
    pub target_type: Option<Arc<str>>,
    /// Id of the task, workflow or agent.
    pub target_id: Option<Arc<str>>,
    /// True if the agent continues before the tool returns.
    pub r#async: bool,
    /// Arguments, if already known; otherwise `tool.arguments` follows.
    pub input: Option<Value>,
    /// Start of the call if before the event: the arrival of the snapshot that contains it.
    pub started_us: Option<TimeOffset>,
    /// Source of the event.
    pub origin: Origin,
    /// Sub-agent that made the call; absent for the agent itself.
    pub subagent: Option<Arc<str>>,
    /// Message that makes the call, if the agent reports it.
    pub message_id: Option<Arc<str>>,
}

impl From<TurnStarted> for Payload {
    fn from(known: TurnStarted) -> Payload {
        Payload::TurnStarted(TurnStart {
            turn_id: known.turn_id,
            conversation_id: known.conversation_id,
            caller_id: known.caller_id,
            caller_type: known.caller_type,
            caller_turn_id: None,
            agent_id: None,
        })
    }
}

impl From<TurnCompleted> for Payload {
    fn from(known: TurnCompleted) -> Payload {
        Payload::TurnCompleted(TurnCompletion { turn_id: known.turn_id, issues: None })
    }
}

impl From<ToolInvoked> for Payload {
    fn from(known: ToolInvoked) -> Payload {
        Payload::ToolInvoked(ToolInvocation {
            turn_id: known.turn_id,
            tool_call_id: known.tool_call_id,
            tool_name: known.tool_name,
            target_type: known.target_type,
            target_id: known.target_id,
            r#async: known.r#async,
            input: known.input,
            started_us: known.started_us,
            origin: known.origin,
            subagent: known.subagent,
            message_id: known.message_id,
            invocation_mode: None,
            server: None,
            agent_call_id: None,
        })
    }
}
