//! Tools: what a model can call, and what is behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::InvocationMode;
use serde_json::{Value, json};

use super::{Persona, Task, Workflow};

/// Something a model can call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// What the model calls it.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// The JSON Schema of its input. Without `type` it accepts anything.
    pub input_schema: Value,
    /// What is behind it.
    pub target: Option<Target>,
    /// Whether the agent goes on before it has answered.
    pub is_async: bool,
    /// How an agent behind it takes part.
    pub mode: InvocationMode,
    /// What the target is given, member by member: its name there and its name in the model's input. Everything, as
    /// it is, if there is none.
    pub input_mapping: Option<BTreeMap<String, String>>,
    /// How often and how long it is tried.
    pub retry: ToolRetry,
}

/// How often and how long a tool is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolRetry {
    /// Attempts in all; only failures of the means are tried again.
    pub max_attempts: u32,
    /// The wait between attempts, in milliseconds.
    pub backoff_ms: u64,
    /// How long one attempt may take, in milliseconds; as long as it wants if there is none.
    pub timeout_ms: Option<u64>,
}

impl Default for ToolRetry {
    fn default() -> Self {
        ToolRetry { max_attempts: 1, backoff_ms: 1000, timeout_ms: Some(60_000) }
    }
}

/// What is behind a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A task.
    Task(Reference<Task>),
    /// A workflow.
    Workflow(Reference<Workflow>),
    /// An agent.
    Agent(Reference<Persona>),
}

/// A definition, or the id of one that stands elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference<T> {
    /// The definition itself.
    Embedded(Arc<T>),
    /// Its id; whether there is one shows when it is needed.
    Id(Arc<str>),
}

/// A tool with nothing but a name, which accepts any object.
pub fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_string(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        target: None,
        is_async: false,
        mode: InvocationMode::Delegate,
        input_mapping: None,
        retry: ToolRetry::default(),
    }
}

impl Tool {
    /// With this description.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.description = text.to_string();
        self
    }

    /// With this JSON Schema for its input.
    #[must_use]
    pub fn input(mut self, schema: Value) -> Self {
        self.input_schema = schema;
        self
    }

    /// With this behind it.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// With a task behind it.
    #[must_use]
    pub fn task(self, task: &Task) -> Self {
        self.target(Target::Task(Reference::Embedded(Arc::new(task.clone()))))
    }

    /// With a workflow behind it.
    #[must_use]
    pub fn workflow(self, workflow: &Workflow) -> Self {
        self.target(Target::Workflow(Reference::Embedded(Arc::new(workflow.clone()))))
    }

    /// With an agent behind it.
    #[must_use]
    pub fn agent(self, persona: &Persona) -> Self {
        self.target(Target::Agent(Reference::Embedded(Arc::new(persona.clone()))))
    }

    /// With the agent of this id behind it, which may be the one that has the tool.
    #[must_use]
    pub fn agent_id(self, id: &str) -> Self {
        self.target(Target::Agent(Reference::Id(id.into())))
    }

    /// The agent goes on before the tool has answered.
    #[must_use]
    pub fn asynchronous(mut self) -> Self {
        self.is_async = true;
        self
    }

    /// The agent behind it joins the conversation.
    #[must_use]
    pub fn loop_in(mut self) -> Self {
        self.mode = InvocationMode::LoopIn;
        self
    }

    /// With a member of the target's input taken from a member of the model's.
    #[must_use]
    pub fn map(mut self, target: &str, source: &str) -> Self {
        self.input_mapping.get_or_insert_default().insert(target.to_string(), source.to_string());
        self
    }

    /// Tried this often, with this wait in milliseconds between attempts.
    #[must_use]
    pub fn attempts(mut self, max_attempts: u32, backoff_ms: u64) -> Self {
        self.retry = ToolRetry { max_attempts, backoff_ms, ..self.retry };
        self
    }

    /// With this time limit for an attempt, in milliseconds.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: impl Into<Option<u64>>) -> Self {
        self.retry.timeout_ms = timeout_ms.into();
        self
    }

    /// What the target is given for this input of the model.
    pub fn mapped(&self, input: &Value) -> Value {
        let Some(mapping) = &self.input_mapping else { return input.clone() };
        let pick = |(target, source): (&String, &String)| {
            input.get(source).map(|value| (target.clone(), value.clone()))
        };
        Value::Object(mapping.iter().filter_map(pick).collect())
    }
}
