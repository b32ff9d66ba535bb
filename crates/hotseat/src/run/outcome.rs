//! What a case came to, whether it took one attempt or several.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{FailureKind, Millis, Status, Verdict};
use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::series::{Series, Standing, Until};
use super::stability::Stability;
use super::together::Together;
use super::told::Told;

/// How often a case is attempted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repetition {
    /// Once, and again as long as it fails, at most so many times more.
    Retried {
        /// How often it is tried again.
        retries: usize,
    },
    /// Several times, whatever comes of it.
    Repeated {
        /// Until when.
        until: Until,
        /// How many runs are made again, beside that, for they say nothing about the agent.
        redraws: usize,
    },
}

/// A case that has ended, or will never be begun.
#[derive(Debug)]
pub struct Outcome {
    /// Which case.
    pub selected: Arc<Told>,
    /// What it came to.
    pub verdict: Verdict,
    /// Its attempts, in their order; of a case that was never begun one that was not made.
    pub attempts: Vec<Arc<Attempt>>,
    /// How steady it is, where it was repeated.
    pub stability: Option<Stability>,
    /// Whether it was never begun.
    pub never_begun: bool,
    /// Whether it failed and would have been tried again, had the run gone on.
    pub(crate) untried: bool,
    /// The place of the attempt that tells most.
    telling: usize,
}

/// Whether the same test may pass when it is tried again: not where the test is wrong, or the run is over.
pub(super) fn may_pass_another_time(verdict: &Verdict) -> bool {
    match verdict.failure.as_ref().map(|failure| failure.kind) {
        None
        | Some(
            FailureKind::TestError | FailureKind::UsageError | FailureKind::NotKept | FailureKind::Cancelled,
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
            | FailureKind::Inconclusive
            | FailureKind::ScriptError,
        ) => true,
    }
}

impl Outcome {
    /// What a case came to by these attempts, of which there is at least one, where it was tried again or not; or was to
    /// be, and is `untried`.
    pub(super) fn tried(selected: Arc<Told>, mut attempts: Vec<Arc<Attempt>>, untried: bool) -> Outcome {
        attempts.sort_by_key(|attempt| attempt.number);
        let last_valid = attempts.iter().rposition(|attempt| attempt.standing().is_valid());
        let telling = last_valid.unwrap_or(attempts.len() - 1);
        let verdict = attempts[telling].verdict.clone();
        Outcome { selected, verdict, attempts, stability: None, never_begun: false, untried, telling }
    }

    /// What a case came to by these runs, of which there is at least one.
    pub(super) fn repeated(selected: Arc<Told>, series: &Series, mut attempts: Vec<Arc<Attempt>>) -> Outcome {
        attempts.sort_by_key(|attempt| attempt.number);
        let stability = Stability::of(&attempts, series);
        let together = Together::of(series.until(), &stability);
        let worst = together.telling(&attempts);
        let verdict = together.verdict(&stability, &attempts[worst]);
        let passed = attempts.iter().position(|attempt| attempt.verdict.status == Status::Passed);
        let telling = passed.filter(|_| verdict.status == Status::Passed).unwrap_or(worst);
        let stability = Some(stability);
        Outcome { selected, verdict, attempts, stability, never_begun: false, untried: false, telling }
    }

    /// A case that was never begun.
    pub(super) fn not_begun(selected: Arc<Told>, verdict: Verdict) -> Outcome {
        let attempt = Attempt::not_made(selected.clone(), 1, verdict.clone());
        Outcome {
            selected,
            verdict,
            attempts: vec![Arc::new(attempt)],
            stability: None,
            never_begun: true,
            untried: false,
            telling: 0,
        }
    }

    /// A case that is kept with what it came to; none where the attempt that tells most is not among these.
    pub(crate) fn kept(
        selected: Arc<Told>,
        verdict: Verdict,
        attempts: Vec<Arc<Attempt>>,
        stability: Option<Stability>,
        never_begun: bool,
        untried: bool,
        telling: usize,
    ) -> Option<Outcome> {
        let is_there = telling < attempts.len();
        is_there.then_some(Outcome { selected, verdict, attempts, stability, never_begun, untried, telling })
    }

    /// The place of the attempt that tells most among all of them.
    pub(crate) fn place_of_telling(&self) -> usize {
        self.telling
    }

    /// How long after a moment its last attempt had ended.
    pub(super) fn ended_at(&self, from: Millis) -> Duration {
        let ends = self.attempts.iter().map(|attempt| {
            let began = u64::try_from(attempt.started_at - from).unwrap_or(0);
            Duration::from_millis(began) + attempt.duration
        });
        ends.max().unwrap_or_default()
    }

    /// Whether it is left to be run: it was never begun, or broken off before it could be known what it comes to.
    pub fn is_left_over(&self) -> bool {
        let cancelled = |attempt: &Arc<Attempt>| {
            attempt.verdict.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Cancelled)
        };
        let cut_short = self.stability.as_ref().is_some_and(|stability| stability.not_run > 0);
        self.never_begun || self.untried || cut_short || self.attempts.iter().any(cancelled)
    }

    /// The attempt that tells most of the case: of one that was tried again the last one that says something about the
    /// agent, if there is such a one; of one that was repeated the first that came to what the case came to, by the fault
    /// of the agent if there is such a one.
    pub fn telling(&self) -> &Attempt {
        &self.attempts[self.telling]
    }

    /// Whether the agent passed it only when it was tried again.
    pub fn is_flaky(&self) -> bool {
        let has_failed = || self.attempts.iter().any(|attempt| attempt.standing() == Standing::Failed);
        self.stability.is_none() && self.verdict.status == Status::Passed && has_failed()
    }

    /// How long all its attempts took together.
    pub fn duration(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.duration).sum()
    }
}
