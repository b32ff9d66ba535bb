//! Tests that are programs.

use std::fmt;

use hotseat_trace::AttemptFailure;

use super::Session;
use crate::targets::BoxFuture;

/// The program of a case that has no written turns: it drives the session itself.
///
/// The result is what the session has recorded. A body that continues after the end of the case, or hides a
/// failure, does not change it.
pub trait CaseBody: fmt::Debug + Send + Sync {
    /// Drives the session through the conversation.
    ///
    /// # Errors
    /// If the body itself fails. The error is ignored if the case has ended before.
    fn drive<'a>(&'a self, session: &'a mut Session<'_>) -> BoxFuture<'a, Result<(), AttemptFailure>>;

    /// Returns the source code, if known.
    fn source(&self) -> Option<&str> {
        None
    }
}
