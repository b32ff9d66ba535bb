//! Tests that are programs.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::AttemptFailure;

use super::Session;
use crate::cases::TestCase;
use hotseat_targets::BoxFuture;

/// A case, and its body if a program runs the conversation.
#[derive(Debug, Clone)]
pub struct DrivenCase {
    /// The case. Shared, since it is large and passed on many times.
    pub case: Arc<TestCase>,
    /// The body; `None` if the turns are written.
    pub body: Option<Arc<dyn CaseBody>>,
}

impl From<Arc<TestCase>> for DrivenCase {
    fn from(case: Arc<TestCase>) -> Self {
        DrivenCase { case, body: None }
    }
}

/// The program of a case that has no written turns: it drives the session itself.
///
/// The result is what the session has recorded. A body that continues after the end of the case, or hides a
/// failure, does not change it.
pub trait CaseBody: fmt::Debug + Send + Sync {
    /// Drives the session through the conversation. Fails if the body itself fails. The error is ignored if
    /// the case has ended before.
    fn drive<'a>(&'a self, session: &'a mut Session<'_>) -> BoxFuture<'a, Result<(), AttemptFailure>>;
}
