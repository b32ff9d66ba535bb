//! Events of tasks and workflows.

use super::view::{pick, picks};
use super::{ConversationView, TypedRecord};
use crate::{
    TaskCompleted, TaskFailed, TaskStarted, TokenCreated, TokenStatus, TokenStatusChanged, WorkOrigin,
    WorkflowCompleted, WorkflowFailed, WorkflowStarted,
};

/// Task events of tool calls. Tasks of hook workflows run in every turn and are excluded; see
/// [`ToolTaskEvents::all_origins`].
#[derive(Debug, Clone)]
pub struct ToolTaskEvents<'a>(pub(super) ConversationView<'a>);

/// Workflow events.
#[derive(Debug, Clone)]
pub struct WorkflowEvents<'a>(pub(super) ConversationView<'a>);

/// Task events of all origins.
#[derive(Debug, Clone)]
pub struct AllTaskEvents<'a>(ConversationView<'a>);

impl<'a> ToolTaskEvents<'a> {
    /// Returns the started tasks of tool calls.
    pub fn task_starts(&self) -> Vec<TypedRecord<'a, TaskStarted>> {
        self.all_origins().task_starts().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// Returns the completed tasks of tool calls.
    pub fn task_completions(&self) -> Vec<TypedRecord<'a, TaskCompleted>> {
        self.all_origins().task_completions().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// Returns the failed tasks of tool calls.
    pub fn task_failures(&self) -> Vec<TypedRecord<'a, TaskFailed>> {
        self.all_origins().task_failures().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// Returns task events of all origins, including hook workflows.
    pub fn all_origins(&self) -> AllTaskEvents<'a> {
        AllTaskEvents(self.0.clone())
    }
}

impl<'a> AllTaskEvents<'a> {
    picks! {
        /// Returns the started tasks.
        task_starts: TaskStarted = TaskStarted;
        /// Returns the completed tasks.
        task_completions: TaskCompleted = TaskCompleted;
        /// Returns the failed tasks.
        task_failures: TaskFailed = TaskFailed;
    }
}

impl<'a> WorkflowEvents<'a> {
    picks! {
        /// Returns the started runs.
        starts: WorkflowStarted = WorkflowStarted;
        /// Returns the completed runs.
        completions: WorkflowCompleted = WorkflowCompleted;
        /// Returns the failed runs.
        failures: WorkflowFailed = WorkflowFailed;
    }

    /// Returns the started runs of one origin.
    pub fn runs(&self, origin: WorkOrigin) -> Vec<TypedRecord<'a, WorkflowStarted>> {
        self.starts().into_iter().filter(|p| p.origin == origin).collect()
    }

    /// Returns the tokens of a run.
    pub fn tokens(&self, run_id: &str) -> Vec<TypedRecord<'a, TokenCreated>> {
        pick!(self.0, TokenCreated).into_iter().filter(|p| &*p.run_id == run_id).collect()
    }

    /// Returns the status changes of all tokens of a run.
    pub fn token_changes(&self, run_id: &str) -> Vec<TypedRecord<'a, TokenStatusChanged>> {
        pick!(self.0, TokenStatusChanged).into_iter().filter(|p| &*p.run_id == run_id).collect()
    }

    /// Returns the statuses of a token in order; empty if it was never created.
    pub fn token_statuses(&self, token_id: &str) -> Vec<TokenStatus> {
        let created = pick!(self.0, TokenCreated).into_iter().any(|p| &*p.token_id == token_id);
        let changes = pick!(self.0, TokenStatusChanged).into_iter().filter(|p| &*p.token_id == token_id);
        created.then_some(TokenStatus::Pending).into_iter().chain(changes.map(|p| p.to)).collect()
    }
}
