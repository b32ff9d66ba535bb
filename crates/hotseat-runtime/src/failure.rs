//! How work outside the machine fails, and whether trying again makes sense.

use std::fmt;

use hotseat_trace::ErrorInfo;
use serde::{Deserialize, Serialize};

/// Something that was asked for and did not come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Failure {
    /// The means failed, not the thing itself: it may work at another attempt.
    Infrastructure {
        /// What kind of means.
        kind: InfrastructureKind,
        /// What happened, for a person.
        message: String,
    },
    /// The thing itself failed, and will again.
    Business {
        /// What kind of failure it is.
        code: ErrorCode,
        /// What happened, for the model and for a person.
        message: String,
    },
}

/// Which means failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InfrastructureKind {
    /// A connection.
    Network,
    /// A time limit passed.
    Timeout,
    /// Too much was asked at once.
    RateLimit,
    /// A server.
    Server,
}

/// What kind of failure a tool reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// It ran and failed.
    ExecutionFailed,
    /// It did not end in time.
    Timeout,
    /// There is no such tool, task, workflow or agent.
    NotFound,
    /// The agent may not use it: a person declined.
    PermissionDenied,
    /// What it was given does not fit its schema.
    InvalidInput,
    /// The agent that was asked declined.
    AgentDeclined,
    /// The runtime itself is at fault.
    InternalError,
}

impl ErrorCode {
    /// The name in traces and in what the model is told.
    pub fn name(self) -> &'static str {
        match self {
            ErrorCode::ExecutionFailed => "EXECUTION_FAILED",
            ErrorCode::Timeout => "TIMEOUT",
            ErrorCode::NotFound => "NOT_FOUND",
            ErrorCode::PermissionDenied => "PERMISSION_DENIED",
            ErrorCode::InvalidInput => "INVALID_INPUT",
            ErrorCode::AgentDeclined => "AGENT_DECLINED",
            ErrorCode::InternalError => "INTERNAL_ERROR",
        }
    }
}

impl Failure {
    /// A failure of the thing itself.
    pub fn business(code: ErrorCode, message: impl Into<String>) -> Self {
        Failure::Business { code, message: message.into() }
    }

    /// A failure of the means.
    pub fn infrastructure(kind: InfrastructureKind, message: impl Into<String>) -> Self {
        Failure::Infrastructure { kind, message: message.into() }
    }

    /// Whether another attempt may succeed.
    pub fn can_retry(&self) -> bool {
        match self {
            Failure::Infrastructure { .. } => true,
            Failure::Business { .. } => false,
        }
    }

    /// What happened.
    pub fn message(&self) -> &str {
        match self {
            Failure::Infrastructure { message, .. } | Failure::Business { message, .. } => message,
        }
    }

    /// The failure as a tool reports it.
    pub fn code(&self) -> ErrorCode {
        match self {
            Failure::Infrastructure { kind: InfrastructureKind::Timeout, .. } => ErrorCode::Timeout,
            Failure::Infrastructure { .. } => ErrorCode::ExecutionFailed,
            Failure::Business { code, .. } => *code,
        }
    }

    /// The failure as events carry it.
    pub fn info(&self) -> ErrorInfo {
        ErrorInfo {
            code: Some(self.code().name().to_string()),
            message: self.message().to_string(),
            retriable: Some(self.can_retry()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}
