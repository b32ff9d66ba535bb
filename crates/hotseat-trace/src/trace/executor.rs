//! The tasks and workflows that ran for a conversation.

use super::view::pick;
use super::{Typed, View};
use crate::{
    TaskCompleted, TaskFailed, TaskStarted, TokenCreated, TokenStatus, TokenStatusChanged, WorkOrigin,
    WorkflowCompleted, WorkflowFailed, WorkflowStarted,
};

/// Task events. Those of hook workflows are left out, for every turn has them; [`Executor::all_origins`] has all.
#[derive(Debug, Clone)]
pub struct Executor<'a>(pub(super) View<'a>);

/// Workflow events.
#[derive(Debug, Clone)]
pub struct Workflows<'a>(pub(super) View<'a>);

/// Task events, whatever the tasks ran for.
#[derive(Debug, Clone)]
pub struct AllOrigins<'a>(View<'a>);

impl<'a> Executor<'a> {
    /// Tasks of tools that began.
    pub fn task_starts(&self) -> Vec<Typed<'a, TaskStarted>> {
        self.all_origins().task_starts().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// Tasks of tools that ended in order.
    pub fn task_completions(&self) -> Vec<Typed<'a, TaskCompleted>> {
        self.all_origins().task_completions().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// Tasks of tools that failed.
    pub fn task_failures(&self) -> Vec<Typed<'a, TaskFailed>> {
        self.all_origins().task_failures().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// The same for tasks of hook workflows too.
    pub fn all_origins(&self) -> AllOrigins<'a> {
        AllOrigins(self.0.clone())
    }
}

impl<'a> AllOrigins<'a> {
    /// Tasks that began.
    pub fn task_starts(&self) -> Vec<Typed<'a, TaskStarted>> {
        pick!(self.0, TaskStarted)
    }

    /// Tasks that ended in order.
    pub fn task_completions(&self) -> Vec<Typed<'a, TaskCompleted>> {
        pick!(self.0, TaskCompleted)
    }

    /// Tasks that failed.
    pub fn task_failures(&self) -> Vec<Typed<'a, TaskFailed>> {
        pick!(self.0, TaskFailed)
    }
}

impl<'a> Workflows<'a> {
    /// Runs that began.
    pub fn starts(&self) -> Vec<Typed<'a, WorkflowStarted>> {
        pick!(self.0, WorkflowStarted)
    }

    /// Runs that ended in order.
    pub fn completions(&self) -> Vec<Typed<'a, WorkflowCompleted>> {
        pick!(self.0, WorkflowCompleted)
    }

    /// Runs that failed.
    pub fn failures(&self) -> Vec<Typed<'a, WorkflowFailed>> {
        pick!(self.0, WorkflowFailed)
    }

    /// Runs for one purpose.
    pub fn runs(&self, origin: WorkOrigin) -> Vec<Typed<'a, WorkflowStarted>> {
        self.starts().into_iter().filter(|p| p.origin == origin).collect()
    }

    /// The tokens of one run.
    pub fn tokens(&self, run_id: &str) -> Vec<Typed<'a, TokenCreated>> {
        pick!(self.0, TokenCreated).into_iter().filter(|p| &*p.run_id == run_id).collect()
    }

    /// The changes of all tokens of one run.
    pub fn token_changes(&self, run_id: &str) -> Vec<Typed<'a, TokenStatusChanged>> {
        pick!(self.0, TokenStatusChanged).into_iter().filter(|p| &*p.run_id == run_id).collect()
    }

    /// What a token was, one after the other; nothing for one that was never created.
    pub fn token_statuses(&self, token_id: &str) -> Vec<TokenStatus> {
        let created = pick!(self.0, TokenCreated).into_iter().any(|p| &*p.token_id == token_id);
        let changes = pick!(self.0, TokenStatusChanged).into_iter().filter(|p| &*p.token_id == token_id);
        created.then_some(TokenStatus::Pending).into_iter().chain(changes.map(|p| p.to)).collect()
    }
}
