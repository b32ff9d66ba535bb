//! Attempts and how steady cases are, as they are written to report files.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::Status;
use serde::Serialize;

use super::record::{HeldRecord, VerdictRecord, documented, is_false, ms};
use super::words::tenths;
use crate::run::{Attempt, Class, Grade, Grades, Promise, Repeats, Repetition, Stability};

/// One of several attempts at a case.
#[derive(Debug, Serialize)]
pub struct AttemptRecord<'a> {
    #[serde(flatten)]
    pub number: Number,
    /// Whether it says nothing about the agent.
    #[serde(skip_serializing_if = "is_false")]
    pub invalid: bool,
    #[serde(flatten)]
    pub verdict: VerdictRecord<'a>,
    #[serde(flatten)]
    pub held: HeldRecord<'a>,
}

/// Which attempt it is, from 1: a run of a case that is repeated, or an attempt at one that is tried again.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    Run(usize),
    Attempt(usize),
}

/// How steady a case is.
#[derive(Debug, Serialize)]
pub struct StabilityRecord<'a> {
    /// How many runs say something about the agent.
    pub runs: usize,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    /// How many were made that say nothing about the agent, and are counted nowhere else.
    pub invalid: usize,
    /// How many of these were made again.
    pub redrawn: usize,
    /// How many were never begun.
    pub not_run: usize,
    /// In percent; null where no run says anything about the agent.
    pub pass_rate: Option<f64>,
    /// Where the rate lies, in percent, as far as runs tell that say something about the agent.
    pub pass_rate_low: f64,
    pub pass_rate_high: f64,
    /// How sure that is, in percent.
    pub pass_rate_confidence: f64,
    /// For k runs in a row how likely they all pass, from 0 to 1.
    pub pass_k: BTreeMap<usize, f64>,
    /// Of all pairs of runs, the part in which the agent answered the same; null with fewer than two.
    pub consistency: Option<f64>,
    /// Null where some runs are missing and none of the others failed.
    pub stable: Option<bool>,
    /// Null where some runs are missing: they were not begun, or say nothing about the agent.
    pub stability_class: Option<&'static str>,
    pub avg_duration_ms: f64,
    pub min_duration_ms: f64,
    pub median_duration_ms: f64,
    pub max_duration_ms: f64,
    pub std_deviation_ms: f64,
    /// What became of the reliability that is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<PromiseRecord>,
    pub run_details: Vec<AttemptRecord<'a>>,
}

/// What became of a reliability that is declared.
#[derive(Debug, Serialize)]
pub struct PromiseRecord {
    /// `PASS`, `FAIL`, `FLAKY` or `INCONCLUSIVE`.
    pub status: &'static str,
    pub rate: f64,
    pub confidence: f64,
    pub max_runs: usize,
    /// After how many runs that was known; null where it is not.
    pub decided_after: Option<usize>,
}

/// Of how many cases what became of a declared reliability.
#[derive(Debug, Serialize)]
pub struct GradesRecord {
    pub pass: usize,
    pub fail: usize,
    pub flaky: usize,
    pub inconclusive: usize,
}

/// For so many runs in a row it is said how likely they all pass.
const IN_A_ROW: usize = 10;

/// The runs of all cases together.
#[derive(Debug, Serialize)]
pub struct RepeatsRecord {
    /// Of cases that declare no reliability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_per_case: Option<usize>,
    pub total_runs: usize,
    pub passed_runs: usize,
    pub invalid_runs: usize,
    pub redrawn_runs: usize,
    /// In percent; null where no run says anything about the agent.
    pub overall_pass_rate: Option<f64>,
    pub stable_cases: usize,
    pub unstable_cases: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<GradesRecord>,
}

/// An attempt that has ended, in one line of events.
#[derive(Debug, Serialize)]
pub struct AttemptLine<'a> {
    index: usize,
    id: &'a str,
    #[serde(flatten)]
    number: Number,
    status: Status,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_kind: Option<&'static str>,
}

impl<'a> AttemptRecord<'a> {
    /// An attempt at a case that was tried again.
    pub fn tried(attempt: &'a Attempt) -> Self {
        AttemptRecord::of(attempt, Number::Attempt(attempt.number))
    }

    fn of(attempt: &'a Attempt, number: Number) -> Self {
        AttemptRecord {
            number,
            invalid: attempt.is_invalid(),
            verdict: VerdictRecord::of(&attempt.verdict, |failure| documented(failure, attempt)),
            held: HeldRecord::of(attempt, true),
        }
    }
}

impl<'a> StabilityRecord<'a> {
    pub fn of(of: &Stability, attempts: &'a [Arc<Attempt>]) -> Self {
        let runs = attempts.iter().map(|attempt| AttemptRecord::of(attempt, Number::Run(attempt.number)));
        let (interval, confidence) = of.interval();
        let in_a_row = (1..=IN_A_ROW).filter_map(|k| Some((k, (of.all_of(k)? * 1e6).round() / 1e6)));
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
            stability_class: of.class().map(Class::name),
            avg_duration_ms: ms(of.average),
            min_duration_ms: ms(of.shortest),
            median_duration_ms: ms(of.median),
            max_duration_ms: ms(of.longest),
            std_deviation_ms: ms(of.deviation),
            reliability: of.promise.as_ref().map(PromiseRecord::of),
            run_details: runs.collect(),
        }
    }
}

impl PromiseRecord {
    fn of(promise: &Promise) -> Self {
        PromiseRecord {
            status: Grade::name(promise.grade),
            rate: promise.reliability.rate,
            confidence: promise.reliability.confidence,
            max_runs: promise.reliability.max_runs,
            decided_after: promise.decided_after,
        }
    }
}

impl RepeatsRecord {
    pub fn of(repeats: &Repeats) -> Self {
        RepeatsRecord {
            runs_per_case: repeats.runs_per_case,
            total_runs: repeats.total,
            passed_runs: repeats.passed,
            invalid_runs: repeats.invalid,
            redrawn_runs: repeats.redrawn,
            overall_pass_rate: repeats.pass_rate().map(percent),
            stable_cases: repeats.stable_cases,
            unstable_cases: repeats.unstable_cases,
            reliability: (repeats.grades.all() > 0).then(|| {
                let Grades { pass, fail, flaky, inconclusive } = repeats.grades;
                GradesRecord { pass, fail, flaky, inconclusive }
            }),
        }
    }
}

impl<'a> AttemptLine<'a> {
    pub fn of(attempt: &'a Attempt, repetition: Repetition) -> Self {
        AttemptLine {
            index: attempt.selected.index,
            id: &attempt.selected.case.id,
            number: match repetition {
                Repetition::Repeated { .. } => Number::Run(attempt.number),
                Repetition::Retried { .. } => Number::Attempt(attempt.number),
            },
            status: attempt.verdict.status,
            duration_ms: ms(attempt.duration),
            error: error(attempt),
            error_kind: attempt.verdict.failure.as_ref().map(|failure| failure.kind.name()),
        }
    }
}

fn error(attempt: &Attempt) -> Option<String> {
    attempt.verdict.failure.as_ref().map(|failure| documented(failure, attempt))
}

/// A part as percent with one digit behind the point.
fn percent(part: f64) -> f64 {
    tenths(part * 100.0)
}
