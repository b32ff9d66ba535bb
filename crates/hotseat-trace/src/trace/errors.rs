//! Error events of a conversation.

use super::ConversationView;
use crate::{EventRecord, Payload};

/// Error events: a fixed list of types. Failed tools are not included, because the agent gets the error and
/// continues.
#[derive(Debug, Clone)]
pub struct ErrorEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> ErrorEvents<'a> {
    /// Returns all error events.
    pub fn all(&self) -> Vec<&'a EventRecord> {
        self.0.records().filter(|record| is_error(&record.payload)).collect()
    }

    /// Returns the number of error events.
    pub fn count(&self) -> usize {
        self.all().len()
    }
}

fn is_error(payload: &Payload) -> bool {
    match payload {
        Payload::TurnFailed(_) | Payload::RuntimeError(_) => true,
        Payload::ContextAssemblyFailed(p) => p.retries_exhausted,
        _ => false,
    }
}
