//! Faults: calls whose answers fail, arrive late, arrive broken or do not arrive.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hotseat_serve::FaultTrigger;
use hotseat_trace::named_variants;
use serde_json::Value;

use crate::revision::error_code;

/// Time of faults that delay an answer.
const DEFAULT_DELAY: Duration = Duration::from_millis(500);

/// A rule that breaks calls of tools.
#[derive(Debug, Clone)]
pub struct FaultRule {
    /// Name of the tool; `None` stands for all tools of the server.
    pub tool: Option<String>,
    /// Condition on the arguments; `None` matches all.
    pub arguments: Option<Arc<dyn ArgumentsMatcher>>,
    /// The calls among the matching ones that get the fault.
    pub trigger: FaultTrigger,
    /// The fault.
    pub kind: FaultKind,
}

/// Condition on the arguments of a call.
pub trait ArgumentsMatcher: fmt::Debug + Send + Sync {
    /// Whether the arguments meet the condition.
    fn matches(&self, arguments: &Value) -> bool;
}

named_variants! {
    /// A fault of one call.
    ///
    /// The effect of the call, which is the answer of the mock or of the proxied server, does not happen for
    /// [`Timeout`](Self::Timeout), [`Http`](Self::Http), [`RpcError`](Self::RpcError), [`IsError`](Self::IsError) and
    /// [`Disconnect`](Self::Disconnect). It happens for all others.
    #[derive(Debug, Clone, PartialEq)]
    pub enum FaultKind {
        /// The answer arrives later.
        Delay(Duration) = "delay",
        /// No answer arrives; the connection stays open until the client closes it.
        Timeout = "timeout",
        /// The server answers with an HTTP status.
        Http(u16) = "http",
        /// The server answers with a JSON-RPC error.
        RpcError {
            /// Code of the error.
            code: i64,
            /// Message of the error.
            message: String,
        } = "rpc_error",
        /// The tool answers with `isError`.
        IsError {
            /// Text of the result.
            text: String,
        } = "is_error",
        /// The result has no content.
        Empty = "empty",
        /// The answer is no JSON.
        Garbage = "garbage",
        /// The answer ends in its middle.
        Truncate = "truncate",
        /// The result violates the schema of the protocol, or `outputSchema` of the tool.
        SchemaViolation = "schema_violation",
        /// The result contains a text of this size.
        Huge {
            /// Size of the text in bytes.
            bytes: usize,
        } = "huge",
        /// The connection is closed before the effect.
        Disconnect = "disconnect",
        /// The effect happens, then the connection is closed without an answer.
        LostAnswer = "lost_answer",
        /// The answer arrives twice.
        DuplicateAnswer = "duplicate_answer",
        /// The answer is the one of the previous call of the tool. Reached from the second call on.
        Stale = "stale",
        /// The answer arrives in small pieces over this time.
        SlowStream(Duration) = "slow_stream",
    }
}

impl FaultKind {
    /// Returns the fault with this name and usual values.
    pub fn with_defaults(name: &str) -> Option<FaultKind> {
        Some(match name {
            "delay" => FaultKind::Delay(DEFAULT_DELAY),
            "timeout" => FaultKind::Timeout,
            "http" => FaultKind::Http(503),
            "rpc_error" => FaultKind::RpcError {
                code: error_code::INTERNAL_ERROR,
                message: "injected fault".to_string(),
            },
            "is_error" => FaultKind::IsError { text: "the tool failed".to_string() },
            "empty" => FaultKind::Empty,
            "garbage" => FaultKind::Garbage,
            "truncate" => FaultKind::Truncate,
            "schema_violation" => FaultKind::SchemaViolation,
            "huge" => FaultKind::Huge { bytes: 1024 * 1024 },
            "disconnect" => FaultKind::Disconnect,
            "lost_answer" => FaultKind::LostAnswer,
            "duplicate_answer" => FaultKind::DuplicateAnswer,
            "stale" => FaultKind::Stale,
            "slow_stream" => FaultKind::SlowStream(DEFAULT_DELAY),
            _ => return None,
        })
    }

    /// Whether the effect of the call happens despite the fault.
    pub fn has_effect(&self) -> bool {
        !matches!(
            self,
            FaultKind::Timeout
                | FaultKind::Http(_)
                | FaultKind::RpcError { .. }
                | FaultKind::IsError { .. }
                | FaultKind::Disconnect
        )
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Delay(delay) | FaultKind::SlowStream(delay) => {
                write!(f, "{} of {} ms", self.name(), delay.as_millis())
            }
            FaultKind::Http(status) => write!(f, "http {status}"),
            FaultKind::RpcError { code, .. } => write!(f, "rpc_error {code}"),
            FaultKind::Huge { bytes } => write!(f, "huge answer of {bytes} bytes"),
            kind => f.write_str(kind.name()),
        }
    }
}
