//! Workflows: tasks as the nodes of a graph.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Persona, Reference, Task};
use crate::expression::Expression;

/// A graph of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// Its name; its id is the lower-case form.
    pub name: String,
    /// The JSON Schema of what it is given; anything if there is none.
    pub input_schema: Option<Value>,
    /// The JSON Schema of what it returns; anything if there is none.
    pub output_schema: Option<Value>,
    /// What it returns, path by path; its whole `output` if it is empty.
    pub output_mapping: Vec<(String, Expression)>,
    /// Where it begins; at its first node if there is none.
    pub initial: Option<String>,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// Its transitions. Without any the nodes follow each other as they stand.
    pub transitions: Vec<Transition>,
}

/// A place in a workflow where work is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name in the workflow.
    pub name: String,
    /// The work.
    pub work: NodeWork,
    /// What the work is given, member by member, `*` for all of it; the workflow's input if it is empty.
    pub input_mapping: Vec<(String, Expression)>,
    /// Where what it returns goes, path by path, from `result`; to `output` if it is empty.
    pub output_mapping: Vec<(String, Expression)>,
}

/// The work of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeWork {
    /// A task.
    Task(Arc<Task>),
    /// Another workflow.
    Workflow(Reference<Workflow>),
    /// An agent, asked in a conversation of its own; its answer is `response` in what the node returns.
    Agent(Reference<Persona>),
}

/// A way from one node to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// Its name; needed where it is counted.
    pub name: String,
    /// From where.
    pub from: String,
    /// To where.
    pub to: String,
    /// Which transitions are looked at first: those of the lowest number. All of one number that hold are taken.
    pub priority: u32,
    /// Whether it is taken; always if there is none.
    pub condition: Option<Expression>,
    /// How many branches it makes.
    pub spawn_count: u32,
    /// One branch for each item of a list.
    pub for_each: Option<ForEach>,
    /// What the branches are called together; needed where they come together again.
    pub sibling_group: Option<String>,
    /// How branches come together before the node.
    pub fan_in: Option<FanIn>,
    /// How often it is taken at most along one path.
    pub max_iterations: Option<u32>,
}

/// One branch for each item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForEach {
    /// The list.
    pub collection: Expression,
    /// What an item is called in the branch.
    pub item: String,
}

/// How branches come together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FanIn {
    /// The branches that do.
    pub sibling_group: String,
    /// How many of them are waited for.
    pub join: Join,
    /// What becomes of what they have brought.
    pub merge: Option<Merging>,
    /// How long is waited after the first has arrived, in milliseconds, and what happens then.
    pub timeout: Option<(u64, OnJoinTimeout)>,
}

/// How many branches are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// All of them.
    All,
    /// The first.
    Any,
    /// So many.
    Count(u32),
}

/// What happens when branches do not arrive in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnJoinTimeout {
    /// The workflow fails.
    Fail,
    /// It goes on with those that have arrived.
    Proceed,
}

/// What becomes of what branches have brought, in the order of the branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merging {
    /// Lists are joined to one at this path.
    Append(String),
    /// A list of what each has brought at this path.
    Collect(String),
    /// One object at this path; later branches win.
    MergeObject(String),
    /// An object at this path, with the number of the branch as key.
    KeyedByBranch(String),
    /// What the last branch has brought at this path.
    LastWins(String),
}

/// A workflow without nodes.
pub fn workflow(name: &str) -> Workflow {
    Workflow {
        name: name.to_string(),
        input_schema: None,
        output_schema: None,
        output_mapping: Vec::new(),
        initial: None,
        nodes: Vec::new(),
        transitions: Vec::new(),
    }
}

/// A node of this task.
pub fn node(name: &str, task: &Task) -> Node {
    let work = NodeWork::Task(Arc::new(task.clone()));
    Node { name: name.to_string(), work, input_mapping: Vec::new(), output_mapping: Vec::new() }
}

