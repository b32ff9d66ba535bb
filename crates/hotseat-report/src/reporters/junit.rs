//! `.xml`: JUnit for CI servers. Each suite file is one `testsuite`, in the order of the files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::time::Duration;

use hotseat_trace::{AttemptFailure, FailureKind, ResultLabel, TurnItem, VerdictStatus};
use quick_junit::{
    FlakyOrRerun, NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite,
};

use super::failures::labelled_message;
use super::record::rfc3339;
use super::spool::{ReportSpool, SpoolPiece};
use super::{Reporter, RunEvent};
use hotseat_engine::run::{Attempt, CaseOutcome, CaseStability, RunSummary};
use hotseat_engine::session::{CheckResult, CheckState};

/// Reporter that writes JUnit at the end of the run, because the counts come first in the format. Until then
/// the cases are spooled.
pub struct JUnitReporter {
    file: File,
    spool: ReportSpool,
    suites: BTreeMap<String, SuiteElement>,
}

/// Suite file with its cases.
struct SuiteElement {
    /// Counts, without cases.
    counts: TestSuite,
    time: Duration,
    /// Index of each case, with its XML element.
    cases: Vec<(usize, SpoolPiece)>,
}

impl JUnitReporter {
    /// Creates a reporter that writes to an empty file.
    ///
    /// # Errors
    /// If no temporary file can be created.
    pub fn new(file: File) -> io::Result<Self> {
        Ok(JUnitReporter { file, spool: ReportSpool::new()?, suites: BTreeMap::new() })
    }

    fn add_outcome(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        let name = outcome.case_ref.suite.shown.to_string();
        self.add_case(name, outcome.case_ref.index, test_case(outcome), outcome.duration())
    }

    fn add_case(&mut self, name: String, place: usize, case: TestCase, took: Duration) -> io::Result<()> {
        let mut alone = TestSuite::new(name.clone());
        alone.add_test_case(case);
        let suite = self.suites.entry(name).or_insert_with_key(|name| SuiteElement {
            counts: TestSuite::new(name.clone()),
            time: Duration::ZERO,
            cases: Vec::new(),
        });
        suite.counts.tests += alone.tests;
        suite.counts.failures += alone.failures;
        suite.counts.errors += alone.errors;
        suite.counts.skipped += alone.skipped;
        suite.time += took;
        let piece = self.spool.add(case_element(alone)?.as_bytes())?;
        suite.cases.push((place, piece));
        Ok(())
    }

