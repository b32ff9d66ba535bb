//! Payloads of workflow, token, task, step and action events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ErrorInfo;
use super::members::members;

/// Purpose of a workflow or task run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkOrigin {
    /// A tool call of an agent.
    Tool,
    /// A node of a workflow.
    Workflow,
    /// Building the request of the next model call.
    ContextAssembly,
    /// Saving memories of a turn.
    MemoryExtraction,
}

members! {
    loose {
        /// `executor.task.started`
        TaskStarted {
            /// The task.
            task_id: Arc<str>,
            /// Run id: a tool call, or a token of a workflow run.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// Number of steps.
            step_count: u32,
            /// Input of the task.
            input: Arc<Value>,
        }
        /// `executor.task.completed`
        TaskCompleted {
            /// The task.
            task_id: Arc<str>,
            /// Run id.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// Output of the task.
            output: Arc<Value>,
        }
        /// `executor.task.failed`
        TaskFailed {
            /// The task.
            task_id: Arc<str>,
            /// Run id.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// Error of the task.
            error: ErrorInfo,
        }
        /// `executor.step.started`, `executor.step.completed`
        TaskStep {
            /// Run id of the task.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// The step.
            step_ref: Arc<str>,
            /// Index of the step, from 0.
            ordinal: u32,
        }
        /// `executor.action.started`
        ActionStarted {
            /// Run id of the task.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// The step.
            step_ref: Arc<str>,
            /// Kind of action.
            kind: Arc<str>,
            /// Input of the action.
            input: Arc<Value>,
        }
        /// `executor.action.completed`
        ActionCompleted {
            /// Run id of the task.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// The step.
            step_ref: Arc<str>,
            /// Output of the action.
            output: Arc<Value>,
        }
        /// `executor.action.failed`
        ActionFailed {
            /// Run id of the task.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// The step.
            step_ref: Arc<str>,
            /// Error of the action.
            error: ErrorInfo,
        }
        /// `workflow.started`
        WorkflowStarted {
            /// The workflow.
            workflow_id: Arc<str>,
            /// Run id.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// Input of the workflow.
            input: Arc<Value>,
        }
        /// `workflow.completed`
        WorkflowCompleted {
            /// The workflow.
            workflow_id: Arc<str>,
            /// Run id.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// Output of the workflow.
            output: Arc<Value>,
        }
        /// `workflow.failed`
        WorkflowFailed {
            /// The workflow.
            workflow_id: Arc<str>,
            /// Run id.
            run_id: Arc<str>,
            /// Purpose of the run.
            origin: WorkOrigin,
            /// Error of the workflow.
            error: ErrorInfo,
        }
        /// `operation.tokens.created`
        TokenCreated {
            /// The workflow run.
            run_id: Arc<str>,
            /// The token.
            token_id: Arc<str>,
            /// Node of the token.
            node_ref: Arc<str>,
            /// Parent token.
            parent_token_id?: Option<Arc<str>>,
            /// Path through nested branches.
            path_id: Arc<str>,
            /// Group of sibling branches.
            sibling_group?: Option<Arc<str>>,
            /// Index among its siblings, from 0.
            branch_index: u32,
            /// Number of siblings, including itself.
            branch_total: u32,
        }
        /// `operation.tokens.status_changed`
        TokenStatusChanged {
            /// The workflow run.
            run_id: Arc<str>,
            /// The token.
            token_id: Arc<str>,
            /// Previous status.
            from: TokenStatus,
            /// New status.
            to: TokenStatus,
        }
    }
}

/// Status of a workflow token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenStatus {
    /// Created.
    Pending,
    /// The work was dispatched.
    Dispatched,
    /// The work is running.
    Executing,
    /// The token waits for its siblings.
    WaitingForSiblings,
    /// The token waits for a workflow it started.
    WaitingForSubworkflow,
    /// The token waits for an agent it called.
    WaitingForAgent,
    /// Done.
    Completed,
    /// The work failed.
    Failed,
    /// The siblings did not arrive in time.
    TimedOut,
    /// The token was cancelled because the run was already decided.
    Cancelled,
}

impl TokenStatus {
    /// Returns true if the status is final.
    pub fn is_terminal(self) -> bool {
        match self {
            TokenStatus::Completed | TokenStatus::Failed | TokenStatus::TimedOut | TokenStatus::Cancelled => {
                true
            }
            TokenStatus::Pending
            | TokenStatus::Dispatched
            | TokenStatus::Executing
            | TokenStatus::WaitingForSiblings
            | TokenStatus::WaitingForSubworkflow
            | TokenStatus::WaitingForAgent => false,
        }
    }
}
