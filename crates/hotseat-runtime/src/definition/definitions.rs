//! All definitions that a conversation may need, by id.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use hotseat_trace::InvocationMode;

use super::{
    DefinitionRef, NodeWork, Persona, StepAction, TaskDefinition, ToolDefinition, ToolTarget,
    WorkflowDefinition, WorkflowNode, assemble, schema, task, workflow,
};
use crate::ids::{AgentId, TaskId, WorkflowId, slug};

/// An agent: a persona with its own memory.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// The id of the agent.
    pub id: AgentId,
    /// The persona of the agent.
    pub persona: Arc<Persona>,
}

/// Agents, tasks and workflows by id. They do not change during a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Definitions {
    agents: BTreeMap<AgentId, Arc<AgentDefinition>>,
    tasks: BTreeMap<TaskId, Arc<TaskDefinition>>,
    workflows: BTreeMap<WorkflowId, Arc<WorkflowDefinition>>,
}

/// Invalid definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct DefinitionError {
    /// Name of the definition and the invalid part.
    pub place: String,
    /// Description of the problem.
    pub problem: String,
}

/// Id of the built-in workflow that builds requests.
const DEFAULT_CONTEXT_WORKFLOW: &str = "default-context";
/// Id of the built-in workflow that extracts no memories.
const DEFAULT_EXTRACTION_WORKFLOW: &str = "default-extraction";
/// The built-in workflows, which all definitions share.
static BUILT_IN: LazyLock<Result<Definitions, DefinitionError>> = LazyLock::new(|| {
    let mut built_in =
        Definitions { agents: BTreeMap::new(), tasks: BTreeMap::new(), workflows: BTreeMap::new() };
    let context = task(DEFAULT_CONTEXT_WORKFLOW).step(assemble());
    built_in.add_workflow(&Arc::new(workflow(DEFAULT_CONTEXT_WORKFLOW).node(context)))?;
    let extraction = task(DEFAULT_EXTRACTION_WORKFLOW);
    built_in.add_workflow(&Arc::new(workflow(DEFAULT_EXTRACTION_WORKFLOW).node(extraction)))?;
    Ok(built_in)
});

impl Definitions {
    /// Collects the definitions of a persona and everything it refers to.
    ///
    /// # Errors
    /// If a definition is invalid, for example because of missing or duplicate names, invalid schemas or
    /// unknown nodes.
    pub fn from_persona(persona: &Persona) -> Result<(Definitions, AgentId), DefinitionError> {
        let definitions = Definitions::from_personas([persona])?;
        Ok((definitions, id_from_name("persona", &persona.name)?.into()))
    }

