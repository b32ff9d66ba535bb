//! What a conversation asks of the world.

use std::sync::Arc;

use hotseat_model::Request;
use hotseat_trace::InvocationMode;
use serde_json::Value;

use super::{Caller, HookAddress, ModelAddress, OperationAddress, ReplyTo};
use crate::failure::Failure;
use crate::ids::{AgentId, RunId, TaskId, WorkflowId};

/// Something to be done outside; its answer comes back as an input with the same address.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Run a hook workflow.
    RunHook {
        /// Where the answer goes.
        at: HookAddress,
        /// Whose memory it uses.
        agent: AgentId,
        /// The workflow.
        workflow: WorkflowId,
        /// What it is given.
        input: Value,
    },
    /// Ask a model.
    CallModel {
        /// Where the answer goes.
        at: ModelAddress,
        /// Which model.
        profile: Arc<str>,
        /// What.
        request: Box<Request>,
    },
    /// Run a task.
    RunTask {
        /// Where the answer goes.
        at: OperationAddress,
        /// Whose memory it uses.
        agent: AgentId,
        /// The task.
        task: TaskId,
        /// What it is given.
        input: Value,
    },
    /// Run a workflow.
    RunWorkflow {
        /// Where the answer goes.
        at: OperationAddress,
        /// Whose memory it uses.
        agent: AgentId,
        /// The workflow.
        workflow: WorkflowId,
        /// What it is given.
        input: Value,
    },
    /// Ask another agent.
    RunAgent {
        /// Where the answer goes.
        at: OperationAddress,
        /// The agent.
        agent: AgentId,
        /// How it takes part.
        mode: InvocationMode,
        /// Who asks.
        caller: Caller,
        /// What it is asked.
        input: Value,
        /// How many agents have called each other, this call included.
        depth: u32,
    },
    /// Let the client carry out a tool. It may take its time; the answer is [`Input::OperationDone`](super::Input).
    AskClient {
        /// Where the answer goes.
        at: OperationAddress,
        /// The tool.
        tool: String,
        /// What it is given.
        input: Value,
    },
    /// Ask a person whether a tool may be called. The answer is [`Input::Approval`](super::Input).
    AskApproval {
        /// Where the answer goes.
        at: OperationAddress,
        /// The tool.
        tool: String,
        /// What the model gave.
        input: Value,
        /// The question.
        message: String,
    },
    /// A client or a person no longer needs to answer.
    TakeBack {
        /// What was asked.
        at: OperationAddress,
    },
    /// Stop a run of a workflow or task, or a conversation with that id.
    CancelRun {
        /// Which.
        run: RunId,
    },
    /// Stop asking a model.
    CancelModel {
        /// What.
        at: ModelAddress,
    },
    /// Answer whoever started a turn.
    Reply {
        /// Who.
        to: ReplyTo,
        /// What.
        outcome: Result<Value, Failure>,
    },
}

/// What an effect waits for; a conversation asks for each of them once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKey {
    /// A hook.
    Hook(HookAddress),
    /// A model.
    Model(ModelAddress),
    /// An operation.
    Operation(OperationAddress),
    /// A person.
    Approval(OperationAddress),
    /// Nothing: a question is taken back.
    TakeBack(OperationAddress),
    /// Nothing: it is said once.
    Reply(ReplyTo),
    /// Nothing: a run is stopped.
    CancelRun(RunId),
    /// Nothing: a model call is stopped.
    CancelModel(ModelAddress),
}

impl Effect {
    /// What it waits for.
    pub fn key(&self) -> EffectKey {
        match self {
            Effect::RunHook { at, .. } => EffectKey::Hook(at.clone()),
            Effect::CallModel { at, .. } => EffectKey::Model(at.clone()),
            Effect::RunTask { at, .. }
            | Effect::RunWorkflow { at, .. }
            | Effect::RunAgent { at, .. }
            | Effect::AskClient { at, .. } => EffectKey::Operation(at.clone()),
            Effect::AskApproval { at, .. } => EffectKey::Approval(at.clone()),
            Effect::TakeBack { at } => EffectKey::TakeBack(at.clone()),
            Effect::CancelRun { run } => EffectKey::CancelRun(run.clone()),
            Effect::CancelModel { at } => EffectKey::CancelModel(at.clone()),
            Effect::Reply { to, .. } => EffectKey::Reply(to.clone()),
        }
    }
}
