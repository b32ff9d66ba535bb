//! What agents, tools, tasks and workflows are, before anything runs.

mod action;
pub(crate) mod definitions;
mod limits;
mod persona;
pub mod schema;
mod task;
mod tool;
mod workflow;

pub use action::{Action, Assemble, Context, Custom, Fail, Memory, Merge, Mock, ask, custom, echo, fail};
pub use action::{
    assemble, context, memory_delete, memory_list, memory_read, memory_search, memory_write, mock,
};
pub use definitions::{Agent, DefinitionError, Definitions};
pub use limits::{Limits, Retry};
pub use persona::{ContextPolicy, ModelProfile, Persona, persona};
pub use task::{Backoff, OnFailure, Step, StepBranch, StepCondition, Task, TaskRetry, step, task};
pub use tool::{Approval, Reference, Target, Tool, ToolRetry, tool};
pub use workflow::{
    FanIn, ForEach, Join, Merging, Node, NodeWork, OnJoinTimeout, Transition, Workflow, node, transition,
    workflow,
};
