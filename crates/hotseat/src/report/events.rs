//! `--json`: what happens in a run, for programs: a line for each event on standard output, and nothing else there.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use hotseat_document::{Diagnostic, Place};
use serde::Serialize;

use super::attempts::AttemptLine;
use super::failures::Failures;
use super::jsonl::line;
use super::record::{ResultRecord, StartRecord, SummaryRecord};
use super::{Reporter, RunEvent};
use crate::run::{Control, Repetition, Selected, Setting, Told};

/// How many failed cases the summary names.
const NAMED: usize = 1_000;

/// Writes the events of a run. Its last line, the summary, is written by [`Events::end`], when it is known what the
/// whole program came to.
pub struct Events<W> {
    out: W,
    setting: Arc<Setting>,
    failures: Failures,
    ended: Option<SummaryRecord>,
}

/// A case that begins, or would.
#[derive(Serialize)]
struct TestRecord<'a> {
    index: usize,
    id: &'a str,
    name: &'a str,
    file: &'a str,
    line: u32,
}

/// The end of everything.
#[derive(Serialize)]
struct EndRecord<'a> {
    exit_code: u8,
    #[serde(flatten)]
    summary: Option<&'a SummaryRecord>,
    failed_ids: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

/// Something that a person would be told.
#[derive(Serialize)]
struct MessageRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'static str>,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

impl<W: Write + Send> Events<W> {
    /// Events to `out`.
    pub fn new(out: W, setting: Arc<Setting>) -> Self {
        Events { out, setting, failures: Failures::keeping(NAMED), ended: None }
    }

    /// Writes the summary: the last line, whatever happened.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(&mut self, exit_code: u8) -> io::Result<()> {
        let total = self.ended.as_ref().map_or(0, |summary| summary.total);
        let suggestion = self.failures.suggestion(total);
        let failed_ids = self.failures.first().iter().map(|failed| &*failed.id).collect();
        let summary = self.ended.as_ref();
        line(&mut self.out, "summary", EndRecord { exit_code, summary, failed_ids, suggestion })
    }
}

/// Writes the summary of a run that never began.
///
/// # Errors
/// When it cannot be written.
pub fn nothing_ran(out: &mut impl Write, exit_code: u8) -> io::Result<()> {
    line(out, "summary", EndRecord { exit_code, summary: None, failed_ids: Vec::new(), suggestion: None })
}

/// Writes a case of a dry run as a `dry_run_case` event.
///
/// # Errors
/// When it cannot be written.
pub fn would_run(out: &mut impl Write, selected: &Selected) -> io::Result<()> {
    line(out, "dry_run_case", TestRecord::of(&selected.told))
}

/// Writes a mistake as an `error` event.
///
/// # Errors
/// When it cannot be written.
pub fn mistake(out: &mut impl Write, mistake: &Diagnostic) -> io::Result<()> {
    line(out, "error", MessageRecord::of(mistake, None))
}

/// Writes a note as a `log` event.
///
/// # Errors
/// When it cannot be written.
pub fn note(out: &mut impl Write, note: &Diagnostic) -> io::Result<()> {
    line(out, "log", MessageRecord::of(note, Some("warning")))
}

/// Writes what a function of a script said as a `log` event.
///
/// # Errors
/// When it cannot be written.
pub fn said(out: &mut impl Write, words: &str) -> io::Result<()> {
    line(out, "log", MessageRecord::of(&Diagnostic::new(words), Some("info")))
}

impl<'a> TestRecord<'a> {
    fn of(selected: &'a Told) -> Self {
        let case = &selected.case;
        TestRecord {
            index: selected.index,
            id: &case.id,
            name: &case.name,
            file: case.place.file(),
            line: case.place.line(),
        }
    }
}

impl<'a> MessageRecord<'a> {
    fn of(told: &'a Diagnostic, level: Option<&'static str>) -> Self {
        let place = told.place.as_ref();
        MessageRecord {
            level,
            message: told.bounded_message(),
            file: place.map(Place::file),
            line: place.map(Place::line),
            column: place.map(Place::column),
            help: told.help.as_deref(),
        }
    }
}

impl<W: Write + Send> Reporter for Events<W> {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        let out = &mut self.out;
        match event {
            RunEvent::Started { total, parallel, at } => {
                line(out, "start", StartRecord::of(*total, *parallel, *at, &self.setting))
            }
            RunEvent::CaseStarted { case, .. } => line(out, "test_start", TestRecord::of(case)),
            RunEvent::AttemptEnded { attempt, repetition } => match repetition {
                // What the only attempt came to is what the case came to.
                Repetition::Retried { retries: 0 } => Ok(()),
                Repetition::Retried { .. } | Repetition::Repeated { .. } => {
                    line(out, "test_result", AttemptLine::of(attempt, *repetition))
                }
            },
            RunEvent::CaseEnded(outcome) => {
                self.failures.note(outcome);
                line(out, "result", ResultRecord::of(outcome, &self.setting))
            }
            RunEvent::Stopping(wish) => {
                let words = match wish {
                    Control::Cancel => "cancelling what runs",
                    Control::Finish | Control::Run => "no new cases; waiting for those that run",
                };
                note(out, &Diagnostic::new(words))
            }
            RunEvent::Ended(summary) => {
                self.ended = Some(SummaryRecord::of(summary, &self.setting));
                Ok(())
            }
        }
    }
}
