//! A running task or workflow, and the recipient of its result.

use std::sync::Arc;

use hotseat_trace::ExecutionInfo;

use crate::conversation::{HookAddress, OperationAddress};
use crate::definition::{TaskDefinition, WorkflowDefinition};
use crate::ids::{ConversationId, RunId, TokenId, WorkflowId};
use crate::work::{WorkContext, WorkRun};

/// Running task or workflow.
#[derive(Debug, Clone)]
pub(super) struct WorkExecution {
    pub(super) machine: WorkRun,
    pub(super) context: WorkContext,
    pub(super) execution: ExecutionInfo,
    pub(super) conversation: ConversationId,
    pub(super) answer: ResultRecipient,
}

/// Definition that a run executes.
pub(super) enum WorkDefinition {
    Task(Arc<TaskDefinition>),
    Workflow(WorkflowId, Arc<WorkflowDefinition>),
}

/// Recipient of a run's result.
#[derive(Debug, Clone)]
pub(super) enum ResultRecipient {
    Hook(HookAddress),
    Operation(OperationAddress),
    Token(RunId, TokenId),
}
