//! A recorded request with its answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ModelError, ModelReply, ModelRequest};

/// Version of the file format. Readers reject newer versions.
pub const FORMAT_VERSION: u32 = 1;

/// Format name in the header of a recording.
pub(super) const FORMAT_NAME: &str = "hotseat-model-traffic";

/// The first line of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordingHeader {
    pub(super) format: String,
    pub(super) version: u32,
    /// Name of the recorded model.
    pub(super) model: String,
}

/// A request with its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedExchange {
    /// [Digest](digest()) of the request.
    pub digest: String,
    /// The request, including its position.
    pub request: ModelRequest,
    /// Duration of the call in milliseconds.
    pub took_ms: u64,
    /// Result of the call.
    pub outcome: RecordedAnswer,
}

/// Result of a recorded call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedAnswer {
    /// The model replied.
    Reply(ModelReply),
    /// The call failed.
    Error(ModelError),
}

impl From<Result<ModelReply, ModelError>> for RecordedAnswer {
    fn from(answer: Result<ModelReply, ModelError>) -> Self {
        match answer {
            Ok(reply) => RecordedAnswer::Reply(reply),
            Err(error) => RecordedAnswer::Error(error),
        }
    }
}

impl From<RecordedAnswer> for Result<ModelReply, ModelError> {
    fn from(outcome: RecordedAnswer) -> Self {
        match outcome {
            RecordedAnswer::Reply(reply) => Ok(reply),
            RecordedAnswer::Error(error) => Err(error),
        }
    }
}

/// Returns a short hash of a request without its position; equal requests have equal digests. It helps to
/// find a request in a file; replay compares the requests themselves.
pub fn digest(request: &ModelRequest) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in canonical_json(request).to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Returns the request as JSON, without its position and with sorted keys, for comparison.
pub(super) fn canonical_json(request: &ModelRequest) -> Value {
    // A request contains only text, numbers and JSON, so serialisation cannot fail.
    let mut value = serde_json::to_value(request).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        members.shift_remove("position");
    }
    value.sort_all_objects();
    value
}
