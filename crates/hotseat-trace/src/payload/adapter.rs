//! Members of the events that only adapters write: what a protocol tells of state, runs, pauses and steps.

use std::sync::Arc;

use serde_json::Value;

use super::members::members;
use super::{ErrorInfo, Origin, Payload, ToolInvocation, TurnCompletion, TurnStart};
use crate::Offset;

members! {
    turn {
        /// `state.snapshot`
        StateSnapshot {
            /// The whole new state.
            state: Value,
        }
        /// `state.delta`
        StateDelta {
            /// A JSON Patch (RFC 6902).
            patch: Value,
            /// Whether the patch applied to the state that the events before it tell.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            applied: bool,
            /// The state after it, where no event before tells the state that it applied to. Without this and without
            /// `applied` the patch did not apply, which changes nothing.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            state: Option<Value>,
        }
        /// `agent.run.started`
        AgentRunStarted {
            /// Id of the run.
            run_id: Arc<str>,
            /// The protocol version that the agent announced.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            protocol_version: Option<String>,
        }
        /// `agent.run.finished`
        AgentRunFinished {
            /// Id of the run.
            run_id: Arc<str>,
            /// `success`, `interrupt`, `cancelled`, or what the agent said.
            outcome: Arc<str>,
            /// What the run returned.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            result: Option<Value>,
            /// What the run cost, as the agent reports it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            usage: Option<Value>,
            /// Why the reply ends where it does, in the agent's word: `stop`, `length`, `tool_calls`, …
            #[serde(default, skip_serializing_if = "Option::is_none")]
            finish_reason: Option<Arc<str>>,
        }
        /// `agent.awaiting_input`
        AwaitingInput {
            /// Whether the agent says that it waits for an input of the user; `false` is said too.
            awaiting: bool,
            /// What it waits for, in its words.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            hint: Option<String>,
        }
        /// `agent.run.failed`
        AgentRunFailed {
            /// Why.
            error: ErrorInfo,
        }
        /// `interrupt.raised`
        InterruptRaised {
            /// Id of the interrupt.
            interrupt_id: Arc<str>,
            /// Why the agent waits, as a short name.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            reason: Option<String>,
            /// What a person is asked.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            message: Option<String>,
            /// The tool call it holds up.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            tool_call_id: Option<Arc<str>>,
            /// Everything the agent said of it.
            value: Value,
        }
        /// `interrupt.answered`
        InterruptAnswered {
            /// Id of the interrupt.
            interrupt_id: Arc<str>,
            /// `resolved` or `cancelled`.
            status: Arc<str>,
            /// The answer; absent when cancelled.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            payload: Option<Value>,
        }
        /// `step.started`, `step.finished`
        Step {
            /// Name of the step.
            name: String,
        }
        /// `subagent.started`, `subagent.finished`, `subagent.failed`
        Subagent {
            /// Id of this piece of work.
            subagent: Arc<str>,
            /// Name of the agent, where it is said.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            name: Option<String>,
            /// What it returned.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            result: Option<Value>,
            /// Why it failed.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            error: Option<ErrorInfo>,
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
            /// What it was asked as: `simulator` or `judge`.
            role: Arc<str>,
            /// Who was asked, as the case refers to it.
            agent: Arc<str>,
            /// What it was told.
            question: Value,
            /// What it said, to the letter; empty where it said nothing.
            answer: String,
            /// What was read from that; absent where nothing of use could be read.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            finding: Option<Value>,
            /// Why its answer is of no use.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            error: Option<String>,
            /// The model that answered, in the provider's words, where that is known.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            model: Option<Arc<str>>,
            /// What the answer cost: `input_tokens` and `output_tokens` of a model, of an agent what it reports itself.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            usage: Option<Value>,
            /// Of a judge: which of its votes it is, from 1.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            vote: Option<u64>,
            /// Of a judge: how often it was asked for that vote, from 1. More than once where its answers were of no use.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            attempt: Option<u64>,
            /// What a function of a script that answered has said to `console`.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            logs: Vec<String>,
            /// How long it took, in microseconds.
            duration_us: u64,
        }
        /// `protocol.note`
        Note {
            /// What a person should know.
            message: String,
            /// Number of the received protocol event in its run, from 1.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            event: Option<u64>,
        }
    }
}

/// A turn that began, as an adapter knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnStarted {
    /// The turn.
    pub turn_id: Arc<str>,
    /// The conversation; for AG-UI its thread id.
    pub conversation_id: Arc<str>,
    /// Who spoke: the id of a user, a run or an agent.
    pub caller_id: Arc<str>,
    /// What `caller_id` names: `user`, `workflow` or `agent`.
    pub caller_type: Arc<str>,
}

/// A completed turn as an adapter knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnCompleted {
    /// The turn.
    pub turn_id: Arc<str>,
}

/// A tool call that began, as an adapter knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInvoked {
    /// The turn it belongs to.
    pub turn_id: Arc<str>,
    /// Id of the call, unique in the trace.
    pub tool_call_id: Arc<str>,
    /// Name of the tool.
    pub tool_name: Arc<str>,
    /// What the tool is, where the agent says: `task`, `workflow`, `agent`; `client` for client-side tools.
    pub target_type: Option<Arc<str>>,
    /// Which task, workflow or agent it is.
    pub target_id: Option<Arc<str>>,
    /// Whether the agent goes on before the tool has answered.
    pub r#async: bool,
    /// The arguments, where they are known at once; otherwise `tool.arguments` follows.
    pub input: Option<Value>,
    /// When it began, where that was before the event: the arrival of the snapshot that told of it.
    pub started_us: Option<Offset>,
    /// Where it was seen.
    pub origin: Origin,
    /// The sub-agent that called; absent for the agent itself.
    pub subagent: Option<Arc<str>>,
    /// The message that calls, where the agent says.
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
        })
    }
}
