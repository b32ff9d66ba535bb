//! One request and its answer, as it is written down.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ModelError, Reply, Request};

/// The version of the file. A reader refuses a newer one.
pub const FORMAT_VERSION: u32 = 1;

/// What a recording calls itself.
pub(super) const FORMAT: &str = "hotseat-model-traffic";

/// The first line of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    /// What the recorded model is called.
    pub(super) model: String,
}

/// One request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The [digest](digest()) of the request.
    pub digest: String,
    /// The request with its position.
    pub request: Request,
    /// How long the answer took, in milliseconds.
    pub took_ms: u64,
    /// The answer.
    pub outcome: Outcome,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model replied.
    Reply(Reply),
    /// It did not.
    Error(ModelError),
}

impl From<Result<Reply, ModelError>> for Outcome {
    fn from(answer: Result<Reply, ModelError>) -> Self {
        match answer {
            Ok(reply) => Outcome::Reply(reply),
            Err(error) => Outcome::Error(error),
        }
    }
}

impl From<Outcome> for Result<Reply, ModelError> {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Reply(reply) => Ok(reply),
            Outcome::Error(error) => Err(error),
        }
    }
}

/// A short name for what is asked, whatever its position: equal for equal requests. It is for people who look for a
/// request in a file; whether two requests are equal is decided by the requests themselves.
pub fn digest(request: &Request) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in asked(request).to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// What is asked as JSON: without the position, and with the keys of all objects in order.
pub(super) fn asked(request: &Request) -> Value {
    // A request holds text, numbers and JSON, and all of that can be written.
    let mut value = serde_json::to_value(request).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        members.shift_remove("position");
    }
    value.sort_all_objects();
    value
}
