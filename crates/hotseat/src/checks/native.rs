//! A function of the program that the test is decides.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hotseat_trace::Scope;

use super::Decided;

type Decide = dyn Fn(Scope<'_>) -> (Option<bool>, String) + Send + Sync;

/// A function decides: it says whether what is asserted holds, none where that cannot be said, and what it found.
#[derive(Clone)]
pub struct Native {
    words: Arc<str>,
    decide: Arc<Decide>,
}

impl Native {
    /// An assertion in words, and the function that decides it.
    pub fn new(
        words: impl Into<Arc<str>>,
        decide: impl Fn(Scope<'_>) -> (Option<bool>, String) + Send + Sync + 'static,
    ) -> Native {
        Native { words: words.into(), decide: Arc::new(decide) }
    }

    /// What is asserted, in words.
    pub fn describe(&self) -> String {
        self.words.to_string()
    }

    /// A function that panics has decided nothing.
    pub(super) fn decide(&self, scope: Scope<'_>) -> Decided {
        match catch_unwind(AssertUnwindSafe(|| (self.decide)(scope))) {
            Ok((Some(holds), found)) => Decided::of(holds, found),
            Ok((None, why)) => Decided::nothing(why),
            Err(_) => Decided::nothing("the function that decides it panicked".to_string()),
        }
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Native({})", self.words)
    }
}
