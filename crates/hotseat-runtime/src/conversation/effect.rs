//! Effects that a conversation requests.

use std::sync::Arc;

use hotseat_model::ModelRequest;
use hotseat_trace::InvocationMode;
use serde_json::Value;

use super::{HookAddress, ModelAddress, OperationAddress, ReplyTo, TurnCaller};
use crate::failure::WorkResult;
use crate::ids::{AgentId, RunId, TaskId, WorkflowId};

/// Work outside the state machine. Its answer is an input with the same address.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationEffect {
    /// Run a hook workflow.
    RunHook {
        /// Address for the answer.
        at: HookAddress,
        /// Agent whose memory is used.
        agent: AgentId,
        /// The workflow.
        workflow: WorkflowId,
        /// Input of the workflow.
        input: Arc<Value>,
    },
    /// Call a model.
    CallModel {
        /// Address for the answer.
        at: ModelAddress,
        /// Model profile.
        profile: Arc<str>,
        /// The request.
        request: Arc<ModelRequest>,
    },
    /// Run a task.
    RunTask {
        /// Address for the answer.
        at: OperationAddress,
        /// Agent whose memory is used.
        agent: AgentId,
        /// The task.
        task: TaskId,
        /// Input of the task.
        input: Arc<Value>,
    },
    /// Run a workflow.
    RunWorkflow {
        /// Address for the answer.
        at: OperationAddress,
        /// Agent whose memory is used.
        agent: AgentId,
        /// The workflow.
        workflow: WorkflowId,
        /// Input of the workflow.
        input: Arc<Value>,
    },
    /// Call another agent.
    RunAgent {
        /// Address for the answer.
        at: OperationAddress,
        /// The agent.
        agent: AgentId,
        /// Invocation mode.
        mode: InvocationMode,
        /// The caller.
        caller: TurnCaller,
        /// Input of the call.
        input: Value,
        /// Number of nested agent calls, including this one.
        depth: u32,
    },
    /// Let the client execute a tool. There is no time limit; the answer is
    /// [`ConversationInput::OperationDone`](super::ConversationInput).
    AskClient {
        /// Address for the answer.
        at: OperationAddress,
        /// The tool.
        tool: String,
        /// Input of the tool.
        input: Value,
    },
    /// Ask a human to approve a tool call. The answer is [`ConversationInput::Approval`](super::ConversationInput).
    AskApproval {
        /// Address for the answer.
        at: OperationAddress,
        /// The tool.
        tool: String,
        /// Input from the model.
        input: Value,
        /// The question.
        message: String,
    },
    /// Withdraw a client call or an approval.
    Withdraw {
        /// Address of the call.
        at: OperationAddress,
    },
    /// Cancel a run of a workflow or task, or a conversation with this id.
    CancelRun {
        /// The id of the run.
        run: RunId,
    },
    /// Cancel a model call.
    CancelModel {
        /// Address of the model call.
        at: ModelAddress,
    },
    /// Reply to the caller of a turn.
    Reply {
        /// Address of the caller.
        to: ReplyTo,
        /// Result of the turn.
        outcome: WorkResult,
    },
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
