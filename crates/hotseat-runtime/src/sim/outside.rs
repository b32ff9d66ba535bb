//! Who answers what the agent's own world cannot: the client, and a person.

use hotseat_model::Timed;
use serde_json::Value;

use crate::conversation::{ApprovalVerdict, OperationAddress};
use crate::failure::Failure;

/// A call that the client is to carry out.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCall {
    /// Which call.
    pub at: OperationAddress,
    /// The tool.
    pub tool: String,
    /// What it is given.
    pub input: Value,
}

/// A call that a person is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalQuestion {
    /// Which call.
    pub at: OperationAddress,
    /// The tool.
    pub tool: String,
    /// What the model gave.
    pub input: Value,
    /// The question.
    pub message: String,
}

/// What the client returns, and when; none if it never answers.
pub type Client = dyn FnMut(&ClientCall) -> Option<Timed<Result<Value, Failure>>> + Send;

/// What a person says, and when; none if the person never answers.
pub type Person = dyn FnMut(&ApprovalQuestion) -> Option<Timed<ApprovalVerdict>> + Send;

/// The people and programs outside. Who is not there never answers.
#[derive(Default)]
pub struct Outside {
    /// Carries out the client's tools.
    pub client: Option<Box<Client>>,
    /// Is asked whether tools may be called.
    pub person: Option<Box<Person>>,
}
