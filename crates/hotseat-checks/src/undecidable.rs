//! Reasons why a check cannot be decided.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Reason why neither an assertion nor its negation can be decided.
#[derive(Debug, Clone)]
pub struct Undecidable(Arc<dyn Error + Send + Sync>);

impl Undecidable {
    /// Creates a reason from an error or a message.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Undecidable {
        Undecidable(reason.into().into())
    }
}

impl fmt::Display for Undecidable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Undecidable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
