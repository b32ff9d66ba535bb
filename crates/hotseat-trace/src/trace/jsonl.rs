//! Traces as JSON Lines: one record per line.

use super::Trace;
use crate::EventRecord;

/// A line that is not a valid record.
#[derive(Debug, thiserror::Error)]
#[error("line {line} is not a valid event: {error}")]
pub struct TraceError {
    /// Line number, from 1.
    pub line: usize,
    /// Error in the line.
    #[source]
    pub error: serde_json::Error,
}

impl Trace {
    /// Writes the trace as JSON Lines; every line ends with a newline.
    ///
    /// # Errors
    /// If a record cannot be written as JSON, which no record built by this crate causes.
    pub fn to_jsonl(&self) -> serde_json::Result<String> {
        let mut text = String::new();
        for record in self.all() {
            text.push_str(&serde_json::to_string(record)?);
            text.push('\n');
        }
        Ok(text)
    }

    /// Reads JSON Lines and skips blank lines. Events of unknown types are kept unchanged.
    ///
    /// # Errors
    /// At the first line that is not a record.
    pub fn from_jsonl(text: &str) -> Result<Trace, TraceError> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let records = lines.map(|(index, line)| {
            serde_json::from_slice::<EventRecord>(line.as_bytes())
                .map_err(|error| TraceError { line: index + 1, error })
        });
        records.collect::<Result<Vec<_>, _>>().map(Trace::new)
    }
}
