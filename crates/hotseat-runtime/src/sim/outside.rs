//! Who answers what the agent's own world cannot: the client, and a person.

use hotseat_model::Timed;
use serde_json::Value;

use crate::conversation::ApprovalVerdict;
use crate::failure::Failure;
use crate::world::{ApprovalQuestion, ClientCall};

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
