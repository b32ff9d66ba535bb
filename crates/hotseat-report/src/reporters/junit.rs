//! `.xml`: JUnit for CI servers. Each suite file is one `testsuite`, in the order of the files.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::mem;
use std::time::Duration;

use hotseat_trace::{AttemptFailure, FailureKind, ResultLabel, TurnItem, VerdictStatus};

use super::Reporter;
use super::failures::labelled_message;
use super::output_file::OutputFile;
use super::record::rfc3339;
use super::spool::{ReportSpool, SpoolPiece};
use super::text::{not_run_turns, round_fraction};
use super::xml::{XmlElement, attribute_text};
use hotseat_engine::run::{Attempt, CaseOutcome, CaseStability, RunSummary, SweepOutcome, SweepRow};
use hotseat_engine::session::{CheckResult, CheckState};

/// Reporter that writes JUnit at the end of the run, because the counts come first in the format. Until then
/// the cases are spooled.
pub struct JUnitReporter {
    file: OutputFile,
    spool: ReportSpool,
    suites: BTreeMap<String, SuiteElement>,
}

/// Suite file with its cases.
#[derive(Default)]
struct SuiteElement {
    counts: ElementCounts,
    time: Duration,
    cases: Vec<CaseElement>,
}

/// The element of a case.
struct CaseElement {
    index: usize,
    start: SpoolPiece,
    /// The name: alone, with the id, and with id and number. The first that no other case has is written.
    names: [CaseName; 3],
    rest: SpoolPiece,
}

/// A possible name of a case, as written.
struct CaseName {
    /// Its hash, to find equal ones.
    hash: u64,
    attribute: SpoolPiece,
}

/// Numbers of cases.
#[derive(Clone, Copy, Default)]
struct ElementCounts {
    tests: usize,
    skipped: usize,
    errors: usize,
    failures: usize,
}

const REPORT_NAME: &str = "hotseat";
/// Name of the suite with the conversations of a sweep of faults.
const SWEEP_NAME: &str = "sweep of faults";
const FAILURE: &str = "failure";
const ERROR: &str = "error";
const SKIPPED: &str = "skipped";
/// Depth of the element of a case.
const CASE_DEPTH: usize = 2;

impl JUnitReporter {
    /// Creates a reporter that writes to a file. Fails if no temporary file can be created.
    pub fn new(file: OutputFile) -> io::Result<Self> {
        Ok(JUnitReporter { file, spool: ReportSpool::new()?, suites: BTreeMap::new() })
    }

    /// Adds the element of a case, which lacks its name. Readers tell cases apart by their names: if two cases of
    /// a suite have the same one in XML, both have their ids beside it, and also their numbers if that is not enough.
    fn add_case(
        &mut self,
        suite: &str,
        (index, (name_alone, name_with_id)): (usize, (&str, &str)),
        case: &XmlElement,
        status: Option<&'static str>,
        time: Duration,
    ) -> io::Result<()> {
        let suite = self.suites.entry(suite.to_string()).or_default();
        suite.counts.tests += 1;
        match status {
            None => {}
            Some(FAILURE) => suite.counts.failures += 1,
            Some(SKIPPED) => suite.counts.skipped += 1,
            Some(_) => suite.counts.errors += 1,
        }
        suite.time += time;
        let (start, rest) = case.to_parts(CASE_DEPTH);
        let mut spooled = |text: &str| self.spool.add(text.as_bytes());
        let start = spooled(&start)?;
        let mut name = |name: &str| {
            let attribute = attribute_text("name", name);
            Ok::<_, io::Error>(CaseName { hash: hash(&attribute), attribute: spooled(&attribute)? })
        };
        let with_number = format!("{name_with_id} #{}", index.saturating_add(1));
        let names = [name(name_alone)?, name(name_with_id)?, name(&with_number)?];
        suite.cases.push(CaseElement { index, start, names, rest: spooled(&rest)? });
        Ok(())
    }
}

impl Reporter for JUnitReporter {
    fn report_case(&mut self, outcome: &CaseOutcome) -> io::Result<()> {
        let (case_ref, case) = (&outcome.case_ref, &outcome.case_ref.case);
        let (element, status) = case_element(outcome);
        let with_id = match case.id == case.name {
            true => case.name.clone(),
            false => format!("{} [{}]", case.name, case.id),
        };
        let names = (&*case.name, &*with_id);
        self.add_case(&case_ref.suite.shown, (case_ref.index, names), &element, status, outcome.duration())
    }

