//! A test that is a program.

use std::fmt;

use hotseat_trace::Failure;

use super::Session;
use crate::adapters::Pending;

/// What a case does where it is not written as turns: it drives the session itself.
///
/// What it comes to is what the session has recorded. A body that goes on after the case has ended, or that keeps a
/// failure to itself, changes nothing of that.
pub trait Body: fmt::Debug + Send + Sync {
    /// Holds the conversation.
    ///
    /// # Errors
    /// What went wrong in the body itself. It counts where the case has not ended before.
    fn hold<'a>(&'a self, session: &'a mut Session<'_>) -> Pending<'a, Result<(), Failure>>;

    /// How it reads, where that is known.
    fn source(&self) -> Option<&str> {
        None
    }
}