    /// Collects the definitions of these personas, which may refer to each other by id, and everything they
    /// refer to.
    ///
    /// # Errors
    /// If a definition is invalid, as for [`of`](Self::from_persona).
    pub fn from_personas<'p>(
        personas: impl IntoIterator<Item = &'p Persona>,
    ) -> Result<Definitions, DefinitionError> {
        let mut definitions = BUILT_IN.clone()?;
        for persona in personas {
            definitions.add_persona(&Arc::new(persona.clone()))?;
        }
        Ok(definitions)
    }

    /// Returns the agents, ordered by id.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents.values()
    }

    /// Returns the agent with this id.
    pub fn agent(&self, id: &AgentId) -> Option<&Arc<AgentDefinition>> {
        self.agents.get(id)
    }

    /// Returns the task with this id.
    pub fn find_task(&self, id: &TaskId) -> Option<&Arc<TaskDefinition>> {
        self.tasks.get(id)
    }

    /// Returns the workflow with this id.
    pub fn find_workflow(&self, id: &WorkflowId) -> Option<&Arc<WorkflowDefinition>> {
        self.workflows.get(id)
    }

    /// Returns the workflow that builds requests for this persona.
    pub fn context_workflow(&self, persona: &Persona) -> WorkflowId {
        persona.context_assembly.as_ref().map_or(DEFAULT_CONTEXT_WORKFLOW.into(), workflow_id)
    }

    /// Returns the workflow that extracts memories for this persona.
    pub fn extraction_workflow(&self, persona: &Persona) -> WorkflowId {
        persona.memory_extraction.as_ref().map_or(DEFAULT_EXTRACTION_WORKFLOW.into(), workflow_id)
    }

    fn add_persona(&mut self, persona: &Arc<Persona>) -> Result<AgentId, DefinitionError> {
        let id: AgentId = id_from_name("persona", &persona.name)?.into();
        if let Some(known) = self.agents.get(&id) {
            return check_same(known.persona == *persona, "persona", &persona.name).map(|()| id);
        }
        let agent = AgentDefinition { id: id.clone(), persona: persona.clone() };
        self.agents.insert(id.clone(), Arc::new(agent));
        let mut names = BTreeSet::new();
        for tool in &persona.tools {
            let place = format!("persona {}, tool {}", persona.name, tool.name);
            if tool.name.is_empty() {
                return Err(definition_error(place, "the tool has no name"));
            }
            if !names.insert(&tool.name) {
                return Err(definition_error(place, "the tool name is used twice"));
            }
            self.add_tool_target(tool, place)?;
        }
        for hook in [&persona.context_assembly, &persona.memory_extraction].into_iter().flatten() {
            if let DefinitionRef::Embedded(workflow) = hook {
                self.add_workflow(workflow)?;
            }
        }
        if persona.max_moves_per_turn == Some(0) {
            return Err(definition_error(
                format!("persona {}", persona.name),
                "the maximum number of moves must be at least 1",
            ));
        }
        Ok(id)
    }

    fn add_tool_target(&mut self, tool: &ToolDefinition, place: String) -> Result<(), DefinitionError> {
        schema::check(&tool.input_schema)
            .map_err(|problem| definition_error(format!("{place}, input"), problem))?;
        let Some(target) = &tool.target else {
            return Err(definition_error(
                place,
                "the tool has no target: set a task, a workflow, an agent or the client",
            ));
        };
        let is_agent = matches!(target, ToolTarget::Agent(_));
        if tool.mode == InvocationMode::LoopIn && !is_agent {
            return Err(definition_error(place, "only an agent can be looped in"));
        }
        if tool.mode == InvocationMode::LoopIn && tool.is_async {
            return Err(definition_error(
                place,
                "a looped-in agent joins immediately, so the tool cannot be asynchronous",
            ));
        }
        if tool.retry.max_attempts == 0 {
            return Err(definition_error(place, "the maximum number of attempts must be at least 1"));
        }
        match target {
            ToolTarget::Task(DefinitionRef::Embedded(task)) => self.add_task(task).map(drop),
            ToolTarget::Workflow(DefinitionRef::Embedded(workflow)) => self.add_workflow(workflow).map(drop),
            ToolTarget::Agent(DefinitionRef::Embedded(persona)) => self.add_persona(persona).map(drop),
            // Unknown ids become failures of the tool when it is called.
            ToolTarget::Task(DefinitionRef::Id(_))
            | ToolTarget::Workflow(DefinitionRef::Id(_))
            | ToolTarget::Agent(DefinitionRef::Id(_))
            | ToolTarget::Client => Ok(()),
        }
    }

    fn add_task(&mut self, task: &Arc<TaskDefinition>) -> Result<TaskId, DefinitionError> {
        let id: TaskId = id_from_name("task", &task.name)?.into();
        if let Some(known) = self.tasks.get(&id) {
            return check_same(known == task, "task", &task.name).map(|()| id);
        }
        for (part, found) in [("input", &task.input_schema), ("output", &task.output_schema)] {
            if let Some(Err(problem)) = found.as_ref().map(schema::check) {
                return Err(definition_error(format!("task {}, {part}", task.name), problem));
            }
        }
        let mut names = BTreeSet::new();
        for step in &task.steps {
            if !names.insert(&step.name) {
                return Err(definition_error(
                    format!("task {}, step {}", task.name, step.name),
                    "the step name is used twice",
                ));
            }
        }
        self.tasks.insert(id.clone(), task.clone());
        for step in &task.steps {
            if let StepAction::Agent(DefinitionRef::Embedded(persona)) = &step.action {
                self.add_persona(persona)?;
            }
        }
        Ok(id)
    }

    fn add_workflow(&mut self, workflow: &Arc<WorkflowDefinition>) -> Result<WorkflowId, DefinitionError> {
        let id: WorkflowId = id_from_name("workflow", &workflow.name)?.into();
        if let Some(known) = self.workflows.get(&id) {
            return check_same(known == workflow, "workflow", &workflow.name).map(|()| id);
        }
        let place = |part: &str| format!("workflow {}, {part}", workflow.name);
        if workflow.nodes.is_empty() {
            return Err(definition_error(place("nodes"), "the workflow has no nodes"));
        }
        let mut names = BTreeSet::new();
        for node in &workflow.nodes {
            if !names.insert(&*node.name) {
                return Err(definition_error(
                    place(&format!("node {}", node.name)),
                    "the node name is used twice",
                ));
            }
        }
        let ends = workflow.transitions.iter().flat_map(|way| [&way.from, &way.to]);
        for name in workflow.initial.iter().chain(ends) {
            if !names.contains(name.as_str()) {
                return Err(definition_error(place(&format!("node {name}")), "the node does not exist"));
            }
        }
        self.workflows.insert(id.clone(), workflow.clone());
        for node in &workflow.nodes {
            self.add_node(node)?;
        }
        Ok(id)
    }

    fn add_node(&mut self, node: &WorkflowNode) -> Result<(), DefinitionError> {
        match &node.work {
            NodeWork::Task(task) => self.add_task(task).map(drop),
            NodeWork::Workflow(DefinitionRef::Embedded(workflow)) => self.add_workflow(workflow).map(drop),
            NodeWork::Agent(DefinitionRef::Embedded(persona)) => self.add_persona(persona).map(drop),
            NodeWork::Workflow(DefinitionRef::Id(_)) | NodeWork::Agent(DefinitionRef::Id(_)) => Ok(()),
        }
    }
}

