//! Errors of the run store.

use std::fmt;
use std::path::Path;

/// Error while saving or reading runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum RunStoreError {
    /// There is no store, or it is empty.
    NoRuns(String),
    /// No run matches a selector, or several runs match.
    NoSuchRun(String),
    /// The file cannot be used.
    Unusable(String),
}

impl RunStoreError {
    /// Error of SQLite for a file.
    pub(super) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        RunStoreError::Unusable(format!("{}: {error}", path.display()))
    }

    /// The file contains data that cannot be parsed.
    pub(super) fn unreadable(path: &Path, words: impl fmt::Display) -> Self {
        RunStoreError::Unusable(format!("{}: the saved runs cannot be read: {words}", path.display()))
    }

    /// The stored rows of a run were altered.
    pub(super) fn damaged_run(path: &Path, run: &str, words: &str) -> Self {
        let help = "restore the file from a backup or move it away; the next run creates a new one";
        RunStoreError::Unusable(format!(
            "{}: the store is damaged at run {run}: {words}; {help}",
            path.display()
        ))
    }

    /// A file or folder cannot be created or used.
    pub(crate) fn from_io(path: &Path, error: &std::io::Error) -> Self {
        RunStoreError::Unusable(format!("{}: {error}", path.display()))
    }
}
