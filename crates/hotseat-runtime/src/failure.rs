//! Failures of work outside the state machines, and their retry classification.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::{ErrorInfo, named};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Result of requested work. The value is shared with the events that record it.
pub type WorkResult = Result<Arc<Value>, WorkFailure>;

/// Failure of requested work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkFailure {
    /// Temporary failure of infrastructure; another attempt may succeed.
    Infrastructure {
        /// Kind of the infrastructure failure.
        kind: InfrastructureKind,
        /// Message for users.
        message: String,
    },
    /// Permanent failure of the work itself.
    Business {
        /// Error code of the failure.
        code: ErrorCode,
        /// Message for the model and for users.
        message: String,
    },
}

named! {
    /// Kind of an infrastructure failure.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum InfrastructureKind {
        /// Connection failure.
        Network = "network",
        /// Time limit exceeded.
        Timeout = "timeout",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// Server error.
        Server = "server",
    }
}

named! {
    /// Error code that a tool reports.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum ErrorCode {
        /// The tool ran and failed.
        ExecutionFailed = "EXECUTION_FAILED",
        /// The tool exceeded its time limit.
        Timeout = "TIMEOUT",
        /// Unknown tool, task, workflow or agent.
        NotFound = "NOT_FOUND",
        /// A human declined the call.
        PermissionDenied = "PERMISSION_DENIED",
        /// The input does not match the schema.
        InvalidInput = "INVALID_INPUT",
        /// The called agent declined.
        AgentDeclined = "AGENT_DECLINED",
        /// Bug in the runtime.
        InternalError = "INTERNAL_ERROR",
    }
}

impl WorkFailure {
    /// Creates a business failure.
    pub fn business(code: ErrorCode, message: impl Into<String>) -> Self {
        WorkFailure::Business { code, message: message.into() }
    }

    /// Creates the business failure of work that ran and failed.
    pub fn execution(message: impl Into<String>) -> Self {
        WorkFailure::business(ErrorCode::ExecutionFailed, message)
    }

    /// Creates an infrastructure failure.
    pub fn infrastructure(kind: InfrastructureKind, message: impl Into<String>) -> Self {
        WorkFailure::Infrastructure { kind, message: message.into() }
    }

    /// Returns true if another attempt may succeed.
    pub fn can_retry(&self) -> bool {
        match self {
            WorkFailure::Infrastructure { .. } => true,
            WorkFailure::Business { .. } => false,
        }
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        match self {
            WorkFailure::Infrastructure { message, .. } | WorkFailure::Business { message, .. } => message,
        }
    }

    /// Returns the error code that a tool reports.
    pub fn code(&self) -> ErrorCode {
        match self {
            WorkFailure::Infrastructure { kind: InfrastructureKind::Timeout, .. } => ErrorCode::Timeout,
            WorkFailure::Infrastructure { .. } => ErrorCode::ExecutionFailed,
            WorkFailure::Business { code, .. } => *code,
        }
    }

    /// Returns the failure in the form used by events.
    pub fn info(&self) -> ErrorInfo {
        ErrorInfo {
            code: Some(self.code().name().to_string()),
            message: self.message().to_string(),
            retriable: Some(self.can_retry()),
        }
    }
}

impl fmt::Display for WorkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}
