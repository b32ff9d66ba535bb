//! Simulated client and human that answer requests of the agent.

use hotseat_model::TimedValue;
use serde_json::Value;

use crate::conversation::ApprovalVerdict;
use crate::failure::WorkFailure;
use crate::world::{ApprovalQuestion, ClientToolCall};

/// Returns the result of a client call and its delay, or `None` if the client never answers.
pub type ClientResponder =
    dyn FnMut(&ClientToolCall) -> Option<TimedValue<Result<Value, WorkFailure>>> + Send;

/// Returns the answer to an approval and its delay, or `None` if the human never answers.
pub type HumanResponder = dyn FnMut(&ApprovalQuestion) -> Option<TimedValue<ApprovalVerdict>> + Send;

/// Client and human of a simulation. Missing parties never answer.
#[derive(Default)]
pub struct ExternalParties {
    /// Executes the client's tools.
    pub client: Option<Box<ClientResponder>>,
    /// Answers approval questions.
    pub human: Option<Box<HumanResponder>>,
}
