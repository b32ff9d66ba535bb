//! Tool calls of the conversation.

use std::sync::Arc;

use hotseat_model::{ArgumentsProgress, read_arguments};
use hotseat_trace::{TimeOffset, canonical_text, json_equal};
use serde_json::Value;

/// Maximum size of arguments that are neither an object, a list nor a text, in bytes.
const MAX_SCALAR_BYTES: usize = 1024;

/// A known tool call.
#[derive(Debug, Clone)]
pub struct KnownCall {
    /// Id in the trace. Differs from the wire id if the server used that before.
    pub trace_id: Arc<str>,
    /// Its tool.
    pub name: Arc<str>,
    /// The turn of the call.
    pub turn: usize,
    /// Its start.
    pub started: TimeOffset,
    /// Its arguments, as far as known.
    pub arguments: KnownArguments,
    /// Source of its result, if it has one.
    pub result_source: Option<ResultSource>,
    /// Hash of the result that an event brought. Snapshots may shorten results.
    pub streamed_result: Option<u64>,
    /// Error of its result, if that is one.
    pub error: Option<String>,
    /// The message that makes it, if the trace has it.
    pub message_id: Option<Arc<str>>,
    /// True if events brought it.
    pub is_streamed: bool,
    /// True if events brought it and a snapshot lists it by the same id.
    pub is_listed: bool,
}

/// Source of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSource {
    /// The agent, in its response to this request.
    Agent {
        /// Number of the request in the session.
        request: usize,
    },
    /// The client, by the script.
    Client,
}

/// The arguments of a call.
#[derive(Debug, Clone)]
pub enum KnownArguments {
    /// Not received yet.
    Unknown,
    Json(Value),
    /// Text that is not JSON.
    Invalid(String),
    /// The run ended before their text and the end of the call.
    Cut,
}

/// A server may write one number in two ways, as 1 and 1.0.
impl PartialEq for KnownArguments {
    fn eq(&self, other: &KnownArguments) -> bool {
        match (self, other) {
            (KnownArguments::Unknown, KnownArguments::Unknown)
            | (KnownArguments::Cut, KnownArguments::Cut) => true,
            (KnownArguments::Json(ours), KnownArguments::Json(theirs)) => json_equal(ours, theirs),
            (KnownArguments::Invalid(ours), KnownArguments::Invalid(theirs)) => ours == theirs,
            (
                KnownArguments::Unknown
                | KnownArguments::Json(_)
                | KnownArguments::Invalid(_)
                | KnownArguments::Cut,
                _,
            ) => false,
        }
    }
}

impl KnownArguments {
    /// Parses streamed arguments. An empty text and `null` mean an empty object.
    pub fn parse(text: &str) -> Self {
        read_arguments(text).map_or_else(|_| KnownArguments::Invalid(text.to_string()), KnownArguments::Json)
    }

    /// Returns true if streamed arguments cannot be complete. Each chunk may ask, so long ones are not parsed.
    pub fn is_incomplete(received: &ArgumentsProgress) -> bool {
        match received.text().trim_start() {
            "" => false,
            text if text.starts_with(['{', '[', '"']) => !received.are_complete(),
            text => text.len() > MAX_SCALAR_BYTES || read_arguments(text).is_err(),
        }
    }

    /// Returns the arguments as a text. Equal arguments have equal texts.
    pub fn canonical_text(&self) -> String {
        match self {
            KnownArguments::Unknown | KnownArguments::Cut => String::new(),
            KnownArguments::Json(value) => canonical_text(value),
            KnownArguments::Invalid(broken) => format!("broken {broken}"),
        }
    }

    /// Returns true if the arguments are unknown or empty, which may mean that they were lost.
    pub fn is_empty(&self) -> bool {
        match self {
            KnownArguments::Unknown | KnownArguments::Cut => true,
            KnownArguments::Json(Value::Object(members)) => members.is_empty(),
            KnownArguments::Json(_) | KnownArguments::Invalid(_) => false,
        }
    }

    /// Returns true if both arguments are known, not empty, and differ, so that they belong to different
    /// calls.
    pub fn contradicts(&self, other: &KnownArguments) -> bool {
        self.is_whole() && other.is_whole() && self != other
    }

    /// Returns true if the arguments are known and not empty.
    pub fn is_whole(&self) -> bool {
        matches!(self, KnownArguments::Json(_)) && !self.is_empty()
    }
}

impl KnownCall {
    /// Returns true if the server had not used its id for an earlier call.
    pub fn has_unique_id(&self, id: &str) -> bool {
        *self.trace_id == *id
    }
}
