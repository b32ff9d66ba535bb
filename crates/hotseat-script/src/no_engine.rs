//! The context of a build without an engine: it cannot be created.

#![expect(missing_docs, reason = "the methods are those of the other file, and nothing can call them")]

use serde_json::Value;

use crate::console::ConsoleLine;
use crate::error::{NO_ENGINE, ScriptError, ScriptErrorKind};
use crate::host::ScriptHost;
use crate::limits::ScriptLimits;
use crate::modules::{ScriptModule, Scripts};
use crate::thread::StopSignal;

/// A context that cannot be created, because this build has no engine.
#[must_use]
pub struct ScriptContext(());

impl ScriptContext {
    pub fn new(_: &Scripts, _: ScriptLimits, _: ScriptHost) -> Result<ScriptContext, ScriptError> {
        Err(no_engine())
    }

    pub fn with_stop(self, _: StopSignal) -> ScriptContext {
        self
    }

    pub fn with_code(self, _: &ScriptModule, _: String) -> ScriptContext {
        self
    }

    pub fn check_export(&mut self, _: &ScriptModule, _: &str) -> Result<(), ScriptError> {
        Err(no_engine())
    }

    pub fn call(&mut self, _: &ScriptModule, _: &str, _: &[Value]) -> Result<Value, ScriptError> {
        Err(no_engine())
    }

    pub fn run_entry(
        &mut self,
        _: &str,
        _: &str,
        _: &ScriptModule,
        _: &[Value],
    ) -> Result<Value, ScriptError> {
        Err(no_engine())
    }

    pub fn take_console(&mut self) -> Vec<ConsoleLine> {
        Vec::new()
    }

    pub fn memory_usage(&self) -> usize {
        0
    }
}

fn no_engine() -> ScriptError {
    ScriptError::new(ScriptErrorKind::Import, NO_ENGINE)
}
