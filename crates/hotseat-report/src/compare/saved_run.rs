//! Takes saved runs from the store for a comparison.

use hotseat_engine::run::{Attempt, CaseOutcome};
use hotseat_engine::session::CheckResult;
use hotseat_trace::{AgentToolCall, ConversationTurn};
use serde_json::json;

use super::cases::{CheckContent, ReportCall, ReportCase, ReportRun, ReportTurn, judge_name};
use super::content::{AttemptContent, FailureContent, ReliabilityContent, UsageContent, counted_attempt};
use crate::reporters::record::{
    AgentRecord, CaseFingerprints, SpentRecord, documented_message, ms, rfc3339, turn_error,
};
use crate::store::{RunStore, RunStoreError, StoredRun};

/// Takes a saved run from the store, with what its report has. One case with its events is in memory at a
/// time. Fails if the run cannot be read.
pub fn read_saved_run(store: &RunStore, head: &StoredRun) -> Result<ReportRun, RunStoreError> {
    let AgentRecord { agent_id, connector, .. } = AgentRecord::new(&head.metadata.setting);
    let cases = store.outcomes(head)?.map(|outcome| outcome.map(|outcome| ReportCase::from(&outcome)));
    Ok(ReportRun {
        label: format!("run {}", head.short_id()),
        started_at: Some(rfc3339(head.started_at)),
        agent: Some(agent_id),
        connector,
        is_incomplete: head.summary.as_ref().is_none_or(|summary| summary.interrupted),
        cases: cases.collect::<Result<_, _>>()?,
    })
}

impl From<&CaseOutcome> for ReportCase {
    fn from(outcome: &CaseOutcome) -> Self {
        let case = &outcome.case_ref.case;
        let fingerprints = CaseFingerprints::for_case(outcome);
        let (asked, checked) =
            fingerprints.map(|CaseFingerprints { asked, checked, .. }| (asked, checked)).unzip();
        let attempts = outcome.attempts.iter().map(|attempt| AttemptContent::from(&**attempt)).collect();
        let promise = outcome.stability.as_ref().and_then(|stability| stability.promise.as_ref());
        let report = ReportCase {
            id: case.id.clone(),
            name: case.name.clone(),
            file: case.place.file().to_string(),
            status: outcome.verdict.status,
            input_fingerprint: asked,
            check_fingerprint: checked,
            function_fingerprint: case.function_digest.clone(),
            judge_fingerprint: case.judge_digest.clone(),
            ..ReportCase::default()
        };
        let held = if outcome.stability.is_some() { attempts } else { counted_attempt(attempts) };
        report.with_attempts(
            held,
            promise.map(|promise| ReliabilityContent {
                rate: promise.reliability.rate,
                confidence: promise.reliability.confidence,
                max_runs: promise.reliability.max_runs,
                decided_after: promise.decided_after,
            }),
        )
    }
}

impl From<&Attempt> for AttemptContent {
    fn from(attempt: &Attempt) -> Self {
        let failure = attempt.verdict.failure.as_ref();
        // Reports list the checks of topics apart.
        let checks = attempt.checks.iter().filter(|checked| checked.topic.is_none());
        let spent = attempt.conversation.usage_totals().map(SpentRecord::new);
        AttemptContent {
            run: Some(attempt.number),
            invalid: attempt.is_invalid(),
            status: attempt.verdict.status,
            failure: failure.map(|failure| FailureContent {
                kind: failure.kind.name().to_string(),
                fault: json!(failure.fault),
            }),
            error: failure.map(|failure| documented_message(failure, attempt)),
            turns: attempt.conversation.turns.iter().map(|turn| ReportTurn::new(turn, attempt)).collect(),
            assertions: checks.map(CheckContent::from).collect(),
            spent: spent.map_or_else(UsageContent::default, |spent| UsageContent {
                total_tokens: Some(spent.total_tokens as f64),
                cost: spent.cost,
            }),
            ..AttemptContent::default()
        }
    }
}

impl ReportTurn {
    fn new(turn: &ConversationTurn, attempt: &Attempt) -> Self {
        let call = |call: &AgentToolCall| ReportCall {
            tool: call.name.to_string(),
            arguments: call.arguments.clone(),
        };
        ReportTurn {
            user: turn.user.clone(),
            calls: turn.tool_calls.iter().map(call).collect(),
            answer: turn.answer().map(str::to_string),
            error: turn_error(turn, attempt),
            duration_ms: ms(turn.duration()),
            ..ReportTurn::default()
        }
    }
}

impl From<&CheckResult> for CheckContent {
    fn from(checked: &CheckResult) -> Self {
        let judge = checked.opinion.as_ref().map(|opinion| &opinion.by);
        CheckContent {
            passed: checked.verdict.passed,
            soft: !checked.check.is_hard(),
            decided: checked.error.is_none(),
            name: checked.check.criterion.as_deref().unwrap_or(&checked.verdict.expected).to_string(),
            judge: judge.map(|judge| judge_name(&judge.judge, judge.model.as_deref())),
        }
    }
}
