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
    /// The tool whose calls the function reads, if it is known to read calls.
    tool: Option<Arc<str>>,
}

impl RustCheck {
    /// Creates a check from its description and its function.
    pub fn new(
        words: impl Into<Arc<str>>,
        decide: impl Fn(TurnScope<'_>) -> Result<(bool, String), Undecidable> + Send + Sync + 'static,
    ) -> RustCheck {
        RustCheck { description: words.into(), decide: Arc::new(decide), tool: None }
    }

    /// Sets the tool whose calls the function reads.
    #[must_use]
    pub fn with_tool(self, name: &str) -> RustCheck {
        RustCheck { tool: Some(name.into()), ..self }
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

    fn reads_calls(&self) -> bool {
        self.tool.is_some()
    }

    fn expected_tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }
}

impl fmt::Debug for RustCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Native({})", self.description)
    }
}
