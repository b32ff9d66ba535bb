//! Report records of attempts and of the stability of cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::VerdictStatus;
use serde::Serialize;

use super::conversation::{ConversationRecord, VerdictRecord};
use super::format::{documented_message, ms};
use crate::reporters::text::round_to_tenths;
use hotseat_engine::run::{
    Attempt, AttemptPolicy, CaseStability, GradeCounts, ReliabilityGrade, ReliabilityResult, RepeatTotals,
    StabilityClass,
};

/// One of several attempts at a case.
#[derive(Debug, Serialize)]
pub struct AttemptRecord<'a> {
    #[serde(flatten)]
    pub number: AttemptNumber,
    /// True if the attempt is invalid: it says nothing about the agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalid: bool,
    #[serde(flatten)]
    pub verdict: VerdictRecord<'a>,
    #[serde(flatten)]
    pub held: ConversationRecord<'a>,
}

/// Number of an attempt, from 1: a run of a repeated case, or an attempt of a retried case.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptNumber {
    Run(usize),
    Attempt(usize),
}

/// Stability of a case.
#[derive(Debug, Serialize)]
pub struct StabilityRecord<'a> {
    /// Number of valid runs.
    pub runs: usize,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    /// Number of invalid runs, which are counted in no other member.
    pub invalid: usize,
    /// Number of invalid runs that were replaced by another run.
    pub redrawn: usize,
    /// Number of runs that were never started.
    pub not_run: usize,
    /// In percent; null without valid runs.
    pub pass_rate: Option<f64>,
    /// Confidence interval of the pass rate over valid runs, in percent.
    pub pass_rate_low: f64,
    pub pass_rate_high: f64,
    /// Confidence level of the interval, in percent.
    pub pass_rate_confidence: f64,
    /// Probability, from 0 to 1, that k runs in a row all pass, by k.
    pub pass_k: BTreeMap<usize, f64>,
    /// Share of all pairs of runs in which the agent gave the same answer; null with fewer than two runs.
    pub consistency: Option<f64>,
    /// Null if runs are missing and no other run failed.
    pub stable: Option<bool>,
    /// Null if runs are missing because they were not started or are invalid.
    pub stability_class: Option<&'static str>,
    pub avg_duration_ms: f64,
    pub min_duration_ms: f64,
    pub median_duration_ms: f64,
    pub max_duration_ms: f64,
    pub std_deviation_ms: f64,
    /// Result of the declared reliability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<ReliabilityRecord>,
    pub run_details: Vec<AttemptRecord<'a>>,
}

/// Result of a declared reliability.
#[derive(Debug, Serialize)]
pub struct ReliabilityRecord {
    /// `PASS`, `FAIL`, `FLAKY` or `INCONCLUSIVE`.
    pub status: &'static str,
    pub rate: f64,
    pub confidence: f64,
    pub max_runs: usize,
    /// Number of runs after which the result was decided; null if it is undecided.
    pub decided_after: Option<usize>,
}

/// Numbers of cases by the result of their declared reliability.
#[derive(Debug, Serialize)]
pub struct ReliabilityGradesRecord {
    pub pass: usize,
    pub fail: usize,
    pub flaky: usize,
    pub inconclusive: usize,
}

/// Largest k for which pass^k is reported.
const MAX_PASS_K: usize = 10;

/// Totals of the runs of all cases.
#[derive(Debug, Serialize)]
pub struct RepeatsRecord {
    /// Of cases without a declared reliability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_per_case: Option<usize>,
    pub total_runs: usize,
    pub passed_runs: usize,
    pub invalid_runs: usize,
    pub redrawn_runs: usize,
    /// In percent; null without valid runs.
    pub overall_pass_rate: Option<f64>,
    pub stable_cases: usize,
    pub unstable_cases: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<ReliabilityGradesRecord>,
}

/// Finished attempt as one line of events.
#[derive(Debug, Serialize)]
pub struct AttemptLine<'a> {
    index: usize,
    id: &'a str,
    #[serde(flatten)]
    number: AttemptNumber,
    status: VerdictStatus,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_kind: Option<&'static str>,
}

