//! Tasks and workflows as machines without I/O, like conversations.

mod join;
mod route;
mod task_run;
mod token;
mod workflow_run;

use std::sync::Arc;

use hotseat_trace::{Payload, WorkOrigin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use task_run::{Need, TaskRun};
pub use token::{Branch, Token, TokenId};
pub use workflow_run::WorkflowRun;

use crate::definition::{Definitions, Memory};
use crate::failure::Failure;
use crate::ids::{AgentId, ConversationId, RunId, TurnId, WorkflowId};

/// What a run is for and what it depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkContext {
    /// The run.
    pub run: RunId,
    /// The turn it is for.
    pub turn: Option<TurnId>,
    /// Whose memory it uses.
    pub agent: AgentId,
    /// What it is for.
    pub origin: WorkOrigin,
    /// The attempt of whoever started it, from 1.
    pub attempt: u32,
    /// How many agents have called each other on the way here.
    pub depth: u32,
}

/// Something that has happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkInput {
    /// It begins.
    Start,
    /// The time it waited for has passed.
    Waited {
        /// The token that waited.
        token: TokenId,
    },
    /// What it asked for is there.
    Answered {
        /// The token that asked.
        token: TokenId,
        /// What came.
        result: Result<Value, Failure>,
    },
    /// Branches did not come together in time.
    JoinLate {
        /// Where they come together.
        join: String,
    },
}

/// Something a run asks of the world.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkEffect {
    /// To be told when so many milliseconds have passed.
    Wait {
        /// The token that waits.
        token: TokenId,
        /// How long.
        millis: u64,
    },
    /// To use the agent's memory.
    Memory {
        /// The token that asks.
        token: TokenId,
        /// How.
        action: Memory,
        /// With what.
        input: Value,
    },
    /// To run another workflow.
    Subworkflow {
        /// The token that asks.
        token: TokenId,
        /// Which.
        workflow: WorkflowId,
        /// With what.
        input: Value,
    },
    /// To ask an agent in a conversation of its own.
    Agent {
        /// The token that asks.
        token: TokenId,
        /// The conversation.
        conversation: ConversationId,
        /// Which agent.
        agent: AgentId,
        /// What.
        input: Value,
    },
    /// To be told when branches must have come together.
    JoinTimer {
        /// Where they come together.
        join: String,
        /// How long.
        millis: u64,
    },
    /// To stop a workflow that a token has started.
    CancelSubworkflow {
        /// The token.
        token: TokenId,
    },
    /// To stop a conversation that a token has opened.
    CancelAgent {
        /// The conversation.
        conversation: ConversationId,
    },
    /// To pass on what the run came to. It is the last.
    Done(Result<Value, Failure>),
}

/// What came of one input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkStep {
    /// What the trace gets.
    pub events: Vec<Payload>,
    /// What the world is asked to do.
    pub effects: Vec<WorkEffect>,
}

/// A run of a task or of a workflow.
#[derive(Debug, Clone)]
pub enum Work {
    /// A task alone.
    Task(Box<TaskRun>),
    /// A workflow.
    Workflow(Box<WorkflowRun>),
}

impl Work {
    /// A run of a task alone.
    pub fn task(context: WorkContext, task: Arc<crate::definition::Task>, input: Value) -> Work {
        Work::Task(Box::new(TaskRun::new(context, task, input)))
    }

    /// A run of a workflow.
    pub fn workflow(context: WorkContext, workflow: Arc<crate::definition::Workflow>, input: Value) -> Work {
        Work::Workflow(Box::new(WorkflowRun::new(context, workflow, input)))
    }

    /// Takes what has happened.
    pub fn handle(&mut self, definitions: &Definitions, input: &WorkInput) -> WorkStep {
        let mut step = WorkStep::default();
        match self {
            Work::Task(run) => {
                let need = match input {
                    WorkInput::Start => run.start(&mut step.events),
                    WorkInput::Waited { .. } => run.waited(&mut step.events),
                    WorkInput::Answered { result, .. } => run.answered(result.clone(), &mut step.events),
                    WorkInput::JoinLate { .. } => return step,
                };
                step.effects.push(need.effect(TokenId(0)));
            }
            Work::Workflow(run) => run.handle(definitions, input, &mut step),
        }
        step
    }
}
