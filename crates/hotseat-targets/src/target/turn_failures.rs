//! Failures of turns that all protocols have.

use hotseat_document::excerpt;
use hotseat_model::reported_error;
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
    let error = reported_error(Some(error))?;
    let message = match error {
        Value::Object(members) => {
            let message =
                members.get("message").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
            message.map_or_else(|| error.to_string(), str::to_string)
        }
        other => plain_text(other),
    };
    let code = error.get("code").filter(|code| !code.is_null()).map(plain_text);
    Some(ErrorInfo { code, message, retriable: None })
}

/// Returns the data of an event that is named as an error.
pub(crate) fn error_event_data(data: &str) -> Value {
    match data.trim() {
        "[DONE]" => Value::Null,
        data => serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_string())),
    }
}

/// Returns the error in an event that is named as one: `told` is its data, which is the error or contains it as `error`.
pub(crate) fn parse_error_event(told: &Value) -> ErrorInfo {
    parse_error(&told["error"]).or_else(|| parse_error(told)).unwrap_or_else(|| ErrorInfo {
        code: None,
        message: match told {
            Value::Null | Value::String(_) => "an event named `error`".to_string(),
            told => format!("an event named `error`: {}", excerpt(&told.to_string(), 200)),
        },
        retriable: None,
    })
}
