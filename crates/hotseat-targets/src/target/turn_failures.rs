//! Failures of turns that all protocols have.

use hotseat_trace::{AttemptFailure, ErrorInfo, FailureKind, plain_text};
use serde_json::Value;

use crate::connection::arrivals::{ReadError, SourceError};
use crate::connection::http::idle_timeout;
use crate::connection::{TurnError, TurnLimits};

/// Creates the failure of a turn in which the agent violates its protocol.
pub(crate) fn protocol_error(message: impl ToString) -> TurnError {
    AttemptFailure::new(FailureKind::ProtocolError, message).into()
}

/// Creates the failure of a turn that cannot be read. `broken` describes that the source broke.
pub(crate) fn read_failure(
    error: ReadError,
    limits: TurnLimits<'_>,
    broken: impl FnOnce(SourceError) -> String,
) -> TurnError {
    match error {
        ReadError::Deadline => TurnError::Deadline,
        ReadError::Idle => idle_timeout(limits.idle).into(),
        ReadError::Limit(failure) => failure.into(),
        ReadError::Broken(error) => protocol_error(broken(error)),
    }
}

/// Parses an error value; null, false and empty values are no error.
pub(crate) fn parse_error(error: &Value) -> Option<ErrorInfo> {
    let message = match error {
        Value::Null | Value::Bool(false) => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::Array(entries) if entries.is_empty() => return None,
        Value::Object(members) if members.is_empty() => return None,
        Value::Object(members) => {
            members.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_string)
        }
        other => plain_text(other),
    };
    let code = error.get("code").filter(|code| !code.is_null()).map(plain_text);
    Some(ErrorInfo { code, message, retriable: None })
}