    fn report_run(&mut self, summary: &RunSummary) -> io::Result<()> {
        let interrupted = summary.interrupted.then_some("the run was interrupted");
        if let Some(why) = summary.broken.as_deref().or(interrupted) {
            // A run that was not completed must not look like a run without failures.
            let error = XmlElement::new(ERROR).attribute("message", why).attribute("type", "run_error");
            let case = XmlElement::new("testcase").child(error);
            let place = (usize::MAX, (REPORT_NAME, REPORT_NAME));
            self.add_case(REPORT_NAME, place, &case, Some(ERROR), Duration::ZERO)?;
        }
        for (place, row) in summary.sweep.iter().flat_map(|sweep| sweep.rows.iter().enumerate()) {
            let (element, status) = sweep_element(row);
            let name = format!("{}: {} at {} #{}, {}", row.case, row.tool, row.server, row.nth, row.fault);
            self.add_case(SWEEP_NAME, (place, (&name, &name)), &element, status, Duration::ZERO)?;
        }
        let suites = mem::take(&mut self.suites);
        let total = suites.values().fold(ElementCounts::default(), |total, suite| ElementCounts {
            tests: total.tests + suite.counts.tests,
            skipped: total.skipped + suite.counts.skipped,
            errors: total.errors + suite.counts.errors,
            failures: total.failures + suite.counts.failures,
        });
        self.file.write(|out| {
            let mut spool = self.spool.reader()?;
            let report = counted("testsuites", REPORT_NAME, total, summary.duration);
            write!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>{}", report.start_tag(0))?;
            for (name, mut suite) in suites {
                write!(out, "{}", counted("testsuite", &name, suite.counts, suite.time).start_tag(1))?;
                suite.cases.sort_unstable_by_key(|case| case.index);
                let names = unique_names(&suite.cases);
                for (case, name) in suite.cases.into_iter().zip(names) {
                    for piece in [case.start, case.names[name].attribute, case.rest] {
                        spool.copy(piece, out)?;
                    }
                }
                out.write_all(b"\n    </testsuite>")?;
            }
            out.write_all(b"\n</testsuites>\n")
        })
    }
}

