//! `.xml`: JUnit, as CI servers read it. One `testsuite` for each file, in the order of the files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind, Status};
use quick_junit::{
    FlakyOrRerun, NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite,
};

use super::record::rfc3339;
use super::spool::{Piece, Spool};
use super::{Reporter, RunEvent};
use crate::run::{Attempt, Finding, Outcome, Stability, State, Summary};

/// Writes JUnit when the run has ended: the format wants its counts first. Until then the cases wait in a spool.
pub struct JUnit {
    file: File,
    spool: Spool,
    suites: BTreeMap<String, Suite>,
}

/// A file of cases.
struct Suite {
    /// The counts; it holds no cases.
    counts: TestSuite,
    time: Duration,
    /// For each case its place in the run, and its element.
    cases: Vec<(usize, Piece)>,
}

impl JUnit {
    /// A report to a file that is still empty.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new(file: File) -> io::Result<Self> {
        Ok(JUnit { file, spool: Spool::new()?, suites: BTreeMap::new() })
    }

    fn add(&mut self, outcome: &Outcome) -> io::Result<()> {
        let name = outcome.selected.suite.shown.to_string();
        self.add_to(name, outcome.selected.index, test_case(outcome), outcome.duration())
    }

    fn add_to(&mut self, name: String, place: usize, case: TestCase, took: Duration) -> io::Result<()> {
        let mut alone = TestSuite::new(name.clone());
        alone.add_test_case(case);
        let suite = self.suites.entry(name).or_insert_with_key(|name| Suite {
            counts: TestSuite::new(name.clone()),
            time: Duration::ZERO,
            cases: Vec::new(),
        });
        suite.counts.tests += alone.tests;
        suite.counts.failures += alone.failures;
        suite.counts.errors += alone.errors;
        suite.counts.skipped += alone.skipped;
        suite.time += took;
        let piece = self.spool.add(element(alone)?.as_bytes())?;
        suite.cases.push((place, piece));
        Ok(())
    }

    fn write(&mut self, summary: &Summary) -> io::Result<()> {
        if let Some(why) = &summary.broken {
            // Who reads the report must not take a run that could not be carried out for one in which nothing failed.
            let mut error = TestCaseStatus::non_success(NonSuccessKind::Error);
            error.set_type("run_error").set_message(&**why);
            self.add_to(RUN.to_string(), usize::MAX, TestCase::new(RUN, error), Duration::ZERO)?;
        }
        let mut report = Report::new(RUN);
        report.set_time(summary.duration);
        let mut all = Vec::new();
        for mut suite in mem::take(&mut self.suites).into_values() {
            suite.counts.set_time(suite.time);
            report.add_test_suite(suite.counts);
            suite.cases.sort_unstable();
            all.push(suite.cases);
        }
        // Each suite is an element without content: its cases are put into it.
        let frame = well_formed(report.to_string().map_err(io::Error::other)?);
        let mut out = BufWriter::new(&self.file);
        let mut spool = self.spool.read()?;
        let mut rest = frame.as_str();
        for cases in all {
            let begin = rest.find(SUITE).map_or(0, |at| at + SUITE.len());
            let end = begin + rest[begin..].find("/>").ok_or(io::ErrorKind::InvalidData)?;
            out.write_all(&rest.as_bytes()[..end])?;
            out.write_all(b">")?;
            for (_, piece) in cases {
                spool.copy(piece, &mut out)?;
            }
            out.write_all(b"\n    </testsuite>")?;
            rest = &rest[end + "/>".len()..];
        }
        out.write_all(rest.as_bytes())?;
        out.flush()
    }
}

const SUITE: &str = "<testsuite ";
/// What the run as a whole is called.
const RUN: &str = "hotseat";

/// The element of the only case of a suite, as it stands in a report. In texts and attributes `<` is written as an
/// entity, so what looks like the beginning or end of an element is one.
fn element(alone: TestSuite) -> io::Result<String> {
    let mut report = Report::new("");
    report.test_suites.push(alone);
    let xml = well_formed(report.to_string().map_err(io::Error::other)?);
    let begin = xml.find("<testcase ").and_then(|at| xml[..at].rfind('\n'));
    let end = xml.rfind("</testsuite>").and_then(|at| xml[..at].rfind('\n'));
    match (begin, end) {
        (Some(begin), Some(end)) => Ok(xml[begin..end].to_string()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Without the characters that XML has no place for, not even as entities.
fn well_formed(mut xml: String) -> String {
    xml.retain(|c| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..));
    xml
}

impl Reporter for JUnit {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(outcome) => self.add(outcome),
            RunEvent::Ended(summary) => self.write(summary),
            RunEvent::Started { .. }
            | RunEvent::CaseStarted { .. }
            | RunEvent::AttemptEnded { .. }
            | RunEvent::Stopping(_) => Ok(()),
        }
    }
}

