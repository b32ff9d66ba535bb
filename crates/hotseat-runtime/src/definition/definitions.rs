//! All definitions that a conversation can need, by id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_trace::InvocationMode;

use super::{
    Action, Node, NodeWork, Persona, Reference, Target, Task, Tool, Workflow, assemble, schema, task,
    workflow,
};
use crate::ids::{AgentId, TaskId, WorkflowId, slug};

/// An agent: a persona with a memory of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// What it is made from.
    pub persona: Arc<Persona>,
}

/// Agents, tasks and workflows by id. They do not change while a conversation is held.
#[derive(Debug, Clone, PartialEq)]
pub struct Definitions {
    agents: BTreeMap<AgentId, Arc<Agent>>,
    tasks: BTreeMap<TaskId, Arc<Task>>,
    workflows: BTreeMap<WorkflowId, Arc<Workflow>>,
}

/// A definition that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct DefinitionError {
    /// Which definition, and which part of it.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

/// The id of the built-in workflow that builds requests.
const DEFAULT_CONTEXT: &str = "default-context";
/// The id of the built-in workflow that keeps nothing.
const DEFAULT_EXTRACTION: &str = "default-extraction";

impl Definitions {
    /// The definitions of this persona and of everything it refers to.
    ///
    /// # Errors
    /// When one of them cannot be used: names are missing or doubled, schemas are none, nodes are not there.
    pub fn of(persona: &Persona) -> Result<(Definitions, AgentId), DefinitionError> {
        let definitions = Definitions::of_all([persona])?;
        Ok((definitions, named("persona", &persona.name)?.into()))
    }