/// Returns for each case which of its names is written.
fn unique_names(cases: &[CaseElement]) -> Vec<usize> {
    let mut selected = vec![0; cases.len()];
    for longest in 1..3 {
        let mut equal_names: HashMap<u64, usize> = HashMap::new();
        for (case, name) in cases.iter().zip(&selected) {
            *equal_names.entry(case.names[*name].hash).or_default() += 1;
        }
        for (case, name) in cases.iter().zip(&mut selected) {
            if equal_names[&case.names[*name].hash] > 1 {
                *name = longest;
            }
        }
    }
    selected
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Creates an element with its numbers of cases.
fn counted(element: &'static str, name: &str, counts: ElementCounts, time: Duration) -> XmlElement {
    XmlElement::new(element)
        .attribute("name", name)
        .attribute("tests", counts.tests)
        .attribute("skipped", counts.skipped)
        .attribute("failures", counts.failures)
        .attribute("errors", counts.errors)
        .attribute("time", seconds(time))
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

/// Builds the element of a case without its name, and the name of its status if it has not passed. As in reports of Surefire, the first
/// failed attempt is the failure of a failed case, its other ones are reruns, and failed attempts of a passed case are flaky
/// failures.
fn case_element(outcome: &CaseOutcome) -> (XmlElement, Option<&'static str>) {
    let (case, verdict) = (&outcome.case_ref.case, &outcome.verdict);
    let mut failed: Vec<&Attempt> = outcome
        .attempts
        .iter()
        .map(|attempt| &**attempt)
        .filter(|attempt| attempt.verdict.failure.is_some())
        .collect();
    let mut told = outcome.representative();
    let status = match verdict.status {
        VerdictStatus::Passed => None,
        VerdictStatus::Skipped => {
            let reason = verdict.skip_reason.as_deref().unwrap_or_default();
            Some(XmlElement::new(SKIPPED).attribute("message", reason))
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
            Some(failure.map_or_else(|| XmlElement::new(ERROR), failure_element))
        }
    };
    let took = if outcome.stability.is_some() { outcome.duration() } else { told.duration };
    let mut element = XmlElement::new("testcase")
        .attribute("classname", &outcome.case_ref.suite.shown)
        .attribute("time", seconds(took))
        .attribute("file", case.place.file())
        .attribute("line", case.place.line())
        .attribute("timestamp", rfc3339(told.started_at));
    let status_name = status.as_ref().map(XmlElement::name);
    let has_passed = verdict.status == VerdictStatus::Passed;
    // An attempt that says nothing about the agent makes no passed case flaky, and a skipped case may have no reruns.
    let (reruns, others): (Vec<&Attempt>, Vec<&Attempt>) =
        failed.into_iter().partition(|attempt| match verdict.status {
            VerdictStatus::Passed => !attempt.is_invalid(),
            VerdictStatus::Failed => true,
            VerdictStatus::Skipped => false,
        });
    let mut properties: Vec<XmlElement> = Vec::new();
    properties.extend((case.id != case.name).then(|| property("id", &case.id)));
    properties.extend(outcome.stability.iter().flat_map(stability_properties));
    let others = others.into_iter().filter_map(|attempt| {
        let message = labelled_message(attempt.verdict.failure.as_ref()?);
        let kind = if attempt.is_invalid() { "invalid" } else { "failed" };
        Some(property(format!("{kind}_attempt_{}", attempt.number), message))
    });
    properties.extend(others);
    let soft = told.checks.iter().filter(|finding| !finding.check.is_hard());
    properties.extend(soft.map(soft_check_property));
    if !properties.is_empty() {
        element =
            element.child(properties.into_iter().fold(XmlElement::new("properties"), XmlElement::child));
    }
    element = status.into_iter().fold(element, XmlElement::child);
    let reruns = reruns.into_iter().filter_map(|attempt| rerun_element(attempt, has_passed));
    element = reruns.fold(element, XmlElement::child);
    if verdict.status == VerdictStatus::Failed {
        element = element.child(XmlElement::new("system-out").text(transcript(told)));
    }
    (element, status_name)
}

/// Builds the element of a conversation with a fault, and the name of its status if it shows a defect.
fn sweep_element(row: &SweepRow) -> (XmlElement, Option<&'static str>) {
    let element = XmlElement::new("testcase")
        .attribute("classname", &row.suite)
        .attribute("time", seconds(Duration::ZERO));
    let status = match row.outcome {
        outcome if !outcome.is_bad() => return (element, None),
        SweepOutcome::Error => ERROR,
        _ => FAILURE,
    };
    let outcome = row.outcome.to_string();
    let text = row.failure_text().unwrap_or_else(|| outcome.clone());
    let failure =
        XmlElement::new(status).attribute("message", &outcome).attribute("type", "fault_sweep").text(text);
    (element.child(failure), Some(status))
}

fn property(name: impl Into<String>, value: impl ToString) -> XmlElement {
    XmlElement::new("property").attribute("name", name.into()).attribute("value", value)
}

fn stability_properties(stability: &CaseStability) -> Vec<XmlElement> {
    let (interval, confidence) = stability.interval();
    let part = |part: f64| format!("{:.4}", round_fraction(part, 1e4));
    let mut all = vec![
        property("runs", stability.runs),
        property("passed_runs", stability.passed),
        property("invalid_runs", stability.invalid),
        property("redrawn_runs", stability.redrawn),
        property("pass_rate_low", part(interval.low)),
        property("pass_rate_high", part(interval.high)),
        property("pass_rate_confidence", part(confidence)),
    ];
    all.extend(stability.pass_rate().map(|rate| property("pass_rate", part(rate))));
    all.extend(stability.promise.map(|promise| property("reliability", promise.grade.name())));
    all
}

/// Builds the element of a failure. Failed checks are failures; all other problems are errors.
fn failure_element(failure: &AttemptFailure) -> XmlElement {
    let is_failure = failure.kind == FailureKind::Assertion;
    described(XmlElement::new(if is_failure { FAILURE } else { ERROR }), failure)
        .text(failure.detail.as_ref().unwrap_or(&failure.message))
}

/// Adds the message and the type: the label, and the kind of the failure, as `judge error: judge_error`.
fn described(element: XmlElement, failure: &AttemptFailure) -> XmlElement {
    let label = ResultLabel::from(failure.fault).name();
    element
        .attribute("message", labelled_message(failure))
        .attribute("type", format!("{label}: {}", failure.kind.name()))
}

/// Element for a failed attempt other than the displayed one.
fn rerun_element(attempt: &Attempt, has_passed: bool) -> Option<XmlElement> {
    let failure = attempt.verdict.failure.as_ref()?;
    let name = match (has_passed, failure.kind == FailureKind::Assertion) {
        (true, true) => "flakyFailure",
        (true, false) => "flakyError",
        (false, true) => "rerunFailure",
        (false, false) => "rerunError",
    };
    let rerun = described(XmlElement::new(name).attribute("time", seconds(attempt.duration)), failure);
    let trace = failure.detail.as_ref().unwrap_or(&failure.message);
    let rerun = rerun.child(XmlElement::new("stackTrace").text(trace));
    Some(rerun.child(XmlElement::new("system-out").text(transcript(attempt))))
}

/// Property for an informational check: its name, its result, and the reason.
fn soft_check_property(finding: &CheckResult) -> XmlElement {
    let what = finding.check.criterion.as_deref().unwrap_or(&finding.verdict.expected);
    let at = finding.turn.map_or_else(String::new, |turn| format!(" (turn {turn})"));
    let state = match finding.state() {
        CheckState::Passed => "passed",
        CheckState::Failed => "failed",
        CheckState::Errored => "errored",
    };
    property(format!("evaluate: {what}{at}"), format!("{state}: {}", finding.verdict.actual))
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
    out.extend(not_run_turns(attempt, "Turn").map(|words| words + "\n"));
    out
}
