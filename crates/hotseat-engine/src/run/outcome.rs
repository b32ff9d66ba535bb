//! Outcome of a case, after one or more attempts.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{FailureKind, Millis, Verdict, VerdictStatus};
use serde::{Deserialize, Serialize};

use super::aggregate::AggregateVerdict;
use super::attempt_result::Attempt;
use super::results::CaseRef;
use super::series::{AttemptStatus, RepeatSeries, StopRule};
use super::stability::CaseStability;

/// Number of attempts at a case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptPolicy {
    /// Once, with at most this many retries on failure.
    Retried {
        /// Maximum number of retries.
        retries: usize,
    },
    /// Repeated, regardless of failures.
    Repeated {
        /// Condition to stop.
        until: StopRule,
        /// Maximum number of invalid attempts that are replaced by additional ones.
        max_invalid: usize,
    },
}

/// Outcome of a case that has finished or will never start.
#[derive(Debug)]
pub struct CaseOutcome {
    /// The case.
    pub case_ref: Arc<CaseRef>,
    /// Its verdict.
    pub verdict: Verdict,
    /// Its attempts in order. A case that never started has one attempt that did not run.
    pub attempts: Vec<Arc<Attempt>>,
    /// Statistics of a repeated case.
    pub stability: Option<CaseStability>,
    /// True if the case never started.
    pub never_started: bool,
    /// True if the case failed and the run stopped before its retry ended.
    pub retry_pending: bool,
    /// Index of the representative attempt.
    representative_index: usize,
}

/// True if a retry may pass. Errors of the test and cancellations are not retried.
pub(super) fn is_retryable(verdict: &Verdict) -> bool {
    match verdict.failure.as_ref().map(|failure| failure.kind) {
        None => verdict.skip_fault.is_some(),
        Some(
            FailureKind::TestError
            | FailureKind::ScriptError
            | FailureKind::UsageError
            | FailureKind::NotKept
            | FailureKind::Cancelled,
        ) => false,
        Some(
            FailureKind::Assertion
            | FailureKind::AgentError
            | FailureKind::ProtocolError
            | FailureKind::Unreachable
            | FailureKind::Timeout
            | FailureKind::Limit
            | FailureKind::HookError
            | FailureKind::NoInput
            | FailureKind::MissingCheckpoints
            | FailureKind::MaxTurns
            | FailureKind::SimulatorError
            | FailureKind::JudgeError
            | FailureKind::Inconclusive,
        ) => true,
    }
}

/// True if the run was cancelled during an attempt.
fn is_cancelled(attempt: &Attempt) -> bool {
    attempt.verdict.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Cancelled)
}

impl CaseOutcome {
    /// Outcome of a case with optional retries; `attempts` must not be empty. `untried` is true if a retry
    /// was due but did not start.
    pub(super) fn from_retries(
        selected: Arc<CaseRef>,
        mut attempts: Vec<Arc<Attempt>>,
        untried: bool,
    ) -> CaseOutcome {
        attempts.sort_by_key(|attempt| attempt.number);
        // A skipped retry does not excuse the failure before it.
        let decides = |status| matches!(status, AttemptStatus::Passed | AttemptStatus::Failed);
        let last_decided = attempts.iter().rposition(|attempt| decides(attempt.status()));
        let last_valid = || attempts.iter().rposition(|attempt| attempt.status().is_valid());
        let telling = last_decided.or_else(last_valid).unwrap_or(attempts.len() - 1);
        // A retry that was cancelled might have passed, as one that did not start.
        let is_cut_short = last_decided.is_some() && attempts.last().is_some_and(|last| is_cancelled(last));
        let verdict = match (untried, is_cut_short) {
            (true, _) => {
                Verdict::skipped(format!("retry {} not run: the run was interrupted", attempts.len()))
            }
            (false, true) => {
                Verdict::skipped(format!("retry {} cancelled: the run was interrupted", attempts.len() - 1))
            }
            (false, false) => attempts[telling].verdict.clone(),
        };
        CaseOutcome {
            case_ref: selected,
            verdict,
            attempts,
            stability: None,
            never_started: false,
            retry_pending: untried || is_cut_short,
            representative_index: telling,
        }
    }

