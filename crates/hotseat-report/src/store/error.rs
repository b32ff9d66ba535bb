//! Errors of the run store.

use std::fmt;
use std::path::Path;

use hotseat_document::Diagnostic;
use rusqlite::ErrorCode;

/// What to do about a damaged file.
const DAMAGE_HELP: &str = "restore it from a backup, or export the run again; if it is the store of a project, you can move it \
                           away, and the next run creates a new one";

/// Returns true if a column has a value of another type than Hotseat writes.
fn is_wrong_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    )
}

/// Error while saving or reading runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum RunStoreError {
    /// There is no store, or it is empty.
    NoRuns(String),
    /// No run matches a selector, or several runs match.
    NoSuchRun(String),
    /// Several cases of a run have an id.
    #[error("{message}; {help}")]
    SeveralCases {
        /// The id, with the places of the cases.
        message: String,
        /// How to name one of them.
        help: String,
    },
    /// The file cannot be used.
    Unusable(String),
    /// The file is damaged.
    #[error("{0}; {DAMAGE_HELP}")]
    Damaged(String),
}

impl RunStoreError {
    /// Returns the error with its advice, as the command line shows it.
    pub fn to_diagnostic(&self) -> Diagnostic {
        match self {
            RunStoreError::SeveralCases { message, help } => Diagnostic::new(message).help(help),
            RunStoreError::Damaged(message) => Diagnostic::new(message).help(DAMAGE_HELP),
            RunStoreError::NoRuns(message)
            | RunStoreError::NoSuchRun(message)
            | RunStoreError::Unusable(message) => Diagnostic::new(message),
        }
    }

    /// Error of SQLite for a file.
    pub(super) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => Self::damaged(path, error),
            None if is_wrong_value(error) => Self::damaged(path, error),
            // It may as well be a file of something else.
            Some(ErrorCode::NotADatabase) => {
                RunStoreError::Unusable(format!("{}: {error}; {DAMAGE_HELP}", path.display()))
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RunStoreError::Unusable(format!(
                "{}: {error}: another program uses it; try again when that has ended",
                path.display()
            )),
            _ => RunStoreError::Unusable(format!("{}: {error}", path.display())),
        }
    }

    /// The file was deleted or replaced while a run wrote to it.
    pub(super) fn file_removed(path: &Path) -> Self {
        RunStoreError::Unusable(format!(
            "{} was deleted or replaced during the run, and with it what was saved before",
            path.display()
        ))
    }

    /// The file contains data that cannot be parsed.
    pub(super) fn damaged(path: &Path, words: impl fmt::Display) -> Self {
        RunStoreError::Damaged(format!("{} is damaged: {words}", path.display()))
    }

    /// The stored rows of a run were altered.
    pub(super) fn damaged_run(path: &Path, run: &str, words: impl fmt::Display) -> Self {
        RunStoreError::Damaged(format!("{} is damaged at run {run}: {words}", path.display()))
    }

    /// A file or folder cannot be created or used.
    pub(crate) fn from_io(path: &Path, error: &std::io::Error) -> Self {
        RunStoreError::Unusable(format!("{}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn locked_file_has_a_next_step() {
        let error = rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_BUSY),
            Some("database is locked".into()),
        );
        assert_eq!(
            RunStoreError::from_sqlite(Path::new("runs.db"), &error).to_string(),
            "runs.db: database is locked: another program uses it; try again when that has ended"
        );
    }
}
