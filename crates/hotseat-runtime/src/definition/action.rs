//! Actions: what a step does.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Persona, Reference};
use crate::expression::Expression;
use crate::failure::{ErrorCode, Failure, InfrastructureKind};

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Stands for something real.
    Mock(Box<Mock>),
    /// Returns what it was given.
    Echo,
    /// Fails.
    Fail(Fail),
    /// Returns what it was given, some of it merged.
    Context(Context),
    /// Builds the request for a model call from the input of context assembly.
    Assemble(Assemble),
    /// Uses the agent's memory.
    Memory(Memory),
    /// Asks an agent in a conversation of its own; its answer is `response` in what the action returns.
    Agent(Reference<Persona>),
    /// Calls a function.
    Custom(Custom),
}

impl Action {
    /// What kind of action it is, in events.
    pub fn kind(&self) -> &'static str {
        match self {
            Action::Mock(_) => "mock",
            Action::Echo => "echo",
            Action::Fail(_) => "fail",
            Action::Context(_) => "context",
            Action::Assemble(_) => "assemble",
            Action::Memory(_) => "memory",
            Action::Agent(_) => "agent",
            Action::Custom(_) => "custom",
        }
    }
}

/// An action that stands for something real: it takes time, returns something that fits a schema, or fails.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mock {
    /// The JSON Schema of what it returns.
    pub schema: Option<Value>,
    /// What it returns, computed from `input`; made up to fit the schema if there is none.
    pub returns: Option<Expression>,
    /// How it fails.
    pub failure: Option<Failure>,
    /// How many attempts fail before it works; all if there is none.
    pub failing_attempts: Option<u32>,
    /// How long it takes, from and to, in milliseconds.
    pub delay_ms: (u64, u64),
    /// What its made-up values depend on, besides the run.
    pub seed: u64,
}

/// An action that fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fail {
    /// How.
    pub failure: Failure,
}

/// An action that returns what it was given, some of it merged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// What is merged.
    pub merge: Option<Merge>,
}

/// Members that become one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    /// The member that is made.
    pub target: String,
    /// The members it is made of.
    pub sources: Vec<String>,
    /// Whether lists among them are taken apart.
    pub flatten: bool,
}

/// The built-in way to a request: system prompt, what was said before, what has happened in the turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assemble {
    /// What is added to the system prompt.
    pub append_system: Option<String>,
}

/// A use of the agent's memory; what it needs is taken from the input of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Writes `content`, with `kind` and `significance` (0 to 1) if they are given.
    Write,
    /// Returns the record `id`.
    Read,
    /// Returns the best records for `query`, at most `limit`.
    Search,
    /// Returns all records.
    List,
    /// Deletes the record `id`.
    Delete,
}

/// A function that an action calls.
pub type Function = dyn Fn(&Value) -> Result<Value, Failure> + Send + Sync;

/// An action that calls a function, which must return the same for the same input.
#[derive(Clone)]
pub struct Custom {
    /// What it is called in messages.
    pub name: String,
    /// The function.
    pub function: Arc<Function>,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A function is code: what holds one cannot be written.
impl Serialize for Custom {
    fn serialize<S: serde::Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
        let message = format!("the function `{}` is code and cannot be written as data", self.name);
        Err(serde::ser::Error::custom(message))
    }
}

impl<'de> Deserialize<'de> for Custom {
    fn deserialize<D: serde::Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("a function is code and cannot be read from data"))
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.function, &other.function)
    }
}

/// A mock that returns nothing yet.
pub fn mock() -> Mock {
    Mock::default()
}

/// Returns what it is given.
pub fn echo() -> Action {
    Action::Echo
}

/// Fails with this message; the model is told.
pub fn fail(message: &str) -> Action {
    Action::Fail(Fail { failure: Failure::business(ErrorCode::ExecutionFailed, message) })
}

/// Returns what it is given.
pub fn context() -> Action {
    Action::Context(Context::default())
}

/// The built-in way to a request.
pub fn assemble() -> Assemble {
    Assemble::default()
}

/// Writes to the agent's memory.
pub fn memory_write() -> Action {
    Action::Memory(Memory::Write)
}

/// Reads a record of the agent's memory.
pub fn memory_read() -> Action {
    Action::Memory(Memory::Read)
}

/// Searches the agent's memory.
pub fn memory_search() -> Action {
    Action::Memory(Memory::Search)
}

/// Lists the agent's memory.
pub fn memory_list() -> Action {
    Action::Memory(Memory::List)
}

/// Deletes a record of the agent's memory.
pub fn memory_delete() -> Action {
    Action::Memory(Memory::Delete)
}

/// Asks an agent.
pub fn ask(persona: &Persona) -> Action {
    Action::Agent(Reference::Embedded(Arc::new(persona.clone())))
}

/// Calls a function.
pub fn custom(
    name: &str,
    function: impl Fn(&Value) -> Result<Value, Failure> + Send + Sync + 'static,
) -> Action {
    Action::Custom(Custom { name: name.to_string(), function: Arc::new(function) })
}

impl Mock {
    /// Returning something made up that fits this JSON Schema.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Returning this.
    #[must_use]
    pub fn returns(mut self, value: Value) -> Self {
        self.returns = Some(Expression::constant(value));
        self
    }

    /// Returning what this expression computes from `input`.
    ///
    /// # Panics
    /// When the expression cannot be read; definitions that are not written in code use [`Expression::parse`].
    #[must_use]
    pub fn computes(mut self, expression: &str) -> Self {
        self.returns = Some(Expression::written(expression));
        self
    }

    /// Failing with this message; the model is told.
    #[must_use]
    pub fn fails(mut self, message: &str) -> Self {
        self.failure = Some(Failure::business(ErrorCode::ExecutionFailed, message));
        self
    }

    /// Failing like a server that is down: it is tried again where that is provided for.
    #[must_use]
    pub fn fails_infrastructure(mut self, message: &str) -> Self {
        self.failure = Some(Failure::infrastructure(InfrastructureKind::Server, message));
        self
    }

    /// Working again after so many attempts.
    #[must_use]
    pub fn first_attempts(mut self, attempts: u32) -> Self {
        self.failing_attempts = Some(attempts);
        self
    }

    /// Taking this long, in milliseconds.
    #[must_use]
    pub fn delay_ms(mut self, millis: u64) -> Self {
        self.delay_ms = (millis, millis);
        self
    }

    /// Taking a while between these, in milliseconds; how long depends on the seed.
    #[must_use]
    pub fn delay_between_ms(mut self, from: u64, to: u64) -> Self {
        self.delay_ms = (from, to.max(from));
        self
    }
}

impl Assemble {
    /// With this added to the system prompt.
    #[must_use]
    pub fn append_system(mut self, text: &str) -> Self {
        self.append_system = Some(text.to_string());
        self
    }
}

impl From<Mock> for Action {
    fn from(mock: Mock) -> Action {
        Action::Mock(Box::new(mock))
    }
}

impl From<Assemble> for Action {
    fn from(assemble: Assemble) -> Action {
        Action::Assemble(assemble)
    }
}
