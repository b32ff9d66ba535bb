//! Exit codes: what a script or CI server learns without reading a word.

use std::process::ExitCode;

use hotseat::run::Summary;

/// How the program ends. The numbers are a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Nothing failed.
    Passed,
    /// Some case failed.
    Failed,
    /// Wrong usage, configuration or case file.
    Usage,
    /// The run itself could not be carried out: agent unreachable, report not writable.
    Broken,
    /// Nothing was selected.
    NothingSelected,
    /// Interrupted from outside.
    Interrupted,
}

impl Exit {
    /// What a run that has ended comes to.
    pub fn of(summary: &Summary) -> Exit {
        match summary {
            summary if summary.interrupted => Exit::Interrupted,
            summary if summary.broken.is_some() || summary.never_reached() => Exit::Broken,
            summary if summary.has_failed() => Exit::Failed,
            _ => Exit::Passed,
        }
    }

    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Exit::Passed => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Broken => 3,
            Exit::NothingSelected => 4,
            Exit::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
