//! A function of the program that the test is decides.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::Scope;

use super::Decided;

type Decide = dyn Fn(Scope<'_>) -> Result<(bool, String), String> + Send + Sync;

/// A function decides: it says whether what is asserted holds, and what it found; or why it has decided nothing.
#[derive(Clone)]
pub struct Native {
    words: Arc<str>,
    decide: Arc<Decide>,
}

impl Native {
    /// An assertion in words, and the function that decides it.
    pub fn new(
        words: impl Into<Arc<str>>,
        decide: impl Fn(Scope<'_>) -> Result<(bool, String), String> + Send + Sync + 'static,
    ) -> Native {
        Native { words: words.into(), decide: Arc::new(decide) }
    }

    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        self.words.to_string()
    }

    /// What it says of a scope.
    pub(super) fn ask(&self, scope: Scope<'_>) -> Result<(bool, String), String> {
        (self.decide)(scope)
    }

    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        Decided::by(self.ask(scope))
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Native({})", self.words)
    }
}
