//! Values of records: durations, times and failure messages in their documented form.

use std::time::Duration;

use hotseat_engine::run::Attempt;
use hotseat_trace::{AttemptFailure, FailureKind, Millis};

/// Version of the report format: `major.minor`. New members increase the minor number.
pub const VERSION: &str = "1.8";

pub fn ms(duration: Duration) -> f64 {
    (duration.as_micros() as f64) / 1000.0
}

/// Formats a wall time as RFC 3339.
pub fn rfc3339(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default()
}

/// Formats the reason of a failure in the words of the documentation of case files.
pub fn documented_message(failure: &AttemptFailure, attempt: &Attempt) -> String {
    match (failure.kind, attempt.limit) {
        (FailureKind::Timeout, Some(limit)) => format!("timeout after {}", format_duration(limit)),
        (FailureKind::AgentError, _) => {
            let message = &failure.message;
            format!("agent error: {}", message.strip_prefix("the agent failed: ").unwrap_or(message))
        }
        _ => failure.message.clone(),
    }
}

/// Formats a duration as in test files: `30s`, `5m`, `1m30s`, `150ms`.
fn format_duration(duration: Duration) -> String {
    let (minutes, seconds, millis) =
        (duration.as_secs() / 60, duration.as_secs() % 60, duration.subsec_millis());
    let parts = [(minutes, "m"), (seconds, "s"), (u64::from(millis), "ms")];
    parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect()
}