pub(crate) fn task_id(reference: &DefinitionRef<TaskDefinition>) -> TaskId {
    match reference {
        DefinitionRef::Embedded(task) => slug(&task.name).into(),
        DefinitionRef::Id(id) => TaskId(id.clone()),
    }
}

pub(crate) fn workflow_id(reference: &DefinitionRef<WorkflowDefinition>) -> WorkflowId {
    match reference {
        DefinitionRef::Embedded(workflow) => slug(&workflow.name).into(),
        DefinitionRef::Id(id) => WorkflowId(id.clone()),
    }
}

pub(crate) fn agent_id(reference: &DefinitionRef<Persona>) -> AgentId {
    match reference {
        DefinitionRef::Embedded(persona) => slug(&persona.name).into(),
        DefinitionRef::Id(id) => AgentId(id.clone()),
    }
}

fn id_from_name(kind: &str, name: &str) -> Result<String, DefinitionError> {
    match slug(name) {
        id if id.is_empty() => {
            Err(definition_error(format!("{kind} {name:?}"), "the name contains no letter or digit"))
        }
        id => Ok(id),
    }
}

fn check_same(equal: bool, kind: &str, name: &str) -> Result<(), DefinitionError> {
    if equal {
        Ok(())
    } else {
        Err(definition_error(format!("{kind} {name}"), "two different definitions have this name"))
    }
}

fn definition_error(place: impl Into<String>, problem: impl ToString) -> DefinitionError {
    DefinitionError { place: place.into(), problem: problem.to_string() }
}
