//! The context of a build without an engine: it cannot be created.

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
    /// Returns the error that this build has no engine.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: &Scripts, _: ScriptLimits, _: ScriptHost) -> Result<ScriptContext, ScriptError> {
        Err(no_engine())
    }

    /// Cancels running scripts when `stop` is signalled.
    pub fn with_stop(self, _: StopSignal) -> ScriptContext {
        self
    }

    /// Runs `code` in place of the code of a module.
    pub fn with_code(self, _: &ScriptModule, _: String) -> ScriptContext {
        self
    }

    /// Checks that a module exports a function of this name.
    ///
    /// # Errors
    /// Always.
    pub fn check_export(&mut self, _: &ScriptModule, _: &str) -> Result<(), ScriptError> {
        Err(no_engine())
    }

    /// Calls an exported function.
    ///
    /// # Errors
    /// Always.
    pub fn call(&mut self, _: &ScriptModule, _: &str, _: &[Value]) -> Result<Value, ScriptError> {
        Err(no_engine())
    }

    /// Runs a module and an entry function.
    ///
    /// # Errors
    /// Always.
    pub fn run_entry(
        &mut self,
        _: &str,
        _: &str,
        _: &ScriptModule,
        _: &[Value],
    ) -> Result<Value, ScriptError> {
        Err(no_engine())
    }

    /// Returns the console output since the last call.
    pub fn take_console(&mut self) -> Vec<ConsoleLine> {
        Vec::new()
    }

    /// Returns the memory used by the engine, in bytes.
    pub fn memory_usage(&self) -> usize {
        0
    }
}

fn no_engine() -> ScriptError {
    ScriptError::new(ScriptErrorKind::Import, NO_ENGINE)
}