    /// Outcome of a repeated case; `attempts` must not be empty.
    pub(super) fn from_repeats(
        selected: Arc<CaseRef>,
        series: &RepeatSeries,
        mut attempts: Vec<Arc<Attempt>>,
    ) -> CaseOutcome {
        attempts.sort_by_key(|attempt| attempt.number);
        let stability = CaseStability::from_attempts(&attempts, series);
        let together = AggregateVerdict::new(series.stop_rule(), &stability);
        let worst = together.representative_index(&stability, &attempts);
        let verdict = together.to_verdict(&stability, &attempts[worst]);
        let passed = attempts.iter().position(|attempt| attempt.verdict.status == VerdictStatus::Passed);
        let telling = passed.filter(|_| verdict.status == VerdictStatus::Passed).unwrap_or(worst);
        let stability = Some(stability);
        CaseOutcome {
            case_ref: selected,
            verdict,
            attempts,
            stability,
            never_started: false,
            retry_pending: false,
            representative_index: telling,
        }
    }

    /// Outcome of a case that never started.
    pub(super) fn not_started(selected: Arc<CaseRef>, verdict: Verdict) -> CaseOutcome {
        let attempt = Attempt::not_started(selected.clone(), 1, verdict.clone());
        CaseOutcome {
            case_ref: selected,
            verdict,
            attempts: vec![Arc::new(attempt)],
            stability: None,
            never_started: true,
            retry_pending: false,
            representative_index: 0,
        }
    }

    /// Restores a saved outcome. Returns `None` if the index of the representative attempt is out of range.
    pub fn restore(
        selected: Arc<CaseRef>,
        verdict: Verdict,
        attempts: Vec<Arc<Attempt>>,
        stability: Option<CaseStability>,
        never_begun: bool,
        untried: bool,
        telling: usize,
    ) -> Option<CaseOutcome> {
        let is_there = telling < attempts.len();
        is_there.then_some(CaseOutcome {
            case_ref: selected,
            verdict,
            attempts,
            stability,
            never_started: never_begun,
            retry_pending: untried,
            representative_index: telling,
        })
    }

    /// Index of the representative attempt.
    pub fn representative_index(&self) -> usize {
        self.representative_index
    }

    /// Time from `from` to the end of the last attempt.
    pub fn elapsed_since(&self, from: Millis) -> Duration {
        let ends = self.attempts.iter().map(|attempt| {
            let began = u64::try_from(attempt.started_at - from).unwrap_or(0);
            Duration::from_millis(began) + attempt.duration
        });
        ends.max().unwrap_or_default()
    }

    /// True if the case has to run when the run is resumed: it never started, or was interrupted before its
    /// outcome was known.
    pub fn is_incomplete(&self) -> bool {
        let cut_short = self.stability.as_ref().is_some_and(|stability| stability.not_run > 0);
        let has_to_start = self.never_started && self.case_ref.case.skip.is_none();
        has_to_start
            || self.retry_pending
            || cut_short
            || self.attempts.iter().any(|attempt| is_cancelled(attempt))
    }

    /// The representative attempt: the last valid retry, or the first repeat whose status matches the case,
    /// preferring failures of the agent.
    pub fn representative(&self) -> &Attempt {
        &self.attempts[self.representative_index]
    }

    /// True if the case passed only after a retry.
    pub fn is_flaky(&self) -> bool {
        let has_failed = || self.attempts.iter().any(|attempt| attempt.status() == AttemptStatus::Failed);
        self.stability.is_none() && self.verdict.status == VerdictStatus::Passed && has_failed()
    }

    /// True if the case is skipped, or is repeated and one of its attempts was skipped.
    pub fn has_skips(&self) -> bool {
        let mut repeats = self.attempts.iter().filter(|_| self.stability.is_some());
        self.verdict.status == VerdictStatus::Skipped
            || repeats.any(|attempt| attempt.status() == AttemptStatus::Skipped)
    }

    /// Total duration of all attempts.
    pub fn duration(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.duration).sum()
    }
}
