//! Members of events about workflows, tasks and what they do.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ErrorInfo;
use super::members::members;

/// What a workflow or task runs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkOrigin {
    /// An agent called a tool.
    Tool,
    /// A node of a workflow.
    Workflow,
    /// The request for the next model call.
    ContextAssembly,
    /// Keeping what a turn has brought.
    MemoryExtraction,
}

members! {
    loose {
        /// `executor.task.started`
        TaskStarted {
            /// The task.
            task_id: Arc<str>,
            /// This run of it: a tool call, or a token of a workflow run.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// How many steps it has.
            step_count: u32,
            /// What it was given.
            input: Value,
        }
        /// `executor.task.completed`
        TaskCompleted {
            /// The task.
            task_id: Arc<str>,
            /// This run of it.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// What it returned.
            output: Value,
        }
        /// `executor.task.failed`
        TaskFailed {
            /// The task.
            task_id: Arc<str>,
            /// This run of it.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// Why.
            error: ErrorInfo,
        }
        /// `executor.step.started`, `executor.step.completed`
        TaskStep {
            /// This run of the task.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// The step.
            step_ref: Arc<str>,
            /// Its place, from 0.
            ordinal: u32,
        }
        /// `executor.action.started`
        ActionStarted {
            /// This run of the task.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// The step.
            step_ref: Arc<str>,
            /// What kind of action it is.
            kind: Arc<str>,
            /// What it was given.
            input: Value,
        }
        /// `executor.action.completed`
        ActionCompleted {
            /// This run of the task.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// The step.
            step_ref: Arc<str>,
            /// What it returned.
            output: Value,
        }
        /// `executor.action.failed`
        ActionFailed {
            /// This run of the task.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// The step.
            step_ref: Arc<str>,
            /// Why.
            error: ErrorInfo,
        }
        /// `workflow.started`
        WorkflowStarted {
            /// The workflow.
            workflow_id: Arc<str>,
            /// This run of it.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// What it was given.
            input: Value,
        }
        /// `workflow.completed`
        WorkflowCompleted {
            /// The workflow.
            workflow_id: Arc<str>,
            /// This run of it.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// What it returned.
            output: Value,
        }
        /// `workflow.failed`
        WorkflowFailed {
            /// The workflow.
            workflow_id: Arc<str>,
            /// This run of it.
            run_id: Arc<str>,
            /// What it runs for.
            origin: WorkOrigin,
            /// Why.
            error: ErrorInfo,
        }
        /// `operation.tokens.created`
        TokenCreated {
            /// The workflow run.
            run_id: Arc<str>,
            /// The token.
            token_id: Arc<str>,
            /// The node it stands at.
            node_ref: Arc<str>,
            /// The token it came from.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            parent_token_id: Option<Arc<str>>,
            /// Where it stands among nested branches.
            path_id: Arc<str>,
            /// The group of branches it is one of.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            sibling_group: Option<Arc<str>>,
            /// Its place among its siblings, from 0.
            branch_index: u32,
            /// How many siblings there are, itself included.
            branch_total: u32,
        }
        /// `operation.tokens.status_changed`
        TokenStatusChanged {
            /// The workflow run.
            run_id: Arc<str>,
            /// The token.
            token_id: Arc<str>,
            /// What it was.
            from: TokenStatus,
            /// What it is.
            to: TokenStatus,
        }
    }
}

/// Where a token of a workflow run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenStatus {
    /// Created.
    Pending,
    /// Its work was handed over.
    Dispatched,
    /// Its work is being done.
    Executing,
    /// It waits until its siblings arrive.
    WaitingForSiblings,
    /// It waits for a workflow that it started.
    WaitingForSubworkflow,
    /// It waits for an agent that it asked.
    WaitingForAgent,
    /// Done.
    Completed,
    /// Its work failed.
    Failed,
    /// Its siblings did not arrive in time.
    TimedOut,
    /// Given up because something else decided the run.
    Cancelled,
}

impl TokenStatus {
    /// Whether nothing can happen to the token any more.
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
