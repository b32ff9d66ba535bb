//! A trace as text: one record a line.

use std::fmt;

use super::Trace;
use crate::Record;

/// A line that is not a record.
#[derive(Debug)]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub error: serde_json::Error,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} is not an event: {}", self.line, self.error)
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl Trace {
    /// The trace as JSON lines, each with its line end.
    ///
    /// # Errors
    /// When a record cannot be written as JSON, which no record built by this crate can cause.
    pub fn to_jsonl(&self) -> serde_json::Result<String> {
        let mut text = String::new();
        for record in self.all() {
            text.push_str(&serde_json::to_string(record)?);
            text.push('\n');
        }
        Ok(text)
    }

    /// Reads JSON lines; blank ones are passed over. Events of unknown types are kept as they are.
    ///
    /// # Errors
    /// At the first line that is not a record.
    pub fn from_jsonl(text: &str) -> Result<Trace, TraceError> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let records = lines.map(|(index, line)| {
            serde_json::from_str::<Record>(line).map_err(|error| TraceError { line: index + 1, error })
        });
        records.collect::<Result<Vec<_>, _>>().map(Trace::new)
    }
}
