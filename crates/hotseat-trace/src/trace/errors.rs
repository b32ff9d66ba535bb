//! What went wrong for good in a conversation.

use super::View;
use crate::{Payload, Record};

/// Error events: a fixed list of types. A tool that failed is not one of them, for the agent is told and goes on.
#[derive(Debug, Clone)]
pub struct Errors<'a>(pub(super) View<'a>);

impl<'a> Errors<'a> {
    /// Every error.
    pub fn all(&self) -> Vec<&'a Record> {
        self.0.records().filter(|record| is_error(&record.payload)).collect()
    }

    /// How many there are.
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