/// A case. As in reports of Surefire the first attempt that failed is the failure of a case that failed; those that
/// failed behind it are reruns, and those before a case passed are flaky.
fn test_case(outcome: &Outcome) -> TestCase {
    let (case, verdict) = (&outcome.selected.case, &outcome.verdict);
    let mut failed: Vec<&Attempt> = outcome
        .attempts
        .iter()
        .map(|attempt| &**attempt)
        .filter(|attempt| attempt.verdict.failure.is_some())
        .collect();
    let mut told = outcome.telling();
    let mut status = match verdict.status {
        Status::Passed => TestCaseStatus::success(),
        Status::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(verdict.skip_reason.clone().unwrap_or_default());
            status
        }
        Status::Failed => {
            let mut failure = verdict.failure.as_ref();
            // What the runs of a case came to stands in its own failure, and is about the one that tells most.
            let first = failed.iter().find(|attempt| attempt.is_invalid() == told.is_invalid());
            if outcome.stability.is_none()
                && let Some(first) = first
            {
                (told, failure) = (*first, first.verdict.failure.as_ref());
            }
            failed.retain(|attempt| attempt.number != told.number);
            not_passed(failure)
        }
    };
    let has_passed = outcome.attempts.iter().any(|attempt| attempt.verdict.status == Status::Passed);
    status.set_rerun_kind(if has_passed { FlakyOrRerun::Flaky } else { FlakyOrRerun::Rerun });
    status.add_reruns(failed.into_iter().filter_map(rerun));
    let mut test_case = TestCase::new(case.name.clone(), status);
    let took = if outcome.stability.is_some() { outcome.duration() } else { told.duration };
    test_case.set_classname(outcome.selected.suite.shown.to_string()).set_time(took);
    test_case.extra.insert("file".into(), case.place.file().into());
    test_case.extra.insert("line".into(), case.place.line().to_string().into());
    test_case.extra.insert("timestamp".into(), rfc3339(told.started_at).into());
    if let Some(stability) = &outcome.stability {
        test_case.properties.extend(properties(stability));
    }
    for finding in told.checks.iter().filter(|finding| !finding.check.is_hard()) {
        test_case.add_property(measured(finding));
    }
    if verdict.status == Status::Failed {
        test_case.set_system_out(transcript(told));
    }
    test_case
}

/// How steady a case is.
fn properties(stability: &Stability) -> Vec<Property> {
    let (interval, confidence) = stability.interval();
    let part = |part: f64| format!("{part:.4}");
    let mut all = vec![
        Property::new("runs", stability.runs.to_string()),
        Property::new("passed_runs", stability.passed.to_string()),
        Property::new("invalid_runs", stability.invalid.to_string()),
        Property::new("redrawn_runs", stability.redrawn.to_string()),
        Property::new("pass_rate_low", part(interval.low)),
        Property::new("pass_rate_high", part(interval.high)),
        Property::new("pass_rate_confidence", part(confidence)),
    ];
    all.extend(stability.pass_rate().map(|rate| Property::new("pass_rate", part(rate))));
    all.extend(stability.promise.map(|promise| Property::new("reliability", promise.grade.name())));
    all
}

/// A check that does not hold is a failure, everything else that went wrong an error.
fn kind(failure: &Failure) -> NonSuccessKind {
    match failure.kind {
        FailureKind::Assertion => NonSuccessKind::Failure,
        _ => NonSuccessKind::Error,
    }
}

fn not_passed(failure: Option<&Failure>) -> TestCaseStatus {
    let Some(failure) = failure else { return TestCaseStatus::non_success(NonSuccessKind::Error) };
    let mut status = TestCaseStatus::non_success(kind(failure));
    status.set_type(failure.kind.name()).set_message(failure.message.clone());
    status.set_description(failure.detail.clone().unwrap_or_else(|| failure.message.clone()));
    status
}

/// An attempt that failed, beside what its case came to.
fn rerun(attempt: &Attempt) -> Option<TestRerun> {
    let failure = attempt.verdict.failure.as_ref()?;
    let mut rerun = TestRerun::new(kind(failure));
    rerun.set_type(failure.kind.name()).set_message(failure.message.clone()).set_time(attempt.duration);
    rerun.set_stack_trace(failure.detail.clone().unwrap_or_else(|| failure.message.clone()));
    rerun.set_system_out(transcript(attempt));
    Some(rerun)
}

/// A check that is only measured: what it measures, what it came to, and why.
fn measured(finding: &Finding) -> Property {
    let what = finding.check.criterion.as_deref().unwrap_or(&finding.verdict.expected);
    let at = finding.turn.map_or_else(String::new, |turn| format!(" (turn {turn})"));
    let state = match finding.state() {
        State::Passed => "passed",
        State::Failed => "failed",
        State::Errored => "errored",
    };
    Property::new(format!("evaluate: {what}{at}"), format!("{state}: {}", finding.verdict.actual))
}

/// The conversation as text.
fn transcript(attempt: &Attempt) -> String {
    let mut out = String::new();
    for turn in &attempt.conversation.turns {
        out.push_str(&format!("User: {}\n", turn.user.as_deref().unwrap_or_default()));
        for call in &turn.tool_calls {
            let result = call.result.as_ref().map_or_else(|| "no result".to_string(), |result| result.text());
            out.push_str(&format!("Tool: {}({}) -> {result}\n", call.name, call.arguments));
        }
        for message in &turn.messages {
            out.push_str(&format!("Agent: {}\n", message.content));
        }
    }
    out
}