impl<'a> AttemptRecord<'a> {
    /// Record of an attempt at a retried case.
    pub fn from_retry(attempt: &'a Attempt) -> Self {
        AttemptRecord::new(attempt, AttemptNumber::Attempt(attempt.number))
    }

    fn new(attempt: &'a Attempt, number: AttemptNumber) -> Self {
        AttemptRecord {
            number,
            invalid: attempt.is_invalid(),
            verdict: VerdictRecord::new(&attempt.verdict, |failure| documented_message(failure, attempt)),
            held: ConversationRecord::new(attempt, true),
        }
    }
}

impl<'a> StabilityRecord<'a> {
    pub fn new(of: &CaseStability, attempts: &'a [Arc<Attempt>]) -> Self {
        let runs =
            attempts.iter().map(|attempt| AttemptRecord::new(attempt, AttemptNumber::Run(attempt.number)));
        let (interval, confidence) = of.interval();
        let in_a_row = (1..=MAX_PASS_K).filter_map(|k| Some((k, (of.pass_hat_k(k)? * 1e6).round() / 1e6)));
        StabilityRecord {
            runs: of.runs,
            passed: of.passed,
            failed: of.failed,
            skipped: of.skipped,
            invalid: of.invalid,
            redrawn: of.redrawn,
            not_run: of.not_run,
            pass_rate: of.pass_rate().map(percent),
            pass_rate_low: percent(interval.low),
            pass_rate_high: percent(interval.high),
            pass_rate_confidence: percent(confidence),
            pass_k: in_a_row.collect(),
            consistency: of.consistency.map(|part| (part * 1000.0).round() / 1000.0),
            stable: of.is_stable(),
            stability_class: of.class().map(StabilityClass::name),
            avg_duration_ms: ms(of.average),
            min_duration_ms: ms(of.shortest),
            median_duration_ms: ms(of.median),
            max_duration_ms: ms(of.longest),
            std_deviation_ms: ms(of.deviation),
            reliability: of.promise.as_ref().map(ReliabilityRecord::new),
            run_details: runs.collect(),
        }
    }
}

impl ReliabilityRecord {
    fn new(promise: &ReliabilityResult) -> Self {
        ReliabilityRecord {
            status: ReliabilityGrade::name(promise.grade),
            rate: promise.reliability.rate,
            confidence: promise.reliability.confidence,
            max_runs: promise.reliability.max_runs,
            decided_after: promise.decided_after,
        }
    }
}

impl RepeatsRecord {
    pub fn new(repeats: &RepeatTotals) -> Self {
        RepeatsRecord {
            runs_per_case: repeats.runs_per_case,
            total_runs: repeats.total,
            passed_runs: repeats.passed,
            invalid_runs: repeats.invalid,
            redrawn_runs: repeats.redrawn,
            overall_pass_rate: repeats.pass_rate().map(percent),
            stable_cases: repeats.stable_cases,
            unstable_cases: repeats.unstable_cases,
            reliability: (repeats.grades.total() > 0).then(|| {
                let GradeCounts { pass, fail, flaky, inconclusive } = repeats.grades;
                ReliabilityGradesRecord { pass, fail, flaky, inconclusive }
            }),
        }
    }
}

impl<'a> AttemptLine<'a> {
    pub fn new(attempt: &'a Attempt, repetition: AttemptPolicy) -> Self {
        AttemptLine {
            index: attempt.case_ref.index,
            id: &attempt.case_ref.case.id,
            number: match repetition {
                AttemptPolicy::Repeated { .. } => AttemptNumber::Run(attempt.number),
                AttemptPolicy::Retried { .. } => AttemptNumber::Attempt(attempt.number),
            },
            status: attempt.verdict.status,
            duration_ms: ms(attempt.duration),
            error: error_message(attempt),
            error_kind: attempt.verdict.failure.as_ref().map(|failure| failure.kind.name()),
        }
    }
}

fn error_message(attempt: &Attempt) -> Option<String> {
    attempt.verdict.failure.as_ref().map(|failure| documented_message(failure, attempt))
}

/// Converts a fraction to percent with one decimal place.
fn percent(part: f64) -> f64 {
    round_to_tenths(part * 100.0)
}