    /// The definitions of these personas, which may refer to each other by id, and of everything they refer to.
    ///
    /// # Errors
    /// When one of them cannot be used, as for [`of`](Self::of).
    pub fn of_all<'p>(
        personas: impl IntoIterator<Item = &'p Persona>,
    ) -> Result<Definitions, DefinitionError> {
        let mut definitions =
            Definitions { agents: BTreeMap::new(), tasks: BTreeMap::new(), workflows: BTreeMap::new() };
        definitions.workflow(&workflow(DEFAULT_CONTEXT).node(task(DEFAULT_CONTEXT).step(assemble())))?;
        definitions.workflow(&workflow(DEFAULT_EXTRACTION).node(task(DEFAULT_EXTRACTION)))?;
        for persona in personas {
            definitions.persona(persona)?;
        }
        Ok(definitions)
    }

    /// The agents, in the order of their ids.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.values()
    }

    /// The agent with this id.
    pub fn agent(&self, id: &AgentId) -> Option<&Arc<Agent>> {
        self.agents.get(id)
    }

    /// The task with this id.
    pub fn find_task(&self, id: &TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(id)
    }

    /// The workflow with this id.
    pub fn find_workflow(&self, id: &WorkflowId) -> Option<&Arc<Workflow>> {
        self.workflows.get(id)
    }

    /// The workflow that builds requests for this persona.
    pub fn context_workflow(&self, persona: &Persona) -> WorkflowId {
        persona.context_assembly.as_ref().map_or(DEFAULT_CONTEXT.into(), workflow_id)
    }

    /// The workflow that keeps what turns of this persona have brought.
    pub fn extraction_workflow(&self, persona: &Persona) -> WorkflowId {
        persona.memory_extraction.as_ref().map_or(DEFAULT_EXTRACTION.into(), workflow_id)
    }

    fn persona(&mut self, persona: &Persona) -> Result<AgentId, DefinitionError> {
        let id: AgentId = named("persona", &persona.name)?.into();
        if let Some(known) = self.agents.get(&id) {
            return same(&*known.persona == persona, "persona", &persona.name).map(|()| id);
        }
        let agent = Agent { id: id.clone(), persona: Arc::new(persona.clone()) };
        self.agents.insert(id.clone(), Arc::new(agent));
        let mut names = BTreeSet::new();
        for tool in &persona.tools {
            let place = format!("persona {}, tool {}", persona.name, tool.name);
            if tool.name.is_empty() {
                return Err(wrong(place, "it has no name"));
            }
            if !names.insert(&tool.name) {
                return Err(wrong(place, "the name is there twice"));
            }
            self.tool(tool, place)?;
        }
        for hook in [&persona.context_assembly, &persona.memory_extraction].into_iter().flatten() {
            if let Reference::Embedded(workflow) = hook {
                self.workflow(workflow)?;
            }
        }
        if persona.max_moves_per_turn == Some(0) {
            return Err(wrong(format!("persona {}", persona.name), "a turn needs at least one move"));
        }
        Ok(id)
    }

    fn tool(&mut self, tool: &Tool, place: String) -> Result<(), DefinitionError> {
        schema::check(&tool.input_schema).map_err(|problem| wrong(format!("{place}, input"), problem))?;
        let Some(target) = &tool.target else {
            return Err(wrong(
                place,
                "nothing is behind it: it needs a task, a workflow, an agent or the client",
            ));
        };
        let is_agent = matches!(target, Target::Agent(_));
        if tool.mode == InvocationMode::LoopIn && !is_agent {
            return Err(wrong(place, "only an agent can be looped in"));
        }
        if tool.mode == InvocationMode::LoopIn && tool.is_async {
            return Err(wrong(
                place,
                "an agent that is looped in joins at once, so the tool cannot be asynchronous",
            ));
        }
        if tool.retry.max_attempts == 0 {
            return Err(wrong(place, "it needs at least one attempt"));
        }
        match target {
            Target::Task(Reference::Embedded(task)) => self.task(task).map(drop),
            Target::Workflow(Reference::Embedded(workflow)) => self.workflow(workflow).map(drop),
            Target::Agent(Reference::Embedded(persona)) => self.persona(persona).map(drop),
            // Whether there is one with this id shows when it is called: it is then a failure of the tool.
            Target::Task(Reference::Id(_))
            | Target::Workflow(Reference::Id(_))
            | Target::Agent(Reference::Id(_))
            | Target::Client => Ok(()),
        }
    }

    fn task(&mut self, task: &Task) -> Result<TaskId, DefinitionError> {
        let id: TaskId = named("task", &task.name)?.into();
        if let Some(known) = self.tasks.get(&id) {
            return same(&**known == task, "task", &task.name).map(|()| id);
        }
        for (part, found) in [("input", &task.input_schema), ("output", &task.output_schema)] {
            if let Some(Err(problem)) = found.as_ref().map(schema::check) {
                return Err(wrong(format!("task {}, {part}", task.name), problem));
            }
        }
        let mut names = BTreeSet::new();
        for step in &task.steps {
            if !names.insert(&step.name) {
                return Err(wrong(
                    format!("task {}, step {}", task.name, step.name),
                    "the name is there twice",
                ));
            }
        }
        self.tasks.insert(id.clone(), Arc::new(task.clone()));
        for step in &task.steps {
            if let Action::Agent(Reference::Embedded(persona)) = &step.action {
                self.persona(persona)?;
            }
        }
        Ok(id)
    }

    fn workflow(&mut self, workflow: &Workflow) -> Result<WorkflowId, DefinitionError> {
        let id: WorkflowId = named("workflow", &workflow.name)?.into();
        if let Some(known) = self.workflows.get(&id) {
            return same(&**known == workflow, "workflow", &workflow.name).map(|()| id);
        }
        let place = |part: &str| format!("workflow {}, {part}", workflow.name);
        if workflow.nodes.is_empty() {
            return Err(wrong(place("nodes"), "it has none"));
        }
        let mut names = BTreeSet::new();
        for node in &workflow.nodes {
            if !names.insert(&node.name) {
                return Err(wrong(place(&format!("node {}", node.name)), "the name is there twice"));
            }
        }
        let ends = workflow.transitions.iter().flat_map(|way| [&way.from, &way.to]);
        for name in workflow.initial.iter().chain(ends) {
            if !names.contains(name) {
                return Err(wrong(place(&format!("node {name}")), "there is no such node"));
            }
        }
        self.workflows.insert(id.clone(), Arc::new(workflow.clone()));
        for node in &workflow.nodes {
            self.node(node)?;
        }
        Ok(id)
    }

    fn node(&mut self, node: &Node) -> Result<(), DefinitionError> {
        match &node.work {
            NodeWork::Task(task) => self.task(task).map(drop),
            NodeWork::Workflow(Reference::Embedded(workflow)) => self.workflow(workflow).map(drop),
            NodeWork::Agent(Reference::Embedded(persona)) => self.persona(persona).map(drop),
            NodeWork::Workflow(Reference::Id(_)) | NodeWork::Agent(Reference::Id(_)) => Ok(()),
        }
    }
}

/// The id of a task that a tool names.
pub(crate) fn task_id(reference: &Reference<Task>) -> TaskId {
    match reference {
        Reference::Embedded(task) => slug(&task.name).into(),
        Reference::Id(id) => TaskId(id.clone()),
    }
}

/// The id of a workflow that a tool, a node or a persona names.
pub(crate) fn workflow_id(reference: &Reference<Workflow>) -> WorkflowId {
    match reference {
        Reference::Embedded(workflow) => slug(&workflow.name).into(),
        Reference::Id(id) => WorkflowId(id.clone()),
    }
}

/// The id of an agent that a tool, a node or a step names.
pub(crate) fn agent_id(reference: &Reference<Persona>) -> AgentId {
    match reference {
        Reference::Embedded(persona) => slug(&persona.name).into(),
        Reference::Id(id) => AgentId(id.clone()),
    }
}

fn named(kind: &str, name: &str) -> Result<String, DefinitionError> {
    match slug(name) {
        id if id.is_empty() => Err(wrong(format!("{kind} {name:?}"), "the name has no letter or digit")),
        id => Ok(id),
    }
}

fn same(equal: bool, kind: &str, name: &str) -> Result<(), DefinitionError> {
    if equal {
        Ok(())
    } else {
        Err(wrong(format!("{kind} {name}"), "two different definitions have this name"))
    }
}

fn wrong(place: impl Into<String>, problem: impl Into<String>) -> DefinitionError {
    DefinitionError { place: place.into(), problem: problem.into() }
}
