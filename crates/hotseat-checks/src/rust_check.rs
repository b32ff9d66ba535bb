//! A check that a Rust function of the test program decides.

use std::fmt;
use std::sync::Arc;

use hotseat_trace::TurnScope;

use super::{CheckBehavior, CheckDecision, Undecidable};

type DecideFn = dyn Fn(TurnScope<'_>) -> Result<(bool, String), Undecidable> + Send + Sync;

/// Check that a Rust function decides. The function returns whether the assertion is true and the actual
/// value, or an error.
#[derive(Clone)]
pub struct RustCheck {
    description: Arc<str>,
    decide: Arc<DecideFn>,
}

impl RustCheck {
    /// Creates a check from its description and its function.
    pub fn new(
        words: impl Into<Arc<str>>,
        decide: impl Fn(TurnScope<'_>) -> Result<(bool, String), Undecidable> + Send + Sync + 'static,
    ) -> RustCheck {
        RustCheck { description: words.into(), decide: Arc::new(decide) }
    }

    /// Calls the function for a scope.
    pub(super) fn call(&self, scope: TurnScope<'_>) -> Result<(bool, String), Undecidable> {
        (self.decide)(scope)
    }
}

impl CheckBehavior for RustCheck {
    fn describe(&self) -> String {
        self.description.to_string()
    }

    fn decide(&self, scope: TurnScope<'_>) -> CheckDecision {
        CheckDecision::from_result(self.call(scope))
    }

    fn may_take_long(&self) -> bool {
        true
    }
}

impl fmt::Debug for RustCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Native({})", self.description)
    }
}
