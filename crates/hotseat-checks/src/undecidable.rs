//! Reasons why a check cannot be decided.

use std::error::Error;
use std::sync::Arc;

/// Reason why neither an assertion nor its negation can be decided.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct Undecidable(Arc<dyn Error + Send + Sync>);

impl Undecidable {
    /// Creates a reason from an error or a message.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Undecidable {
        Undecidable(reason.into().into())
    }
}
