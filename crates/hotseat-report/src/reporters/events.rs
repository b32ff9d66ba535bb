//! `--json`: events of a run for programs, one line per event on standard output.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use hotseat_document::{Diagnostic, SourceSpan};
use hotseat_trace::optional_members;
use serde::Serialize;

use super::console::{ConsoleOptions, conversation};
use super::failures::FailureList;
use super::jsonl::write_line;
use super::record::{AttemptLine, ResultRecord, StartRecord, SummaryRecord, records};
use super::{Reporter, RunEvent};
use hotseat_engine::run::{AttemptPolicy, CaseRef, RunControl, RunSettings, SelectedCase};

/// Maximum number of failed cases that the summary names.
const MAX_FAILED_IDS: usize = 1_000;

/// Display options for the text of failed cases.
const TEXT_OPTIONS: ConsoleOptions =
    ConsoleOptions { color: false, width: 100, progress: false, verbose: false, wraps: true };

/// Reporter that writes events. [`EventsReporter::end`] writes the last line, the summary, when the exit code is
/// known.
pub struct EventsReporter<W> {
    out: W,
    setting: Arc<RunSettings>,
    failures: FailureList,
    ended: Option<SummaryRecord>,
}

records! {
    /// Case that starts, or would start in a dry run.
    struct TestStartRecord<'a>(selected: &'a CaseRef) {
        let case = &selected.case;
    } => {
        index: usize = selected.index,
        id: &'a str = &case.id,
        name: &'a str = &case.name,
        file: &'a str = case.place.file(),
        line: u32 = case.place.line(),
    }
}

optional_members! {
    /// End of a case.
    #[derive(Serialize)]
    struct ResultEventRecord<'a> {
        #[serde(flatten)]
        result: ResultRecord<'a>,
        /// Text of a failed case, as the console displays it.
        text?: Option<String>,
    }

    /// End of the run.
    #[derive(Serialize)]
    struct EndEventRecord<'a> {
        exit_code: u8,
        #[serde(flatten)]
        summary: Option<&'a SummaryRecord>,
        failed_ids: Vec<&'a str>,
        suggestion?: Option<String>,
    }
}

records! {
    /// Message for the user.
    struct MessageRecord<'a>(told: &'a Diagnostic, level: Option<&'static str>) {
        let place = told.place.as_ref();
    } => {
        level?: Option<&'static str> = level,
        message: Cow<'a, str> = told.bounded_message(),
        file?: Option<&'a str> = place.map(SourceSpan::file),
        line?: Option<u32> = place.map(SourceSpan::line),
        column?: Option<u32> = place.map(SourceSpan::column),
        help?: Option<&'a str> = told.help.as_deref(),
    }
}

impl<W: Write + Send> EventsReporter<W> {
    /// Creates a reporter that writes to `out`.
    pub fn new(out: W, setting: Arc<RunSettings>) -> Self {
        EventsReporter { out, setting, failures: FailureList::with_limit(MAX_FAILED_IDS), ended: None }
    }

    /// Writes the summary as the last line. Fails if it cannot be written.
    pub fn end(&mut self, exit_code: u8) -> io::Result<()> {
        let total = self.ended.as_ref().map_or(0, |summary| summary.total);
        let suggestion = self.failures.suggestion(total, self.setting.choices.rerun.as_ref());
        let failed_ids = self.failures.first().iter().map(|failed| &*failed.id).collect();
        let summary = self.ended.as_ref();
        write_line(&mut self.out, "summary", EndEventRecord { exit_code, summary, failed_ids, suggestion })
    }
}

/// Writes the summary of a run that never started. Fails if it cannot be written.
pub fn write_empty_summary(out: &mut impl Write, exit_code: u8) -> io::Result<()> {
    write_line(
        out,
        "summary",
        EndEventRecord { exit_code, summary: None, failed_ids: Vec::new(), suggestion: None },
    )
}

/// Writes a case of a dry run as a `dry_run_case` event. Fails if it cannot be written.
pub fn write_dry_run_case(out: &mut impl Write, selected: &SelectedCase) -> io::Result<()> {
    write_line(out, "dry_run_case", TestStartRecord::new(&selected.case_ref))
}

/// Writes a diagnostic as an `error` event. Fails if it cannot be written.
pub fn write_error(out: &mut impl Write, mistake: &Diagnostic) -> io::Result<()> {
    write_line(out, "error", MessageRecord::new(mistake, None))
}

/// Writes a warning as a `log` event. Fails if it cannot be written.
pub fn write_warning(out: &mut impl Write, note: &Diagnostic) -> io::Result<()> {
    write_line(out, "log", MessageRecord::new(note, Some("warning")))
}

/// Writes output of a script function as a `log` event. Fails if it cannot be written.
pub fn write_info(out: &mut impl Write, words: &str) -> io::Result<()> {
    write_line(out, "log", MessageRecord::new(&Diagnostic::new(words), Some("info")))
}

/// Start of a sweep of faults.
#[derive(Serialize)]
struct SweepStartRecord {
    runs: usize,
    combinations: usize,
}

impl<W: Write + Send> Reporter for EventsReporter<W> {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let out = &mut self.out;
        match event {
            RunEvent::Started { total, parallel, at } => {
                write_line(out, "start", StartRecord::new(*total, *parallel, *at, &self.setting))
            }
            RunEvent::CaseStarted { case, .. } => write_line(out, "test_start", TestStartRecord::new(case)),
            RunEvent::AttemptEnded { attempt, repetition } => match repetition {
                // The only attempt has the same result as its case.
                AttemptPolicy::Retried { retries: 0 } => Ok(()),
                AttemptPolicy::Retried { .. } | AttemptPolicy::Repeated { .. } => {
                    write_line(out, "test_result", AttemptLine::new(attempt, *repetition))
                }
            },
            RunEvent::CaseEnded(outcome) => {
                self.failures.record(outcome, &self.setting);
                let failed = outcome.verdict.failure.is_some();
                let text = failed.then(|| conversation(&TEXT_OPTIONS, outcome, &self.setting));
                let result = ResultRecord::new(outcome, &self.setting);
                write_line(out, "result", ResultEventRecord { result, text })
            }
            RunEvent::Stopping(wish) => {
                let words = match wish {
                    RunControl::Cancel => "cancelling running cases",
                    RunControl::Finish | RunControl::Run => "no new cases; waiting for running cases",
                };
                write_warning(out, &Diagnostic::new(words))
            }
            RunEvent::SweepStarted { runs, combinations } => {
                let started = SweepStartRecord { runs: *runs, combinations: *combinations };
                write_line(out, "fault_sweep_start", started)
            }
            RunEvent::SweepEnded(report) => write_line(out, "fault_sweep", &**report),
            RunEvent::Ended(summary) => {
                self.ended = Some(SummaryRecord::new(summary, &self.setting));
                Ok(())
            }
        }
    }
}
