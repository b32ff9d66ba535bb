//! Effects that a conversation requests.

use std::sync::Arc;

use hotseat_model::ModelRequest;
use hotseat_trace::InvocationMode;
use serde_json::Value;

use super::{HookAddress, ModelAddress, OperationAddress, ReplyTo, TurnCaller};
use crate::failure::WorkResult;
use crate::ids::{AgentId, RunId, TaskId, WorkflowId};

/// Work outside the state machine. Its answer is an input with the same address.
///
/// `at` is the address for the answer, and `agent` the one whose memory the work uses, or the called one. The `depth` of a
/// call is the number of nested calls of agents, including this one.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the documentation of the type names the members")]
pub enum ConversationEffect {
    /// Run a hook workflow.
    RunHook { at: HookAddress, agent: AgentId, workflow: WorkflowId, input: Arc<Value> },
    /// Call a model.
    CallModel { at: ModelAddress, profile: Arc<str>, request: Arc<ModelRequest> },
    /// Run a task.
    RunTask { at: OperationAddress, agent: AgentId, task: TaskId, input: Arc<Value> },
    /// Run a workflow.
    RunWorkflow { at: OperationAddress, agent: AgentId, workflow: WorkflowId, input: Arc<Value> },
    /// Call another agent.
    RunAgent {
        at: OperationAddress,
        agent: AgentId,
        mode: InvocationMode,
        caller: TurnCaller,
        input: Value,
        depth: u32,
    },
    /// Let the client execute a tool. There is no time limit; the answer is
    /// [`ConversationInput::OperationDone`](super::ConversationInput).
    AskClient { at: OperationAddress, tool: String, input: Value },
    /// Ask a human to approve a tool call. The answer is [`ConversationInput::Approval`](super::ConversationInput).
    AskApproval { at: OperationAddress, tool: String, input: Value, message: String },
    /// Withdraw a client call or an approval.
    Withdraw { at: OperationAddress },
    /// Cancel a run of a workflow or task, or a conversation with this id.
    CancelRun { run: RunId },
    /// Cancel a model call.
    CancelModel { at: ModelAddress },
    /// Reply to the caller of a turn.
    Reply { to: ReplyTo, outcome: WorkResult },
}

/// Identity of an effect; a conversation requests each one once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKey {
    /// Hook workflow.
    Hook(HookAddress),
    /// Model call.
    Model(ModelAddress),
    /// An operation.
    Operation(OperationAddress),
    /// Approval.
    Approval(OperationAddress),
    /// Withdrawal; has no answer.
    Withdraw(OperationAddress),
    /// Reply to a caller; has no answer.
    Reply(ReplyTo),
    /// Cancellation of a run; has no answer.
    CancelRun(RunId),
    /// Cancellation of a model call; has no answer.
    CancelModel(ModelAddress),
}

impl ConversationEffect {
    /// Returns the identity of the effect.
    pub fn key(&self) -> EffectKey {
        match self {
            ConversationEffect::RunHook { at, .. } => EffectKey::Hook(at.clone()),
            ConversationEffect::CallModel { at, .. } => EffectKey::Model(at.clone()),
            ConversationEffect::RunTask { at, .. }
            | ConversationEffect::RunWorkflow { at, .. }
            | ConversationEffect::RunAgent { at, .. }
            | ConversationEffect::AskClient { at, .. } => EffectKey::Operation(at.clone()),
            ConversationEffect::AskApproval { at, .. } => EffectKey::Approval(at.clone()),
            ConversationEffect::Withdraw { at } => EffectKey::Withdraw(at.clone()),
            ConversationEffect::CancelRun { run } => EffectKey::CancelRun(run.clone()),
            ConversationEffect::CancelModel { at } => EffectKey::CancelModel(at.clone()),
            ConversationEffect::Reply { to, .. } => EffectKey::Reply(to.clone()),
        }
    }
}
