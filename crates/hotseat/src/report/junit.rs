//! `.xml`: JUnit, as CI servers read it. One `testsuite` for each file, in the order of the files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use hotseat_trace::Status;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::record::rfc3339;
use super::{Reporter, RunEvent};
use crate::run::Attempt;

/// Writes JUnit when the run has ended: the format wants its counts first.
pub struct JUnit {
    file: File,
    suites: BTreeMap<String, Vec<(usize, TestCase)>>,
}

impl JUnit {
    /// A report to a file that is still empty.
    pub fn new(file: File) -> Self {
        JUnit { file, suites: BTreeMap::new() }
    }
}

impl Reporter for JUnit {
    fn report(&mut self, event: &RunEvent<'_>) -> io::Result<()> {
        match event {
            RunEvent::CaseEnded(attempt) => {
                let suite = attempt.selected.suite.shown.to_string();
                self.suites.entry(suite).or_default().push((attempt.selected.index, test_case(attempt)));
                Ok(())
            }
            RunEvent::Ended(summary) => {
                let mut report = Report::new("hotseat");
                report.set_time(summary.duration);
                for (name, mut cases) in std::mem::take(&mut self.suites) {
                    cases.sort_by_key(|(index, _)| *index);
                    let mut suite = TestSuite::new(name);
                    suite.set_time(cases.iter().filter_map(|(_, case)| case.time).sum());
                    suite.add_test_cases(cases.into_iter().map(|(_, case)| case));
                    report.add_test_suite(suite);
                }
                let mut out = BufWriter::new(&self.file);
                report.serialize(&mut out).map_err(io::Error::other)?;
                out.flush()
            }
            RunEvent::Started { .. } | RunEvent::CaseStarted(_) | RunEvent::Stopping(_) => Ok(()),
        }
    }
}

fn test_case(attempt: &Attempt) -> TestCase {
    let case = &attempt.selected.case;
    let status = match (attempt.verdict.status, &attempt.verdict.failure) {
        (Status::Passed, _) | (Status::Failed, None) => TestCaseStatus::success(),
        (Status::Skipped, _) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(attempt.verdict.skip_reason.clone().unwrap_or_default());
            status
        }
        (Status::Failed, Some(failure)) => {
            let kind = match failure.kind {
                hotseat_trace::FailureKind::Assertion => NonSuccessKind::Failure,
                _ => NonSuccessKind::Error,
            };
            let mut status = TestCaseStatus::non_success(kind);
            status.set_type(failure.kind.name()).set_message(failure.message.clone());
            status.set_description(failure.detail.clone().unwrap_or_else(|| failure.message.clone()));
            status
        }
    };
    let mut test_case = TestCase::new(case.name.clone(), status);
    test_case.set_classname(attempt.selected.suite.shown.to_string()).set_time(attempt.duration);
    test_case.extra.insert("file".into(), case.place.file().into());
    test_case.extra.insert("line".into(), case.place.line().to_string().into());
    test_case.extra.insert("timestamp".into(), rfc3339(attempt.started_at).into());
    if attempt.verdict.status == Status::Failed {
        test_case.set_system_out(transcript(attempt));
    }
    test_case
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
