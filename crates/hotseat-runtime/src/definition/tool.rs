//! Tools that a model can call, and their targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_model::setters;
use hotseat_trace::InvocationMode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Persona, TaskDefinition, WorkflowDefinition};
use crate::expression::{Expression, set_at_path};
use crate::failure::{ErrorCode, WorkFailure};

/// Tool that a model can call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// Name for the model.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the input. A schema without `type` accepts anything.
    pub input_schema: Value,
    /// Target that executes the tool.
    pub target: Option<ToolTarget>,
    /// True if the agent continues before the tool has answered.
    pub is_async: bool,
    /// Invocation mode of an agent target.
    pub mode: InvocationMode,
    /// Input of the target: member names mapped to names in the model's input. `None` passes the input
    /// unchanged.
    pub input_mapping: Option<BTreeMap<String, String>>,
    /// Additional members for the target, computed from `input` and the shared `state` of the conversation.
    pub reads: Vec<(String, Expression)>,
    /// Changes to the shared state after the tool has completed: paths with expressions over `input`,
    /// `result` and the previous `state`.
    pub writes: Vec<(String, Expression)>,
    /// Approval that a human must give before each call; `None` requires none.
    pub approval: Option<ApprovalPolicy>,
    /// Retries and time limit.
    pub retry: ToolRetry,
}

/// Question to a human before a tool is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPolicy {
    /// Text of the question; `{member}` is replaced by a member of the model's input.
    pub message: String,
}

impl ApprovalPolicy {
    /// Renders the question for an input. Placeholders without a matching member stay unchanged.
    pub fn render(&self, input: &Value) -> String {
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

/// Retries and time limit of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRetry {
    /// Maximum number of attempts; only infrastructure failures are retried.
    pub max_attempts: u32,
    /// Delay between attempts, in milliseconds.
    pub backoff_ms: u64,
    /// Time limit of one attempt, in milliseconds; `None` means no limit.
    pub timeout_ms: Option<u64>,
}

impl Default for ToolRetry {
    fn default() -> Self {
        ToolRetry { max_attempts: 1, backoff_ms: 1000, timeout_ms: Some(60_000) }
    }
}

/// Target of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolTarget {
    /// A task.
    Task(DefinitionRef<TaskDefinition>),
    /// A workflow.
    Workflow(DefinitionRef<WorkflowDefinition>),
    /// An agent.
    Agent(DefinitionRef<Persona>),
    /// The client of the conversation, which executes the call and returns the result.
    Client,
}

/// A definition or the id of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionRef<T> {
    /// The definition itself.
    Embedded(Arc<T>),
    /// Id of a definition; resolved when it is used.
    Id(Arc<str>),
}

/// Creates a tool that accepts any object and has no target.
pub fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_string(),
        input_schema: json!({"type": "object"}),
        ..ToolDefinition::default()
    }
}

impl ToolDefinition {
    setters! {
        /// Sets the description.
        description(self, text: &str) => self.description = text.to_string();
        /// Sets the JSON Schema of the input.
        input(self, schema: Value) => self.input_schema = schema;
        /// Sets the target.
        target(self, target: ToolTarget) => self.target = Some(target);
        /// Sets a task as target.
        task(self, task: &TaskDefinition) =>
            self.target = Some(ToolTarget::Task(DefinitionRef::Embedded(Arc::new(task.clone()))));
        /// Sets a workflow as target.
        workflow(self, workflow: &WorkflowDefinition) =>
            self.target = Some(ToolTarget::Workflow(DefinitionRef::Embedded(Arc::new(workflow.clone()))));
        /// Sets an agent as target.
        agent(self, persona: &Persona) =>
            self.target = Some(ToolTarget::Agent(DefinitionRef::Embedded(Arc::new(persona.clone()))));
        /// Sets the agent with this id as target, which may be the owner of the tool.
        agent_id(self, id: &str) => self.target = Some(ToolTarget::Agent(DefinitionRef::Id(id.into())));
        /// Sets the client as target and removes the time limit.
        client(self) => (self.target, self.retry.timeout_ms) = (Some(ToolTarget::Client), None);
        /// Requires approval by a human. `{member}` in the question is replaced by a member of the input.
        approval(self, message: &str) =>
            self.approval = Some(ApprovalPolicy { message: message.to_string() });
        /// Computes a member of the target's input from the model's `input` and the shared `state`.
        ///
        /// # Panics
        /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
        /// code.
        reads(self, member: &str, expression: &str) =>
            self.reads.push((member.to_string(), Expression::parse_static(expression)));
        /// Stores the value of an expression over `input`, `result` and `state` at a path of the shared state
        /// after the tool has completed.
        ///
        /// # Panics
        /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
        /// code.
        writes(self, path: &str, expression: &str) =>
            self.writes.push((path.to_string(), Expression::parse_static(expression)));
        /// Lets the agent continue before the tool has answered.
        asynchronous(self) => self.is_async = true;
        /// Lets the target agent join the conversation.
        loop_in(self) => self.mode = InvocationMode::LoopIn;
        /// Maps a member of the model's input to a member of the target's input.
        map(self, target: &str, source: &str) =>
            self.input_mapping.get_or_insert_default().insert(target.to_string(), source.to_string());
        /// Sets the maximum number of attempts and the delay between them, in milliseconds.
        attempts(self, max_attempts: u32, backoff_ms: u64) =>
            self.retry = ToolRetry { max_attempts, backoff_ms, ..self.retry };
        /// Sets the time limit of an attempt, in milliseconds.
        timeout_ms(self, timeout_ms: impl Into<Option<u64>>) => self.retry.timeout_ms = timeout_ms.into();
    }

    /// Returns the input of the target for an input of the model and a shared state.
    ///
    /// # Errors
    /// If an expression fails, or the mapped input is not an object.
    pub fn target_input(&self, input: &Value, shared: &Value) -> Result<Value, WorkFailure> {
        let mut target_input = self.map_input(input);
        let scope = json!({"input": input, "state": shared});
        for (member, expression) in &self.reads {
            let wrong = |error| WorkFailure::execution(format!("input of {}: {error}", self.name));
            let value = expression.evaluate(&scope).map_err(wrong)?;
            let Value::Object(members) = &mut target_input else {
                let message = "`reads` adds members, so the input of the tool must be an object";
                return Err(WorkFailure::business(ErrorCode::InvalidInput, message));
            };
            members.insert(member.clone(), value);
        }
        Ok(target_input)
    }

    /// Returns the shared state after the tool has returned `result`, or `None` if the tool does not change
    /// it.
    ///
    /// # Errors
    /// If an expression fails.
    pub fn updated_state(
        &self,
        input: &Value,
        result: &Value,
        shared: &Value,
    ) -> Result<Option<Value>, WorkFailure> {
        let scope = json!({"input": input, "result": result, "state": shared});
        let mut updated = None;
        for (path, expression) in &self.writes {
            let wrong = |error| WorkFailure::execution(format!("state after {}: {error}", self.name));
            let value = expression.evaluate(&scope).map_err(wrong)?;
            set_at_path(updated.get_or_insert_with(|| shared.clone()), path, value);
        }
        Ok(updated)
    }

    /// Applies the input mapping to an input of the model.
    fn map_input(&self, input: &Value) -> Value {
        let Some(mapping) = &self.input_mapping else { return input.clone() };
        let pick = |(target, source): (&String, &String)| {
            input.get(source).map(|value| (target.clone(), value.clone()))
        };
        Value::Object(mapping.iter().filter_map(pick).collect())
    }
}
