//! Limits of scripts.

use std::time::Duration;

/// Resource limits of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptLimits {
    /// Maximum duration of a call, including module loading and awaited promises.
    pub time: Duration,
    /// True if [`time`](ScriptLimits::time) counts only while the script computes or waits for a blocking function, not
    /// while other threads have the processor.
    pub is_computing_time: bool,
    /// Maximum memory of a context, in bytes.
    pub memory: usize,
    /// Maximum stack of a call, in bytes. The thread of the context needs twice as much.
    pub stack: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        ScriptLimits {
            time: Duration::from_secs(10),
            is_computing_time: false,
            memory: 64 * 1024 * 1024,
            stack: 4 * 1024 * 1024,
        }
    }
}
