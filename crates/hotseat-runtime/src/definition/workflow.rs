//! Workflows: graphs of tasks.

use std::sync::Arc;

use hotseat_model::setters;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DefinitionRef, Persona, TaskDefinition};
use crate::expression::Expression;

/// Graph of tasks, workflows and agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowDefinition {
    /// The name. The id is its lower-case form.
    pub name: String,
    /// JSON Schema of the input; `None` accepts anything.
    pub input_schema: Option<Value>,
    /// JSON Schema of the output; `None` accepts anything.
    pub output_schema: Option<Value>,
    /// Result of the workflow, by path; empty means the whole `output`.
    pub output_mapping: Vec<(String, Expression)>,
    /// Name of the first node; `None` selects the first one in `nodes`.
    pub initial: Option<String>,
    /// The nodes.
    pub nodes: Vec<WorkflowNode>,
    /// The transitions. Without transitions, the nodes run in order.
    pub transitions: Vec<NodeTransition>,
}

/// Node of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowNode {
    /// Name of the node, unique in the workflow.
    pub name: Arc<str>,
    /// Work done at the node.
    pub work: NodeWork,
    /// Input of the work, by member, `*` for all of it; empty means the workflow's input.
    pub input_mapping: Vec<(String, Expression)>,
    /// Paths for the `result` of the work; empty means `output`.
    pub output_mapping: Vec<(String, Expression)>,
}

/// Work done at a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeWork {
    /// A task.
    Task(Arc<TaskDefinition>),
    /// Another workflow.
    Workflow(DefinitionRef<WorkflowDefinition>),
    /// An agent, called in a separate conversation; the result contains its answer as `response`.
    Agent(DefinitionRef<Persona>),
}

/// Transition between two nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTransition {
    /// Name of the transition; required for counting.
    pub name: String,
    /// Source node.
    pub from: String,
    /// Target node.
    pub to: String,
    /// Priority. Transitions with the lowest number are checked first; all matching ones of that number are
    /// taken.
    pub priority: u32,
    /// Condition; `None` means always.
    pub condition: Option<Expression>,
    /// Number of branches to start.
    pub spawn_count: u32,
    /// Starts one branch for each item of a list.
    pub for_each: Option<BranchPerItem>,
    /// Name of the group of branches; required for joining them.
    pub sibling_group: Option<String>,
    /// Join of branches before the target node.
    pub fan_in: Option<BranchJoin>,
    /// Maximum number of times the transition is taken along one path.
    pub max_iterations: Option<u32>,
}

/// Starts one branch for each item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchPerItem {
    /// The list.
    pub collection: Expression,
    /// Name of the item in the branch.
    pub item: String,
}

/// Join of branches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchJoin {
    /// Group of the joined branches.
    pub sibling_group: String,
    /// Number of branches to wait for.
    pub join: JoinRule,
    /// Combination of the branch outputs.
    pub merge: Option<BranchMerge>,
    /// Time limit after the first arrival, in milliseconds, and the action when it expires.
    pub timeout: Option<(u64, OnJoinTimeout)>,
}

/// Number of branches to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinRule {
    /// All branches.
    All,
    /// The first branch.
    Any,
    /// This number of branches.
    Count(u32),
}

/// Action when branches do not arrive in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnJoinTimeout {
    /// The workflow fails.
    Fail,
    /// The workflow continues with the branches that have arrived.
    Proceed,
}

/// Combination of branch outputs, in branch order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchMerge {
    /// Concatenates lists at this path.
    Append(String),
    /// Collects all outputs in a list at this path.
    Collect(String),
    /// Merges objects at this path; later branches win.
    MergeObject(String),
    /// Stores an object at this path, with branch indexes as keys.
    KeyedByBranch(String),
    /// Stores the output of the last branch at this path.
    LastWins(String),
}

/// Creates a workflow without nodes.
pub fn workflow(name: &str) -> WorkflowDefinition {
    WorkflowDefinition { name: name.to_string(), ..WorkflowDefinition::default() }
}

/// Creates a node that runs a task.
pub fn node(name: &str, task: &TaskDefinition) -> WorkflowNode {
    WorkflowNode::new(name, NodeWork::Task(Arc::new(task.clone())))
}

