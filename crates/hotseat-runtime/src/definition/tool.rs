//! Tools: what a model can call, and what is behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::InvocationMode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Persona, Task, Workflow};
use crate::expression::{Expression, put};
use crate::failure::{ErrorCode, Failure};

/// Something a model can call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// Members that the target is given besides, computed from `input` and the conversation's shared `state`.
    pub reads: Vec<(String, Expression)>,
    /// What becomes of the shared state when the tool has completed: paths in it, computed from `input`, `result` and
    /// the `state` as it was.
    pub writes: Vec<(String, Expression)>,
    /// What a person is asked before each call; nobody is asked if there is none.
    pub approval: Option<Approval>,
    /// How often and how long it is tried.
    pub retry: ToolRetry,
}

/// A question to a person before a tool is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The question; `{member}` stands for a member of the model's input.
    pub message: String,
}

impl Approval {
    /// The question for this input. What the input does not have is left as it is written.
    pub fn worded(&self, input: &Value) -> String {
        let mut worded = String::with_capacity(self.message.len());
        let mut rest = self.message.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            worded.push_str(before);
            let member = after.split_once('}').and_then(|(name, after)| Some((input.get(name)?, after)));
            rest = match member {
                Some((Value::String(text), after)) => {
                    worded.push_str(text);
                    after
                }
                Some((value, after)) => {
                    worded.push_str(&value.to_string());
                    after
                }
                None => {
                    worded.push('{');
                    after
                }
            };
        }
        worded.push_str(rest);
        worded
    }
}

/// How often and how long a tool is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A task.
    Task(Reference<Task>),
    /// A workflow.
    Workflow(Reference<Workflow>),
    /// An agent.
    Agent(Reference<Persona>),
    /// Whoever holds the conversation from outside: the call is passed on to it, and it answers.
    Client,
}

/// A definition, or the id of one that stands elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
        reads: Vec::new(),
        writes: Vec::new(),
        approval: None,
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

    /// Carried out by the client, in its own time: there is no time limit but one that is set after this.
    #[must_use]
    pub fn client(self) -> Self {
        self.target(Target::Client).timeout_ms(None)
    }

    /// Called only when a person has agreed to this question, in which `{member}` stands for a member of the input.
    #[must_use]
    pub fn approval(mut self, message: &str) -> Self {
        self.approval = Some(Approval { message: message.to_string() });
        self
    }

    /// With a member of the target's input computed from the model's `input` and the shared `state`.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn reads(mut self, member: &str, expression: &str) -> Self {
        self.reads.push((member.to_string(), Expression::written(expression)));
        self
    }

    /// With what this expression computes, from `input`, `result` and `state`, put at this path of the shared state
    /// when the tool has completed.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn writes(mut self, path: &str, expression: &str) -> Self {
        self.writes.push((path.to_string(), Expression::written(expression)));
        self
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

    /// What the target is given for this input of the model, with this shared state.
    ///
    /// # Errors
    /// When an expression fails, or there is no place for what it computes.
    pub fn given(&self, input: &Value, shared: &Value) -> Result<Value, Failure> {
        let mut given = self.mapped(input);
        let scope = json!({"input": input, "state": shared});
        for (member, expression) in &self.reads {
            let value = expression.evaluate(&scope).map_err(|error| {
                Failure::business(ErrorCode::ExecutionFailed, format!("the input of {}: {error}", self.name))
            })?;
            let Value::Object(members) = &mut given else {
                let message = "the tool takes more members, so its input must be an object";
                return Err(Failure::business(ErrorCode::InvalidInput, message));
            };
            members.insert(member.clone(), value);
        }
        Ok(given)
    }

    /// What the shared state becomes when the tool has returned this; none if the tool leaves it alone.
    ///
    /// # Errors
    /// When an expression fails.
    pub fn written(&self, input: &Value, result: &Value, shared: &Value) -> Result<Option<Value>, Failure> {
        let scope = json!({"input": input, "result": result, "state": shared});
        let mut written = None;
        for (path, expression) in &self.writes {
            let value = expression.evaluate(&scope).map_err(|error| {
                Failure::business(
                    ErrorCode::ExecutionFailed,
                    format!("the state after {}: {error}", self.name),
                )
            })?;
            put(written.get_or_insert_with(|| shared.clone()), path, value);
        }
        Ok(written)
    }

    /// What the target is given of this input of the model.
    fn mapped(&self, input: &Value) -> Value {
        let Some(mapping) = &self.input_mapping else { return input.clone() };
        let pick = |(target, source): (&String, &String)| {
            input.get(source).map(|value| (target.clone(), value.clone()))
        };
        Value::Object(mapping.iter().filter_map(pick).collect())
    }
}
