//! Actions of steps.

use std::fmt;
use std::sync::Arc;

use hotseat_model::setters;
use hotseat_trace::{named, named_variants};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DefinitionRef, Persona};
use crate::expression::Expression;
use crate::failure::{InfrastructureKind, WorkFailure};

named_variants! {
    /// Action of a step.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StepAction {
        /// Simulates a real action.
        Mock(Box<MockAction>) = "mock",
        /// Returns its input.
        Echo = "echo",
        /// Fails.
        Fail(FailAction) = "fail",
        /// Returns its input with merged members.
        Context(ContextAction) = "context",
        /// Builds a model request from the input of context assembly.
        Assemble(AssembleAction) = "assemble",
        /// Accesses the agent's memory.
        Memory(MemoryAction) = "memory",
        /// Calls an agent in a separate conversation; the result contains its answer as `response`.
        Agent(DefinitionRef<Persona>) = "agent",
        /// Calls a function.
        Custom(CustomAction) = "custom",
    }
}

/// Simulated action: takes time and returns a value or fails.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MockAction {
    /// JSON Schema of the result.
    pub schema: Option<Value>,
    /// Result, computed from `input`; `None` generates a value that matches the schema.
    pub returns: Option<Expression>,
    /// Failure of the action.
    pub failure: Option<WorkFailure>,
    /// Number of attempts that fail; `None` means all.
    pub failing_attempts: Option<u32>,
    /// Minimum and maximum duration, in milliseconds.
    pub delay_ms: (u64, u64),
    /// Seed for generated values, combined with the run id.
    pub seed: u64,
}

/// Action that always fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailAction {
    /// The failure.
    pub failure: WorkFailure,
}

/// Action that returns its input with merged members.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextAction {
    /// Members to merge.
    pub merge: Option<MemberMerge>,
}

/// Merges several members into a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberMerge {
    /// Name of the new member.
    pub target: String,
    /// Names of the merged members.
    pub sources: Vec<String>,
    /// True if lists among them are flattened.
    pub flatten: bool,
}

/// Built-in action that builds a request from system prompt, history and transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssembleAction {
    /// Text appended to the system prompt.
    pub append_system: Option<String>,
}

named! {
    /// Access to the agent's memory; parameters are taken from the action's input.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MemoryAction {
        /// Writes `content`, with optional `kind` and `significance` (0 to 1).
        Write = "write",
        /// Returns the record `id`.
        Read = "read",
        /// Returns the best matches for `query`, at most `limit`.
        Search = "search",
        /// Returns all records.
        List = "list",
        /// Deletes the record `id`.
        Delete = "delete",
    }
}

/// Function called by an action.
pub type ActionFunction = dyn Fn(&Value) -> Result<Value, WorkFailure> + Send + Sync;

/// Action that calls a function, which must be deterministic.
#[derive(Clone)]
pub struct CustomAction {
    /// Name for messages.
    pub name: String,
    /// The function.
    pub function: Arc<ActionFunction>,
}

impl fmt::Debug for CustomAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomAction").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Functions are code, so definitions that contain one cannot be serialised.
impl Serialize for CustomAction {
    fn serialize<S: serde::Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
        let message = format!("the function `{}` is code and cannot be serialised", self.name);
        Err(serde::ser::Error::custom(message))
    }
}

impl<'de> Deserialize<'de> for CustomAction {
    fn deserialize<D: serde::Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("a function is code and cannot be deserialised"))
    }
}

impl PartialEq for CustomAction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.function, &other.function)
    }
}

/// Creates a mock without a result.
pub fn mock() -> MockAction {
    MockAction::default()
}

/// Creates an action that returns its input.
pub fn echo() -> StepAction {
    StepAction::Echo
}

/// Creates an action that fails with this message, which the model receives.
pub fn fail(message: &str) -> StepAction {
    StepAction::Fail(FailAction { failure: WorkFailure::execution(message) })
}

/// Creates an action that returns its input.
pub fn context() -> StepAction {
    StepAction::Context(ContextAction::default())
}

/// Creates the built-in action that builds requests.
pub fn assemble() -> AssembleAction {
    AssembleAction::default()
}

/// Creates an action on the agent's memory.
pub fn memory(action: MemoryAction) -> StepAction {
    StepAction::Memory(action)
}

/// Creates an action that calls an agent.
pub fn ask(persona: &Persona) -> StepAction {
    StepAction::Agent(DefinitionRef::Embedded(Arc::new(persona.clone())))
}

/// Creates an action that calls a function.
pub fn custom(
    name: &str,
    function: impl Fn(&Value) -> Result<Value, WorkFailure> + Send + Sync + 'static,
) -> StepAction {
    StepAction::Custom(CustomAction { name: name.to_string(), function: Arc::new(function) })
}

impl MockAction {
    setters! {
        /// Generates results that match this JSON Schema.
        schema(self, schema: Value) => self.schema = Some(schema);
        /// Returns a constant.
        returns(self, value: Value) => self.returns = Some(Expression::constant(value));
        /// Returns the value of an expression over `input`.
        ///
        /// # Panics
        /// If the expression is invalid. Use [`Expression::parse`] for expressions that are not constants in
        /// code.
        computes(self, expression: &str) => self.returns = Some(Expression::parse_static(expression));
        /// Fails with this message, which the model receives.
        fails(self, message: &str) =>
            self.failure = Some(WorkFailure::execution(message));
        /// Fails like an unavailable server, so that retries apply.
        fails_infrastructure(self, message: &str) =>
            self.failure = Some(WorkFailure::infrastructure(InfrastructureKind::Server, message));
        /// Limits the failure to the first attempts.
        first_attempts(self, attempts: u32) => self.failing_attempts = Some(attempts);
        /// Sets the duration, in milliseconds.
        delay_ms(self, millis: u64) => self.delay_ms = (millis, millis);
        /// Sets the range of the duration, in milliseconds; the seed determines the value.
        delay_between_ms(self, from: u64, to: u64) => self.delay_ms = (from, to.max(from));
    }
}

impl AssembleAction {
    setters! {
        /// Appends text to the system prompt.
        append_system(self, text: &str) => self.append_system = Some(text.to_string());
    }
}

impl From<MockAction> for StepAction {
    fn from(mock: MockAction) -> StepAction {
        StepAction::Mock(Box::new(mock))
    }
}

impl From<AssembleAction> for StepAction {
    fn from(assemble: AssembleAction) -> StepAction {
        StepAction::Assemble(assemble)
    }
}