/// A transition that is always taken.
pub fn transition(from: &str, to: &str) -> Transition {
    Transition {
        name: format!("{from}>{to}"),
        from: from.to_string(),
        to: to.to_string(),
        priority: 0,
        condition: None,
        spawn_count: 1,
        for_each: None,
        sibling_group: None,
        fan_in: None,
        max_iterations: None,
    }
}

impl Workflow {
    /// With one more node; a task alone is a node of its name.
    #[must_use]
    pub fn node(mut self, node: impl Into<Node>) -> Self {
        self.nodes.push(node.into());
        self
    }

    /// With one more transition.
    #[must_use]
    pub fn transition(mut self, transition: Transition) -> Self {
        self.transitions.push(transition);
        self
    }

    /// With this JSON Schema for its input.
    #[must_use]
    pub fn input(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// With what this expression computes at this place of what it returns.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn output(mut self, path: &str, expression: &str) -> Self {
        self.output_mapping.push((path.to_string(), Expression::written(expression)));
        self
    }
}

impl Node {
    /// A node of another workflow.
    pub fn subworkflow(name: &str, workflow: &Workflow) -> Node {
        let work = NodeWork::Workflow(Reference::Embedded(Arc::new(workflow.clone())));
        Node { name: name.to_string(), work, input_mapping: Vec::new(), output_mapping: Vec::new() }
    }

    /// A node that asks an agent.
    pub fn agent(name: &str, persona: &Persona) -> Node {
        Node::asking(name, Reference::Embedded(Arc::new(persona.clone())))
    }

    /// A node that asks the agent of this id, which may be the one that the workflow works for.
    pub fn agent_id(name: &str, id: &str) -> Node {
        Node::asking(name, Reference::Id(id.into()))
    }

    fn asking(name: &str, agent: Reference<Persona>) -> Node {
        let work = NodeWork::Agent(agent);
        Node { name: name.to_string(), work, input_mapping: Vec::new(), output_mapping: Vec::new() }
    }

    /// With a member of the work's input computed by this expression.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn input(mut self, member: &str, expression: &str) -> Self {
        self.input_mapping.push((member.to_string(), Expression::written(expression)));
        self
    }

    /// With what this expression computes put at this path, which begins with `state` or `output`.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn output(mut self, path: &str, expression: &str) -> Self {
        self.output_mapping.push((path.to_string(), Expression::written(expression)));
        self
    }
}

impl From<Task> for Node {
    fn from(task: Task) -> Node {
        node(&crate::ids::slug(&task.name), &task)
    }
}

impl Transition {
    /// Looked at in this place.
    #[must_use]
    pub fn priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }

    /// Taken only when this holds.
    ///
    /// # Panics
    /// When the condition cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn when(mut self, condition: &str) -> Self {
        self.condition = Some(Expression::written(condition));
        self
    }

    /// Making so many branches of this group.
    #[must_use]
    pub fn spawn(mut self, count: u32, group: &str) -> Self {
        self.spawn_count = count;
        self.sibling_group = Some(group.to_string());
        self
    }

    /// Making one of the branches of this group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.sibling_group = Some(group.to_string());
        self
    }

    /// Making a branch for each item of a list.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn for_each(mut self, collection: &str, item: &str, group: &str) -> Self {
        self.for_each = Some(ForEach { collection: Expression::written(collection), item: item.to_string() });
        self.sibling_group = Some(group.to_string());
        self
    }

    /// Bringing the branches of this group together.
    #[must_use]
    pub fn fan_in(mut self, group: &str, join: Join, merge: impl Into<Option<Merging>>) -> Self {
        self.fan_in =
            Some(FanIn { sibling_group: group.to_string(), join, merge: merge.into(), timeout: None });
        self
    }

    /// Waiting so long for branches, in milliseconds, after the first has arrived.
    #[must_use]
    pub fn fan_in_timeout(mut self, millis: u64, then: OnJoinTimeout) -> Self {
        if let Some(fan_in) = &mut self.fan_in {
            fan_in.timeout = Some((millis, then));
        }
        self
    }

    /// Taken at most so often along one path.
    #[must_use]
    pub fn max_iterations(mut self, count: u32) -> Self {
        self.max_iterations = Some(count);
        self
    }
}
