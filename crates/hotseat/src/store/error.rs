//! What can go wrong with a store, in words.

use std::fmt;
use std::path::Path;

/// Why something could not be kept, or what is kept not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// There is no store.
    NothingKept(String),
    /// No run is meant, or several are.
    NoSuchRun(String),
    /// The file cannot be used.
    Unusable(String),
}

impl StoreError {
    /// SQLite refuses something about a file.
    pub(super) fn of(path: &Path, error: &rusqlite::Error) -> Self {
        StoreError::Unusable(format!("{}: {error}", path.display()))
    }

    /// What is in a file is not what was once written there.
    pub(super) fn broken(path: &Path, words: impl fmt::Display) -> Self {
        StoreError::Unusable(format!("{}: what is kept there cannot be read: {words}", path.display()))
    }

    /// What is kept of a run is not what was once written.
    pub(super) fn damaged(path: &Path, run: &str, words: &str) -> Self {
        let help = "restore the file from a copy, or move it away: the next run makes a new one";
        StoreError::Unusable(format!(
            "{}: the store is damaged at run {run}: {words}; {help}",
            path.display()
        ))
    }

    /// A file or folder cannot be made or used.
    pub(super) fn io(path: &Path, error: &std::io::Error) -> Self {
        StoreError::Unusable(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NothingKept(words) | StoreError::NoSuchRun(words) | StoreError::Unusable(words) => {
                f.write_str(words)
            }
        }
    }
}

impl std::error::Error for StoreError {}
