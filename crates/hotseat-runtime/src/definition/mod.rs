//! Definitions of agents, tools, tasks and workflows, independent of execution.

mod action;
pub(crate) mod definitions;
mod limits;
mod persona;
pub mod schema;
mod task;
mod tool;
mod workflow;

pub use action::{
    AssembleAction, ContextAction, CustomAction, FailAction, MemberMerge, MemoryAction, MockAction,
    StepAction, ask, assemble, context, custom, echo, fail, memory, mock,
};
pub use definitions::{AgentDefinition, DefinitionError, Definitions};
pub use limits::{AttemptLimits, RuntimeLimits};
pub use persona::{ContextPolicy, ModelProfile, Persona, persona};
pub use task::{
    BackoffGrowth, StepBranch, StepCondition, StepDefinition, StepFailurePolicy, TaskDefinition, TaskRetry,
    step, task,
};
pub use tool::{ApprovalPolicy, DefinitionRef, ToolDefinition, ToolRetry, ToolTarget, tool};
pub use workflow::{
    BranchJoin, BranchMerge, BranchPerItem, JoinRule, NodeTransition, NodeWork, OnJoinTimeout,
    WorkflowDefinition, WorkflowNode, node, transition, workflow,
};
