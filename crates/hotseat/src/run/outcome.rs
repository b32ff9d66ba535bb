//! What a case came to, whether it took one attempt or several.

use std::time::Duration;

use hotseat_trace::{Failure, FailureKind, Fault, Status, Verdict};

use super::attempt::Attempt;
use super::plan::Selected;
use super::stability::{PassRate, Stability};

/// How often a case is attempted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Repetition {
    /// Once, and again as long as it fails, at most so many times more.
    Retried {
        /// How often it is tried again.
        retries: usize,
    },
    /// So many times, whatever comes of it.
    Repeated {
        /// How often.
        runs: usize,
        /// How much of that has to pass.
        least: PassRate,
    },
}

/// A case that has ended, or will never be begun.
#[derive(Debug)]
pub struct Outcome {
    /// Which case.
    pub selected: Selected,
    /// What it came to.
    pub verdict: Verdict,
    /// Its attempts, in their order; of a case that was never begun one that was not made.
    pub attempts: Vec<Attempt>,
    /// How steady it is, where it was repeated.
    pub stability: Option<Stability>,
    /// The place of the attempt that tells most.
    telling: usize,
}

impl Repetition {
    /// Whether another attempt is to be made, when so many were begun and these have ended.
    pub(super) fn goes_on(self, begun: usize, ended: &[Attempt]) -> bool {
        match self {
            Repetition::Repeated { runs, .. } => begun < runs,
            Repetition::Retried { retries } => match ended.last() {
                // The next one depends on how this one ends.
                _ if begun > ended.len() => false,
                None => true,
                Some(last) => begun <= retries && may_pass_another_time(&last.verdict),
            },
        }
    }

    /// Whether a case that is repeated can no longer pass, whatever comes of the runs that are left.
    pub(super) fn is_lost(self, ended: &[Attempt]) -> bool {
        match self {
            Repetition::Retried { .. } => false,
            Repetition::Repeated { runs, least } => {
                let of = |status| ended.iter().filter(|attempt| attempt.verdict.status == status).count();
                let (failed, skipped) = (of(Status::Failed), of(Status::Skipped));
                // A case of which all runs are skipped is skipped.
                failed + skipped > runs - least.of(runs) && skipped < ended.len()
            }
        }
    }
}

/// Whether the same test may pass when it is tried again: not where the test is wrong, or the run is over.
fn may_pass_another_time(verdict: &Verdict) -> bool {
    match verdict.failure.as_ref().map(|failure| failure.kind) {
        None | Some(FailureKind::TestError | FailureKind::Cancelled) => false,
        Some(
            FailureKind::Assertion
            | FailureKind::AgentError
            | FailureKind::ProtocolError
            | FailureKind::Unreachable
            | FailureKind::Timeout
            | FailureKind::HookError
            | FailureKind::NoInput
            | FailureKind::MissingCheckpoints
            | FailureKind::MaxTurns
            | FailureKind::SimulatorError
            | FailureKind::JudgeError
            | FailureKind::ScriptError,
        ) => true,
    }
}

impl Outcome {
    /// What a case came to by these attempts, of which there is at least one.
    pub(super) fn of(selected: Selected, repetition: Repetition, mut attempts: Vec<Attempt>) -> Outcome {
        attempts.sort_by_key(|attempt| attempt.number);
        match repetition {
            Repetition::Retried { .. } => {
                let telling = attempts.len() - 1;
                let verdict = attempts[telling].verdict.clone();
                Outcome { selected, verdict, attempts, stability: None, telling }
            }
            Repetition::Repeated { runs, least } => {
                let stability = Stability::of(&attempts, runs);
                let worst = telling(&attempts);
                let verdict = verdict(&stability, runs, least, &attempts[worst]);
                let passed = attempts.iter().position(|attempt| attempt.verdict.status == Status::Passed);
                let telling = passed.filter(|_| verdict.status == Status::Passed).unwrap_or(worst);
                Outcome { selected, verdict, attempts, stability: Some(stability), telling }
            }
        }
    }

    /// A case that was never begun.
    pub(super) fn not_begun(selected: Selected, verdict: Verdict) -> Outcome {
        let attempt = Attempt::not_made(selected.clone(), 1, verdict.clone());
        Outcome { selected, verdict, attempts: vec![attempt], stability: None, telling: 0 }
    }

    /// The attempt that tells most of the case: of one that was tried again the last one; of one that was repeated
    /// the first that came to what the case came to, by the fault of the agent if there is such a one.
    pub fn telling(&self) -> &Attempt {
        &self.attempts[self.telling]
    }

    /// Whether it passed only when it was tried again.
    pub fn is_flaky(&self) -> bool {
        self.stability.is_none() && self.attempts.len() > 1 && self.verdict.status == Status::Passed
    }

    /// How long all its attempts took together.
    pub fn duration(&self) -> Duration {
        self.attempts.iter().map(|attempt| attempt.duration).sum()
    }
}

/// The place of the run that tells most of why not all of them passed.
fn telling(attempts: &[Attempt]) -> usize {
    let fault = |attempt: &Attempt| attempt.verdict.failure.as_ref().map(|failure| failure.fault);
    let by_agent = attempts.iter().position(|attempt| fault(attempt) == Some(Fault::Agent));
    let failed = || attempts.iter().position(|attempt| fault(attempt).is_some());
    let not_passed = || attempts.iter().position(|attempt| attempt.verdict.status != Status::Passed);
    by_agent.or_else(failed).or_else(not_passed).unwrap_or(0)
}

/// What a case came to that was to be run so many times.
fn verdict(stability: &Stability, runs: usize, least: PassRate, telling: &Attempt) -> Verdict {
    let Stability { passed, failed, not_run, .. } = *stability;
    let needed = least.of(runs);
    let mut so_far = format!("{passed} of {runs} runs passed");
    if needed < runs {
        so_far.push_str(&format!(", and {needed} have to"));
    }
    match () {
        () if passed >= needed && not_run == 0 => Verdict::passed(),
        () if passed + failed == 0 => telling.verdict.clone(),
        () if passed + not_run >= needed => {
            let begun = runs - not_run;
            Verdict::skipped(format!("{so_far}, and only {begun} were begun: the run was interrupted"))
        }
        () => {
            let number = telling.number;
            Verdict::failed(match (&telling.verdict.failure, &telling.verdict.skip_reason) {
                (Some(failure), _) => Failure {
                    message: format!("{so_far}; run {number}: {}", failure.message),
                    ..failure.clone()
                },
                (None, reason) => {
                    let reason = reason.as_deref().unwrap_or_default();
                    let message = format!("{so_far}; run {number} was skipped: {reason}");
                    Failure::new(FailureKind::NoInput, message)
                }
            })
        }
    }
}
