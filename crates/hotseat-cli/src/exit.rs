//! Exit codes of the program.

use std::process::ExitCode;

use hotseat_engine::run::RunSummary;

/// Result of the program. The exit codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// No case failed.
    Passed,
    /// A case failed.
    Failed,
    /// Invalid arguments, configuration or case file.
    Usage,
    /// The run could not be completed: agent unreachable, report not writable.
    RunError,
    /// No case was selected.
    NothingSelected,
    /// Interrupted by the user or a signal.
    Interrupted,
}

/// How a command ends. Errors have been reported.
pub type CommandResult = Result<ExitStatus, ExitStatus>;

impl ExitStatus {
    /// Returns the status of a finished run.
    pub fn from_summary(summary: &RunSummary) -> ExitStatus {
        match summary {
            summary if summary.interrupted => ExitStatus::Interrupted,
            summary if summary.broken.is_some() || summary.never_reached() => ExitStatus::RunError,
            summary if summary.has_failed() => ExitStatus::Failed,
            _ => ExitStatus::Passed,
        }
    }

    /// Returns the exit code.
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Passed => 0,
            ExitStatus::Failed => 1,
            ExitStatus::Usage => 2,
            ExitStatus::RunError => 3,
            ExitStatus::NothingSelected => 4,
            ExitStatus::Interrupted => 130,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
