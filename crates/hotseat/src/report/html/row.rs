//! What the overview of a page needs to know of a case.

use hotseat_trace::{Fault, Status};
use serde::Serialize;

use super::super::record::{SpentRecord, is_false, ms};
use crate::run::{Finding, Outcome, Setting, Told};

/// A case in the overview.
#[derive(Serialize)]
pub struct Row<'a> {
    index: usize,
    id: &'a str,
    name: &'a str,
    file: &'a str,
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    status: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    flaky: bool,
    /// The kind of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
    /// Of the attempt that stands for the case.
    turns: usize,
    calls: usize,
    ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<SpentRecord>,
    attempts: usize,
    passed_attempts: usize,
    /// What was only measured, in all attempts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    soft: Vec<SoftRow<'a>>,
}

/// A check that is only measured.
#[derive(Serialize)]
struct SoftRow<'a> {
    criterion: &'a str,
    /// Whether it holds; none where nobody could say.
    passed: Option<bool>,
}

impl<'a> Row<'a> {
    /// A case that has ended.
    pub fn of(outcome: &'a Outcome, setting: &'a Setting) -> Self {
        let (selected, verdict, told) = (&outcome.selected, &outcome.verdict, outcome.telling());
        let failure = verdict.failure.as_ref();
        let agent = setting.tested(selected);
        let turns = &told.conversation.turns;
        let checks = outcome.attempts.iter().flat_map(|attempt| &attempt.checks);
        Row {
            index: selected.index,
            id: &selected.case.id,
            name: &selected.case.name,
            file: selected.case.place.file(),
            line: selected.case.place.line(),
            agent: agent.map(|agent| &*agent.id),
            status: verdict.status.name(),
            flaky: outcome.is_flaky(),
            kind: failure.map(|failure| failure.kind.name()),
            fault: failure.map(|failure| failure.fault),
            error: failure.map(|failure| &*failure.message),
            skip_reason: verdict.skip_reason.as_deref(),
            tags: &selected.case.tags,
            turns: turns.len(),
            calls: turns.iter().map(|turn| turn.tool_calls.len()).sum(),
            ms: ms(told.duration),
            spent: told.conversation.spent().map(SpentRecord::of),
            attempts: outcome.attempts.len(),
            passed_attempts: outcome
                .attempts
                .iter()
                .filter(|attempt| attempt.verdict.status == Status::Passed)
                .count(),
            soft: checks.filter(|found| !found.check.is_hard()).map(SoftRow::of).collect(),
        }
    }
}

impl<'a> Row<'a> {
    /// A case that has begun and has not ended, with so many of its attempts over.
    pub fn begun(case: &'a Told, attempts: usize, setting: &'a Setting) -> Self {
        Row {
            index: case.index,
            id: &case.case.id,
            name: &case.case.name,
            file: case.case.place.file(),
            line: case.case.place.line(),
            agent: setting.tested(case).map(|agent| &*agent.id),
            status: "running",
            flaky: false,
            kind: None,
            fault: None,
            error: None,
            skip_reason: None,
            tags: &case.case.tags,
            turns: 0,
            calls: 0,
            ms: 0.0,
            spent: None,
            attempts,
            passed_attempts: 0,
            soft: Vec::new(),
        }
    }
}

impl<'a> SoftRow<'a> {
    /// By the name of its criterion where it has one, or by what is expected.
    fn of(found: &'a Finding) -> Self {
        let criterion = found.check.criterion.as_deref().unwrap_or(&found.verdict.expected);
        SoftRow { criterion, passed: found.error.is_none().then_some(found.verdict.passed) }
    }
}
