//! Answers of tools: written in the test, or computed by functions of the test.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use hotseat_document::SourceSpan;
use hotseat_trace::{AttemptFailure, ErrorInfo, Origin, Payload, ToolCompleted, ToolFailed};
use serde_json::{Map, Value};

use super::tool_output::parse_content_output;

/// Source of the answer of a client-side tool.
#[derive(Debug, Clone)]
pub enum ToolReplySource {
    /// The test contains the answer.
    Written(ToolReply),
    /// A function computes it.
    Function(ToolFunction),
}

/// Answer to one call of a client-side tool.
pub enum PendingReply {
    /// The test contains it.
    Ready(ToolReply),
    /// A function computes it, once the future is polled.
    Computed(ToolReplyFuture),
}

impl PendingReply {
    /// Returns the answer, which a function may have to compute. Fails if the function fails: an error of the
    /// test.
    pub async fn complete(self) -> Result<ToolReply, AttemptFailure> {
        match self {
            PendingReply::Ready(reply) => Ok(reply),
            PendingReply::Computed(future) => future.await,
        }
    }
}

impl fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PendingReply::Ready(reply) => f.debug_tuple("Ready").field(reply).finish(),
            PendingReply::Computed(_) => f.write_str("Computed"),
        }
    }
}

/// Answer of a client-side tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolReply {
    /// A result.
    Content(Value),
    /// An error with this message.
    Error(String),
}

impl ToolReply {
    /// Creates the answer of a failed tool from its error and the content beside it, which both belong to the result.
    pub(crate) fn failed(error: String, content: &str) -> ToolReply {
        ToolReply::Error(match content {
            "" => error,
            content if content == error => error,
            content => format!("{error}: {content}"),
        })
    }

    /// Parses a result; text that is JSON becomes a JSON value.
    pub(crate) fn parsed(self) -> ToolReply {
        match self {
            ToolReply::Content(content) => ToolReply::Content(parse_content_output(&content)),
            ToolReply::Error(_) => self,
        }
    }

    /// Returns the event of the answered call.
    pub(crate) fn into_payload(self, turn_id: Arc<str>, tool_call_id: Arc<str>, origin: Origin) -> Payload {
        match self {
            ToolReply::Content(output) => ToolCompleted { turn_id, tool_call_id, output, origin }.into(),
            ToolReply::Error(message) => {
                let error = ErrorInfo { code: None, message, retriable: None };
                ToolFailed { turn_id, tool_call_id, error, origin }.into()
            }
        }
    }
}

/// Future of a computed answer.
pub type ToolReplyFuture = Pin<Box<dyn Future<Output = Result<ToolReply, AttemptFailure>> + Send>>;

/// A function that answers calls of a tool, as the test names it.
#[derive(Debug, Clone)]
pub struct ToolFunction {
    /// Reference to the function.
    pub reference: String,
    /// Position of the reference.
    pub place: SourceSpan,
}

/// The call that a function answers.
#[derive(Debug, Clone)]
pub struct ToolFunctionCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Number of the call among those of the tool in this conversation, from 1.
    pub number: usize,
    /// What the user answered to the questions of the tool, by their names.
    pub inputs: Map<String, Value>,
}

/// Calls the functions that answer tools.
pub trait ToolFunctionCaller: fmt::Debug + Send + Sync {
    /// Calls a function. Nothing happens before the future is polled.
    fn call(&self, function: ToolFunction, call: ToolFunctionCall) -> ToolReplyFuture;
}
