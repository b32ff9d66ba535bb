//! Tasks and workflows as state machines without I/O.

mod join;
mod route;
mod scope;
mod task_run;
mod token;
mod workflow_run;

use std::sync::Arc;

use hotseat_trace::{Payload, WorkOrigin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use task_run::{TaskNeed, TaskRun};
pub use token::{WorkflowBranch, WorkflowToken};
pub use workflow_run::WorkflowRun;

use crate::definition::MemoryAction;
use crate::failure::WorkResult;
use crate::ids::{AgentId, ConversationId, RunId, TokenId, TurnId, WorkflowId};

/// Context of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkContext {
    /// The id of the run.
    pub run: RunId,
    /// The turn that it works for.
    pub turn: Option<TurnId>,
    /// The agent whose memory is used.
    pub agent: AgentId,
    /// The purpose of the run.
    pub origin: WorkOrigin,
    /// Attempt of the caller, from 1.
    pub attempt: u32,
    /// Number of nested agent calls that lead to this run.
    pub depth: u32,
}

/// Input of a run.
///
/// `token` is the token that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "members are named as their types")]
pub enum WorkInput {
    /// The run starts.
    Start,
    /// A requested wait is over.
    Waited { token: TokenId },
    /// A requested answer has arrived.
    Answered { token: TokenId, result: WorkResult },
    /// A join reached its time limit.
    JoinLate { join: String },
}

/// Effect that a run requests.
///
/// `token` is the token that waits for the answer.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "members are named as their types")]
pub enum WorkEffect {
    /// Notify the run after a delay.
    Wait { token: TokenId, millis: u64 },
    /// Access the agent's memory.
    Memory { token: TokenId, action: MemoryAction, input: Value },
    /// Run another workflow.
    Subworkflow { token: TokenId, workflow: WorkflowId, input: Arc<Value> },
    /// Call an agent in a separate conversation.
    Agent { token: TokenId, conversation: ConversationId, agent: AgentId, input: Value },
    /// Notify the run when a join reaches its time limit.
    JoinTimer { join: String, millis: u64 },
    /// Cancel the workflow that a token started.
    CancelSubworkflow { token: TokenId },
    /// Cancel a conversation that a token opened.
    CancelAgent { conversation: ConversationId },
    /// Report the result of the run. This is the last effect.
    Done(WorkResult),
}

/// Result of one input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkStep {
    /// Events for the trace.
    pub events: Vec<Payload>,
    /// Effects to start.
    pub effects: Vec<WorkEffect>,
}

/// Run of a task or a workflow.
#[derive(Debug, Clone)]
pub enum WorkRun {
    /// A separate task.
    Task(Box<TaskRun>),
    /// A workflow.
    Workflow(Box<WorkflowRun>),
}

impl WorkRun {
    /// Creates the run of a separate task.
    pub fn task(
        context: WorkContext,
        task: Arc<crate::definition::TaskDefinition>,
        input: Arc<Value>,
    ) -> WorkRun {
        WorkRun::Task(Box::new(TaskRun::new(context, task, input)))
    }

    /// Creates the run of a workflow.
    pub fn workflow(
        context: WorkContext,
        id: WorkflowId,
        workflow: Arc<crate::definition::WorkflowDefinition>,
        input: Arc<Value>,
    ) -> WorkRun {
        WorkRun::Workflow(Box::new(WorkflowRun::new(context, id, workflow, input)))
    }

    /// Handles one input.
    pub fn handle(&mut self, input: &WorkInput) -> WorkStep {
        let mut step = WorkStep::default();
        match self {
            WorkRun::Task(run) => {
                let need = match input {
                    WorkInput::Start => run.start(&mut step.events),
                    WorkInput::Waited { .. } => run.resume_after_wait(&mut step.events),
                    WorkInput::Answered { result, .. } => {
                        run.resume_with_answer(result.clone(), &mut step.events)
                    }
                    WorkInput::JoinLate { .. } => return step,
                };
                step.effects.push(need.into_effect(TokenId(0)));
            }
            WorkRun::Workflow(run) => run.handle(input, &mut step),
        }
        step
    }
}
