//! Reporters, which consume the events of a run. They use only events and results of attempts.

mod ci_commands;
mod color_policy;
mod console;
mod events;
mod failures;
mod github;
pub mod html;
mod json;
mod jsonl;
mod junit;
pub(crate) mod markdown;
mod output_file;
pub(crate) mod record;
mod recordings;
mod reply;
mod saved_cases;
mod spool;
mod text;
mod trace;
mod xml;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use ci_commands::CommandGuard;
pub use color_policy::uses_color;
pub use console::{ConsoleOptions, ConsoleReporter, conversation};
pub use events::{
    EventsReporter, write_dry_run_case, write_empty_summary, write_error, write_info, write_warning,
};
pub use github::GitHubReporter;
pub use html::HtmlReporter;
pub use json::JsonReporter;
pub use jsonl::JsonLinesReporter;
pub use junit::JUnitReporter;
pub use markdown::MarkdownReporter;
pub use output_file::{
    OutputFile, create_edited_file, create_file, create_new_file, open_output_file, write_output_file,
};
pub use recordings::RecordingsReporter;
pub use reply::ReplyReporter;
pub use saved_cases::SavedCasesReporter;
pub use text::{
    format_cost, format_count, format_duration, format_percent, format_whole_percent, one_line, safe_lines,
    shell_word, wrap,
};
pub use trace::TraceReporter;

use hotseat_document::Diagnostic;
use hotseat_engine::cases::is_suite_name;
use hotseat_engine::run::{CaseOutcome, RunEvent, RunSettings, RunSummary, SweepReport};

/// Receives the events of a run.
pub trait Reporter: Send {
    /// Handles an event. Fails if output cannot be written.
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(outcome) => self.report_case(outcome),
            RunEvent::SweepEnded(sweep) => self.report_sweep(sweep),
            RunEvent::Ended(summary) => self.report_run(summary),
            RunEvent::Started { .. }
            | RunEvent::CaseStarted { .. }
            | RunEvent::AttemptEnded { .. }
            | RunEvent::Stopping(_)
            | RunEvent::SweepStarted { .. } => Ok(()),
        }
    }

    /// Handles a case that has finished or will never start. Fails if output cannot be written.
    fn report_case(&mut self, _: &CaseOutcome) -> io::Result<()> {
        Ok(())
    }

    /// Handles the end of a sweep of faults. Fails if output cannot be written.
    fn report_sweep(&mut self, _: &SweepReport) -> io::Result<()> {
        Ok(())
    }

    /// Handles the end of the run. Fails if output cannot be written.
    fn report_run(&mut self, _: &RunSummary) -> io::Result<()> {
        Ok(())
    }

    /// Writes what earlier events left unwritten. It is called when no event is pending. Fails if output
    /// cannot be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Updates displayed times. It is called from time to time while there are no events. Fails if output
    /// cannot be written.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Handles the failure of another report.
    fn output_failed(&mut self, _output: &str) {}
}

/// Format of a report file, selected by its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// `.json`: one object with all results, in the order of the cases.
    Json,
    /// `.jsonl`: a line for each finished case.
    JsonLines,
    /// `.xml`: JUnit.
    JUnit,
    /// `.html`: a self-contained page.
    Html,
    /// `.md`: a short summary.
    Markdown,
}

/// File extensions of the formats.
pub const REPORT_EXTENSIONS: &str = ".json, .jsonl, .xml, .html, .md";

impl ReportFormat {
    /// Returns the format for a file name.
    pub fn from_path(path: &Path) -> Option<ReportFormat> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(ReportFormat::Json),
            "jsonl" | "ndjson" => Some(ReportFormat::JsonLines),
            "xml" => Some(ReportFormat::JUnit),
            "html" | "htm" => Some(ReportFormat::Html),
            "md" | "markdown" => Some(ReportFormat::Markdown),
            _ => None,
        }
    }

    /// Returns true if the format is made for programs.
    pub fn is_machine_readable(self) -> bool {
        match self {
            ReportFormat::Json | ReportFormat::JsonLines | ReportFormat::JUnit => true,
            ReportFormat::Html | ReportFormat::Markdown => false,
        }
    }

    /// Returns true if the format contains the events of conversations.
    pub fn needs_events(self) -> bool {
        self == ReportFormat::Html
    }
}

/// Checks the name of a report. `flag` is the option that names it.
///
/// # Errors
/// If the next run would read a file of this name as a suite.
pub fn check_report_name(flag: &str, path: &Path) -> Result<(), Diagnostic> {
    if !is_suite_name(path) {
        return Ok(());
    }
    let message =
        format!("{flag} {}: this is the name of a suite, which the next run would read", path.display());
    Err(Diagnostic::new(message).help("choose a name for the report that does not end like that of a suite"))
}

/// Creates a reporter that writes to a file. `shown` is the display name of the file. JSON lines replace what it contains at once, other
/// formats at the end of the run. Fails if the file or a temporary one cannot be written.
pub fn open_report(
    file: OutputFile,
    format: ReportFormat,
    shown: &str,
    setting: Arc<RunSettings>,
) -> io::Result<Box<dyn Reporter>> {
    Ok(match format {
        ReportFormat::Json => Box::new(JsonReporter::new(file, shown.to_string(), setting)?),
        ReportFormat::JsonLines => Box::new(JsonLinesReporter::new(file.into_stream()?, setting)),
        ReportFormat::JUnit => Box::new(JUnitReporter::new(file)?),
        ReportFormat::Html => Box::new(HtmlReporter::new(file, shown.to_string(), setting)?),
        ReportFormat::Markdown => Box::new(MarkdownReporter::new(file, setting)),
    })
}

/// Error while writing a report file.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", .path.display())]
pub struct ReportWriteError {
    path: PathBuf,
    #[source]
    error: io::Error,
}

impl ReportWriteError {
    /// Creates an error for a file.
    pub fn new(path: &Path, error: io::Error) -> Self {
        ReportWriteError { path: path.to_path_buf(), error }
    }
}
