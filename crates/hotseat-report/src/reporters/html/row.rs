//! Data of a case for the overview of a page.

use hotseat_trace::{ResultLabel, VerdictStatus, optional_members};
use serde::Serialize;

use super::super::record::{SpentRecord, ms, records};
use hotseat_engine::run::{CaseOutcome, CaseRef, RunSettings};
use hotseat_engine::session::CheckResult;

optional_members! {
    /// Row of the overview.
    #[derive(Default, Serialize)]
    pub struct OverviewRow<'a> {
        index: usize,
        id: &'a str,
        name: &'a str,
        file: &'a str,
        line: u32,
        agent?: Option<&'a str>,
        status: &'static str,
        /// Word of the result, as on every output. Missing before the end of the case.
        label?: Option<ResultLabel>,
        flaky?: bool,
        /// Kind of the failure.
        kind?: Option<&'static str>,
        error?: Option<&'a str>,
        skip_reason?: Option<&'a str>,
        tags?: &'a [String],
        /// Number of turns in the representative attempt.
        turns: usize,
        calls: usize,
        ms: f64,
        spent?: Option<SpentRecord>,
        attempts: usize,
        passed_attempts: usize,
        /// Informational checks of all attempts.
        soft?: Vec<SoftCheckRow<'a>>,
    }
}

records! {
    /// Informational check, named by its criterion or by its description.
    pub struct SoftCheckRow<'a>(found: &'a CheckResult) => {
        criterion: &'a str = found.check.criterion.as_deref().unwrap_or(&found.verdict.expected),
        /// True if the check passed; null if it errored.
        passed: Option<bool> = found.error.is_none().then_some(found.verdict.passed),
    }
}

impl<'a> OverviewRow<'a> {
    /// Row of a finished case.
    pub fn new(outcome: &'a CaseOutcome, setting: &'a RunSettings) -> Self {
        let (verdict, told) = (&outcome.verdict, outcome.representative());
        let failure = verdict.failure.as_ref();
        let turns = &told.conversation.turns;
        let checks = outcome.attempts.iter().flat_map(|attempt| &attempt.checks);
        OverviewRow {
            status: verdict.status.name(),
            label: Some(ResultLabel::from_verdict(verdict)),
            flaky: outcome.is_flaky(),
            kind: failure.map(|failure| failure.kind.name()),
            error: failure.map(|failure| &*failure.message),
            skip_reason: verdict.skip_reason.as_deref(),
            turns: turns.len(),
            calls: turns.iter().map(|turn| turn.tool_calls.len()).sum(),
            ms: ms(told.duration),
            spent: told.conversation.usage_totals().map(SpentRecord::new),
            passed_attempts: outcome
                .attempts
                .iter()
                .filter(|attempt| attempt.verdict.status == VerdictStatus::Passed)
                .count(),
            soft: checks.filter(|found| !found.check.is_hard()).map(SoftCheckRow::new).collect(),
            ..OverviewRow::started(&outcome.case_ref, outcome.attempts.len(), setting)
        }
    }

    /// Row of a started case that has not ended, with the number of its finished attempts.
    pub fn started(case: &'a CaseRef, attempts: usize, setting: &'a RunSettings) -> Self {
        OverviewRow {
            index: case.index,
            id: &case.case.id,
            name: &case.case.name,
            file: case.case.place.file(),
            line: case.case.place.line(),
            agent: setting.agent_of_case(case).map(|agent| &*agent.id),
            status: "running",
            tags: &case.case.tags,
            attempts,
            ..OverviewRow::default()
        }
    }
}
