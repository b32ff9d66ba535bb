//! Attempts and how steady cases are, as they are written to report files.

use hotseat_trace::Status;
use serde::Serialize;

use super::record::{HeldRecord, VerdictRecord, documented, ms};
use crate::run::{Attempt, Class, Repeats, Repetition, Stability};

/// One of several attempts at a case.
#[derive(Debug, Serialize)]
pub struct AttemptRecord<'a> {
    #[serde(flatten)]
    pub number: Number,
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
    /// How many runs were made.
    pub runs: usize,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    /// How many of those that failed say nothing about the agent.
    pub invalid: usize,
    /// How many were never begun.
    pub not_run: usize,
    /// In percent.
    pub pass_rate: f64,
    /// Of all pairs of runs, the part in which the agent answered the same; null with fewer than two.
    pub consistency: Option<f64>,
    /// Null where not all runs were made and none of them failed.
    pub stable: Option<bool>,
    /// Null where not all runs were made.
    pub stability_class: Option<&'static str>,
    pub avg_duration_ms: f64,
    pub min_duration_ms: f64,
    pub max_duration_ms: f64,
    pub std_deviation_ms: f64,
    pub run_details: Vec<AttemptRecord<'a>>,
}

/// The runs of all cases together.
#[derive(Debug, Serialize)]
pub struct RepeatsRecord {
    pub runs_per_case: usize,
    pub total_runs: usize,
    pub passed_runs: usize,
    pub invalid_runs: usize,
    /// In percent; null where no run was made.
    pub overall_pass_rate: Option<f64>,
    pub stable_cases: usize,
    pub unstable_cases: usize,
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
            verdict: VerdictRecord::of(&attempt.verdict, |failure| documented(failure, attempt)),
            held: HeldRecord::of(attempt, true),
        }
    }
}

impl<'a> StabilityRecord<'a> {
    pub fn of(of: &Stability, attempts: &'a [Attempt]) -> Self {
        let runs = attempts.iter().map(|attempt| AttemptRecord::of(attempt, Number::Run(attempt.number)));
        StabilityRecord {
            runs: of.runs,
            passed: of.passed,
            failed: of.failed,
            skipped: of.skipped,
            invalid: of.invalid,
            not_run: of.not_run,
            pass_rate: percent(of.pass_rate()),
            consistency: of.consistency.map(|part| (part * 1000.0).round() / 1000.0),
            stable: of.is_stable(),
            stability_class: of.class().map(Class::name),
            avg_duration_ms: ms(of.average),
            min_duration_ms: ms(of.shortest),
            max_duration_ms: ms(of.longest),
            std_deviation_ms: ms(of.deviation),
            run_details: runs.collect(),
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
            overall_pass_rate: repeats.pass_rate().map(percent),
            stable_cases: repeats.stable_cases,
            unstable_cases: repeats.unstable_cases,
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
    (part * 1000.0).round() / 10.0
}