/// Creates an unconditional transition.
pub fn transition(from: &str, to: &str) -> NodeTransition {
    NodeTransition {
        name: format!("{from}>{to}"),
        from: from.to_string(),
        to: to.to_string(),
        spawn_count: 1,
        ..NodeTransition::default()
    }
}

impl WorkflowDefinition {
    setters! {
        /// Adds a node. A bare task becomes a node with its name.
        node(self, node: impl Into<WorkflowNode>) => self.nodes.push(node.into());
        /// Adds a transition.
        transition(self, transition: NodeTransition) => self.transitions.push(transition);
        /// Sets the JSON Schema of the input.
        input(self, schema: Value) => self.input_schema = Some(schema);
        /// Computes a part of the result with an expression.
        ///
        /// # Panics
        /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
        /// code.
        output(self, path: &str, expression: &str) =>
            self.output_mapping.push((path.to_string(), Expression::parse_static(expression)));
    }
}

impl WorkflowNode {
    /// Creates a node that runs another workflow.
    pub fn subworkflow(name: &str, workflow: &WorkflowDefinition) -> WorkflowNode {
        WorkflowNode::new(name, NodeWork::Workflow(DefinitionRef::Embedded(Arc::new(workflow.clone()))))
    }

    /// Creates a node that calls an agent.
    pub fn agent(name: &str, persona: &Persona) -> WorkflowNode {
        WorkflowNode::new(name, NodeWork::Agent(DefinitionRef::Embedded(Arc::new(persona.clone()))))
    }

    /// Creates a node that calls the agent with this id, which may be the agent that the workflow works for.
    pub fn agent_id(name: &str, id: &str) -> WorkflowNode {
        WorkflowNode::new(name, NodeWork::Agent(DefinitionRef::Id(id.into())))
    }

    fn new(name: &str, work: NodeWork) -> WorkflowNode {
        WorkflowNode { name: name.into(), work, input_mapping: Vec::new(), output_mapping: Vec::new() }
    }

    setters! {
        /// Computes a member of the work's input with an expression.
        ///
        /// # Panics
        /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
        /// code.
        input(self, member: &str, expression: &str) =>
            self.input_mapping.push((member.to_string(), Expression::parse_static(expression)));
        /// Stores the value of an expression at a path, which starts with `state` or `output`.
        ///
        /// # Panics
        /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
        /// code.
        output(self, path: &str, expression: &str) =>
            self.output_mapping.push((path.to_string(), Expression::parse_static(expression)));
    }
}

impl From<TaskDefinition> for WorkflowNode {
    fn from(task: TaskDefinition) -> WorkflowNode {
        node(&crate::ids::slug(&task.name), &task)
    }
}

impl NodeTransition {
    setters! {
        /// Sets the priority.
        priority(self, priority: u32) => self.priority = priority;
        /// Sets the condition.
        ///
        /// # Panics
        /// If the condition is invalid. Use [`Expression::parse`] for expressions that are not constants in code.
        when(self, condition: &str) => self.condition = Some(Expression::parse_static(condition));
        /// Starts several branches of a group.
        spawn(self, count: u32, group: &str) =>
            (self.spawn_count, self.sibling_group) = (count, Some(group.to_string()));
        /// Starts one branch of a group.
        group(self, group: &str) => self.sibling_group = Some(group.to_string());
        /// Joins the branches of a group.
        fan_in(self, group: &str, join: JoinRule, merge: impl Into<Option<BranchMerge>>) => self.fan_in =
            Some(BranchJoin { sibling_group: group.to_string(), join, merge: merge.into(), timeout: None });
        /// Limits how often the transition is taken along one path.
        max_iterations(self, count: u32) => self.max_iterations = Some(count);
    }

    /// Starts one branch of a group for each item of a list.
    ///
    /// # Panics
    /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
    /// code.
    #[must_use]
    pub fn for_each(mut self, collection: &str, item: &str, group: &str) -> Self {
        self.for_each =
            Some(BranchPerItem { collection: Expression::parse_static(collection), item: item.to_string() });
        self.group(group)
    }

    /// Sets the time limit for branches after the first arrival, in milliseconds.
    #[must_use]
    pub fn fan_in_timeout(mut self, millis: u64, then: OnJoinTimeout) -> Self {
        if let Some(fan_in) = &mut self.fan_in {
            fan_in.timeout = Some((millis, then));
        }
        self
    }
}