    fn write_report(&mut self, summary: &RunSummary) -> io::Result<()> {
        if let Some(why) = &summary.broken {
            // A run that could not be completed must not look like a run without failures.
            let mut error = TestCaseStatus::non_success(NonSuccessKind::Error);
            error.set_type("run_error").set_message(&**why);
            self.add_case(
                REPORT_NAME.to_string(),
                usize::MAX,
                TestCase::new(REPORT_NAME, error),
                Duration::ZERO,
            )?;
        }
        let mut report = Report::new(REPORT_NAME);
        report.set_time(summary.duration);
        let mut all = Vec::new();
        for mut suite in mem::take(&mut self.suites).into_values() {
            suite.counts.set_time(suite.time);
            report.add_test_suite(suite.counts);
            suite.cases.sort_unstable();
            all.push(suite.cases);
        }
        // Each suite is an empty element, into which its cases are inserted.
        let frame = remove_invalid_chars(report.to_string().map_err(io::Error::other)?);
        let mut out = BufWriter::new(&self.file);
        let mut spool = self.spool.reader()?;
        let mut rest = frame.as_str();
        for cases in all {
            let begin = rest.find(SUITE_START).map_or(0, |at| at + SUITE_START.len());
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

const SUITE_START: &str = "<testsuite ";
const REPORT_NAME: &str = "hotseat";

/// Returns the XML element of the only case of a suite. `<` is escaped in text and attributes, so every `<`
/// starts a tag.
fn case_element(alone: TestSuite) -> io::Result<String> {
    let mut report = Report::new("");
    report.test_suites.push(alone);
    let xml = remove_invalid_chars(report.to_string().map_err(io::Error::other)?);
    let begin = xml.find("<testcase ").and_then(|at| xml[..at].rfind('\n'));
    let end = xml.rfind("</testsuite>").and_then(|at| xml[..at].rfind('\n'));
    match (begin, end) {
        (Some(begin), Some(end)) => Ok(xml[begin..end].to_string()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Removes characters that XML does not allow even as entities.
fn remove_invalid_chars(mut xml: String) -> String {
    xml.retain(|c| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..));
    xml
}

impl Reporter for JUnitReporter {
    fn report(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(outcome) => self.add_outcome(outcome),
            RunEvent::Ended(summary) => self.write_report(summary),
            RunEvent::Started { .. }
            | RunEvent::CaseStarted { .. }
            | RunEvent::AttemptEnded { .. }
            | RunEvent::Stopping(_)
            | RunEvent::SweepStarted { .. }
            | RunEvent::SweepEnded(_) => Ok(()),
        }
    }
}

/// Builds the element of a case. As in reports of Surefire, the first failed attempt is the failure of a
/// failed case, later ones are reruns, and failed attempts of a passed case are flaky failures.
fn test_case(outcome: &CaseOutcome) -> TestCase {
    let (case, verdict) = (&outcome.case_ref.case, &outcome.verdict);
    let mut failed: Vec<&Attempt> = outcome
        .attempts
        .iter()
        .map(|attempt| &**attempt)
        .filter(|attempt| attempt.verdict.failure.is_some())
        .collect();
    let mut told = outcome.representative();
    let mut status = match verdict.status {
        VerdictStatus::Passed => TestCaseStatus::success(),
        VerdictStatus::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(verdict.skip_reason.clone().unwrap_or_default());
            status
        }
        VerdictStatus::Failed => {
            let mut failure = verdict.failure.as_ref();
            // The failure of a repeated case summarises its runs and describes the representative one.
            let first = failed.iter().find(|attempt| attempt.is_invalid() == told.is_invalid());
            if outcome.stability.is_none()
                && let Some(first) = first
            {
                (told, failure) = (*first, first.verdict.failure.as_ref());
            }
            failed.retain(|attempt| attempt.number != told.number);
            failure_status(failure)
        }
    };
    let has_passed = outcome.attempts.iter().any(|attempt| attempt.verdict.status == VerdictStatus::Passed);
    status.set_rerun_kind(if has_passed { FlakyOrRerun::Flaky } else { FlakyOrRerun::Rerun });
    status.add_reruns(failed.into_iter().filter_map(rerun_element));
    let mut test_case = TestCase::new(case.name.clone(), status);
    let took = if outcome.stability.is_some() { outcome.duration() } else { told.duration };
    test_case.set_classname(outcome.case_ref.suite.shown.to_string()).set_time(took);
    test_case.extra.insert("file".into(), case.place.file().into());
    test_case.extra.insert("line".into(), case.place.line().to_string().into());
    test_case.extra.insert("timestamp".into(), rfc3339(told.started_at).into());
    if let Some(stability) = &outcome.stability {
        test_case.properties.extend(stability_properties(stability));
    }
    for finding in told.checks.iter().filter(|finding| !finding.check.is_hard()) {
        test_case.add_property(soft_check_property(finding));
    }
    if verdict.status == VerdictStatus::Failed {
        test_case.set_system_out(transcript(told));
    }
    test_case
}

fn stability_properties(stability: &CaseStability) -> Vec<Property> {
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

/// Failed checks are failures; all other problems are errors.
fn failure_element_kind(failure: &AttemptFailure) -> NonSuccessKind {
    match failure.kind {
        FailureKind::Assertion => NonSuccessKind::Failure,
        _ => NonSuccessKind::Error,
    }
}

fn failure_status(failure: Option<&AttemptFailure>) -> TestCaseStatus {
    let Some(failure) = failure else { return TestCaseStatus::non_success(NonSuccessKind::Error) };
    let mut status = TestCaseStatus::non_success(failure_element_kind(failure));
    status.set_type(failure_type(failure)).set_message(labelled_message(failure));
    status.set_description(failure.detail.clone().unwrap_or_else(|| failure.message.clone()));
    status
}

/// Formats `judge error: judge_error`: the label, and the kind of the failure.
fn failure_type(failure: &AttemptFailure) -> String {
    format!("{}: {}", ResultLabel::from(failure.fault).word(), failure.kind.name())
}

/// Element for a failed attempt other than the displayed one.
fn rerun_element(attempt: &Attempt) -> Option<TestRerun> {
    let failure = attempt.verdict.failure.as_ref()?;
    let mut rerun = TestRerun::new(failure_element_kind(failure));
    rerun.set_type(failure_type(failure)).set_message(labelled_message(failure));
    rerun.set_time(attempt.duration);
    rerun.set_stack_trace(failure.detail.clone().unwrap_or_else(|| failure.message.clone()));
    rerun.set_system_out(transcript(attempt));
    Some(rerun)
}

/// Property for an informational check: its name, its result, and the reason.
fn soft_check_property(finding: &CheckResult) -> Property {
    let what = finding.check.criterion.as_deref().unwrap_or(&finding.verdict.expected);
    let at = finding.turn.map_or_else(String::new, |turn| format!(" (turn {turn})"));
    let state = match finding.state() {
        CheckState::Passed => "passed",
        CheckState::Failed => "failed",
        CheckState::Errored => "errored",
    };
    Property::new(format!("evaluate: {what}{at}"), format!("{state}: {}", finding.verdict.actual))
}

/// Formats the conversation as text.
fn transcript(attempt: &Attempt) -> String {
    let mut out = String::new();
    for turn in &attempt.conversation.turns {
        out.push_str(&format!("User: {}\n", turn.user.as_deref().unwrap_or_default()));
        for item in turn.items() {
            match item {
                TurnItem::Call(call) => {
                    let result = call.result.as_ref();
                    let result = result.map_or_else(|| "no result".to_string(), |result| result.text());
                    out.push_str(&format!(
                        "Tool: {}({}){} -> {result}\n",
                        call.name,
                        call.arguments,
                        call.server_label()
                    ));
                }
                TurnItem::Message(message) => out.push_str(&format!("Agent: {}\n", message.content)),
            }
        }
    }
    out
}
