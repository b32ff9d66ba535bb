//! `satisfy` with the name of a criterion, before the case has said what that is.

use std::sync::Arc;

use super::{Decided, Judging};

/// A criterion by its name. A case puts what it means in its place when it is read.
#[derive(Debug, Clone)]
pub struct Named {
    /// The name.
    pub name: Arc<str>,
    /// Who judges and how, as far as the assertion says.
    pub judging: Judging,
}

impl Named {
    pub(super) fn describe(&self) -> String {
        format!("satisfies {}", self.name)
    }

    pub(super) fn decide(&self) -> Decided {
        Decided::nothing(format!("nobody says what `{}` means", self.name))
    }
}
