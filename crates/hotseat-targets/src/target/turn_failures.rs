//! Failures of turns that all protocols have.

use hotseat_trace::{AttemptFailure, FailureKind};

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
