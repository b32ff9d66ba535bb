//! Report records of attempts and of the stability of cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::VerdictStatus;
use serde::Serialize;

use super::conversation::{ConversationRecord, VerdictRecord};
use super::declare::records;
use super::format::{documented_message, ms};
use crate::reporters::text::{round_fraction, round_to_tenths};
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

records! {
    /// Stability of a case.
    pub struct StabilityRecord<'a>(of: &CaseStability, attempts: &'a [Arc<Attempt>]) {
        let runs =
            attempts.iter().map(|attempt| AttemptRecord::new(attempt, AttemptNumber::Run(attempt.number)));
        let (interval, confidence) = of.interval();
        let in_a_row = (1..=MAX_PASS_K).filter_map(|k| Some((k, round_fraction(of.pass_hat_k(k)?, 1e6))));
    } => {
        /// Number of valid runs.
        runs: usize = of.runs,
        passed: usize = of.passed,
        failed: usize = of.failed,
        skipped: usize = of.skipped,
        /// Number of invalid runs, which are counted in no other member.
        invalid: usize = of.invalid,
        /// Number of invalid runs that were replaced by another run.
        redrawn: usize = of.redrawn,
        /// Number of runs that were never started.
        not_run: usize = of.not_run,
        /// In percent; null without valid runs.
        pass_rate: Option<f64> = of.pass_rate().map(percent),
        /// Confidence interval of the pass rate over valid runs, in percent.
        pass_rate_low: f64 = percent(interval.low),
        pass_rate_high: f64 = percent(interval.high),
        /// Confidence level of the interval, in percent.
        pass_rate_confidence: f64 = percent(confidence),
        /// Probability, from 0 to 1, that k runs in a row all pass, by k.
        pass_k: BTreeMap<usize, f64> = in_a_row.collect(),
        /// Share of all pairs of runs in which the agent gave the same answer; null with fewer than two runs.
        consistency: Option<f64> = of.consistency.map(|part| round_fraction(part, 1e3)),
        /// Null if runs are missing and no other run failed.
        stable: Option<bool> = of.is_stable(),
        /// Null if runs are missing because they were not started or are invalid.
        stability_class: Option<&'static str> = of.class().map(StabilityClass::name),
        avg_duration_ms: f64 = ms(of.average),
        min_duration_ms: f64 = ms(of.shortest),
        median_duration_ms: f64 = ms(of.median),
        max_duration_ms: f64 = ms(of.longest),
        std_deviation_ms: f64 = ms(of.deviation),
        /// Result of the declared reliability.
        reliability?: Option<ReliabilityRecord> = of.promise.as_ref().map(ReliabilityRecord::new),
        run_details: Vec<AttemptRecord<'a>> = runs.collect(),
    }

    /// Result of a declared reliability.
    pub struct ReliabilityRecord(promise: &ReliabilityResult) => {
        /// `PASS`, `FAIL`, `FLAKY` or `INCONCLUSIVE`.
        status: &'static str = ReliabilityGrade::name(promise.grade),
        rate: f64 = promise.reliability.rate,
        confidence: f64 = promise.reliability.confidence,
        max_runs: usize = promise.reliability.max_runs,
        /// Number of runs after which the result was decided; null if it is undecided.
        decided_after: Option<usize> = promise.decided_after,
    }
}

/// Largest k for which pass^k is reported.
const MAX_PASS_K: usize = 10;

records! {
    /// Totals of the runs of all cases.
    pub struct RepeatsRecord(repeats: &RepeatTotals) => {
        /// Of cases without a declared reliability.
        runs_per_case?: Option<usize> = repeats.runs_per_case,
        total_runs: usize = repeats.total,
        passed_runs: usize = repeats.passed,
        invalid_runs: usize = repeats.invalid,
        redrawn_runs: usize = repeats.redrawn,
        /// In percent; null without valid runs.
        overall_pass_rate: Option<f64> = repeats.pass_rate().map(percent),
        stable_cases: usize = repeats.stable_cases,
        unstable_cases: usize = repeats.unstable_cases,
        /// Numbers of cases by the result of their declared reliability.
        reliability?: Option<GradeCounts> = Some(repeats.grades).filter(|grades| grades.total() > 0),
    }

    /// Finished attempt as one line of events.
    pub struct AttemptLine<'a>(attempt: &'a Attempt, repetition: AttemptPolicy) => {
        index: usize = attempt.case_ref.index,
        id: &'a str = &attempt.case_ref.case.id,
        #[serde(flatten)]
        number: AttemptNumber = match repetition {
            AttemptPolicy::Repeated { .. } => AttemptNumber::Run(attempt.number),
            AttemptPolicy::Retried { .. } => AttemptNumber::Attempt(attempt.number),
        },
        status: VerdictStatus = attempt.verdict.status,
        duration_ms: f64 = ms(attempt.duration),
        error?: Option<String> = error_message(attempt),
        error_kind?: Option<&'static str> =
            attempt.verdict.failure.as_ref().map(|failure| failure.kind.name()),
    }
}

impl<'a> AttemptRecord<'a> {
    pub fn new(attempt: &'a Attempt, number: AttemptNumber) -> Self {
        AttemptRecord {
            number,
            invalid: attempt.is_invalid(),
            verdict: VerdictRecord::new(&attempt.verdict, |failure| documented_message(failure, attempt)),
            held: ConversationRecord::new(attempt, true),
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
