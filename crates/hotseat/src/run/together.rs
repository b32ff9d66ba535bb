//! What the runs of a case say together: its verdict, and the words for it.

use std::sync::Arc;

use hotseat_trace::{Failure, FailureKind, Fault, Status, Verdict};

use super::attempt::Attempt;
use super::series::Until;
use super::stability::{Grade, PassRate, Promise, Stability};

/// What the runs of a case say together.
pub(super) struct Together {
    came_to: CameTo,
    /// How many runs passed, and what else is to be known.
    words: String,
    /// Whether it did not pass for want of runs that say something about the agent.
    for_want: bool,
}

/// What they come to.
enum CameTo {
    /// Enough of them passed.
    Enough,
    /// Too few did.
    TooFew,
    /// All that were allowed were made, and they do not tell.
    Undecided,
    /// The run was interrupted before they could tell.
    CutShort,
}

impl Together {
    pub(super) fn of(until: Until, stability: &Stability) -> Together {
        match (until, stability.promise) {
            (Until::Made { runs, least }, _) => Together::of_so_many(runs, least, stability),
            (Until::Known(_), Some(promise)) => Together::of_a_promise(promise, stability),
            (Until::Known(_), None) => unreachable!("what is declared has become something"),
        }
    }

    fn of_so_many(runs: usize, least: PassRate, stability: &Stability) -> Together {
        let Stability { passed, not_run, .. } = *stability;
        let (needed, missing) = (least.of(runs), stability.missing());
        let mut words = passed_of(stability, runs);
        if needed < runs {
            words.push_str(&format!(", and {needed} have to"));
        }
        let came_to = match () {
            () if passed >= needed && not_run == 0 => CameTo::Enough,
            () if passed + not_run >= needed => {
                let begun = stability.runs + missing;
                words.push_str(&format!(", and only {begun} were begun"));
                CameTo::CutShort
            }
            () => CameTo::TooFew,
        };
        Together { came_to, words, for_want: missing > 0 && passed + missing >= needed }
    }

    fn of_a_promise(promise: Promise, stability: &Stability) -> Together {
        let Promise { reliability, grade, .. } = promise;
        let (rate, sure) = (percent(reliability.rate), percent(reliability.confidence));
        let so_far = passed_of(stability, stability.runs + stability.missing());
        let (came_to, words) = match grade {
            Grade::Pass => (CameTo::Enough, so_far),
            Grade::Inconclusive if stability.not_run > 0 => (CameTo::CutShort, so_far),
            Grade::Fail | Grade::Flaky => {
                let name = grade.name();
                (
                    CameTo::TooFew,
                    format!("{name}: {so_far}; {rate} is declared and missed, with {sure} confidence"),
                )
            }
            Grade::Inconclusive => {
                let (interval, _) = stability.interval();
                let (low, high) = (interval.low * 100.0, interval.high * 100.0);
                let words = format!(
                    "INCONCLUSIVE: {so_far}; that does not tell whether the declared {rate} is reached: the rate lies between {low:.0}% and {high:.0}%, with {sure} confidence"
                );
                (CameTo::Undecided, words)
            }
        };
        Together { came_to, words, for_want: stability.missing() > 0 && grade == Grade::Inconclusive }
    }

    /// The place of the run that tells most of why not all of them passed: of one that says nothing about the agent where
    /// it is for want of others that the case did not pass.
    pub(super) fn telling(&self, attempts: &[Arc<Attempt>]) -> usize {
        let first = |tells: fn(&Attempt) -> bool| attempts.iter().position(|attempt| tells(attempt));
        let invalid = || first(|attempt| attempt.is_invalid()).filter(|_| self.for_want);
        let by_agent = || {
            first(|attempt| {
                attempt.verdict.failure.as_ref().is_some_and(|failure| failure.fault == Fault::Agent)
            })
        };
        let failed = || first(|attempt| attempt.verdict.failure.is_some());
        let not_passed = || first(|attempt| attempt.verdict.status != Status::Passed);
        invalid().or_else(by_agent).or_else(failed).or_else(not_passed).unwrap_or(0)
    }

    /// The verdict of the case; `telling` is the run that tells most.
    pub(super) fn verdict(&self, stability: &Stability, telling: &Attempt) -> Verdict {
        let (words, number) = (&self.words, telling.number);
        match self.came_to {
            CameTo::Enough => Verdict::passed(),
            _ if stability.passed + stability.failed == 0 => telling.verdict.clone(),
            CameTo::CutShort => Verdict::skipped(format!("{words}: the run was interrupted")),
            CameTo::TooFew => {
                Verdict::failed(match (&telling.verdict.failure, &telling.verdict.skip_reason) {
                    (Some(failure), _) => Failure {
                        message: format!("{words}; run {number}: {}", failure.message),
                        ..failure.clone()
                    },
                    (None, reason) => {
                        let reason = reason.as_deref().unwrap_or_default();
                        let message = format!("{words}; run {number} was skipped: {reason}");
                        Failure::new(FailureKind::NoInput, message)
                    }
                })
            }
            CameTo::Undecided => {
                let cause = telling.verdict.failure.as_ref().filter(|_| self.for_want);
                let message = match cause {
                    Some(failure) => format!("{words}; run {number}: {}", failure.message),
                    None => format!("{words}; more runs would tell (`max_runs`)"),
                };
                let undecided = Failure::new(FailureKind::Inconclusive, message);
                Verdict::failed(Failure {
                    fault: cause.map_or(undecided.fault, |cause| cause.fault),
                    ..undecided
                })
            }
        }
    }
}

/// `2 of 3 runs passed`, and how many of the others say nothing.
fn passed_of(stability: &Stability, runs: usize) -> String {
    let (passed, missing) = (stability.passed, stability.missing());
    match missing {
        0 => format!("{passed} of {runs} runs passed"),
        1 => format!("{passed} of {runs} runs passed, 1 says nothing about the agent"),
        missing => format!("{passed} of {runs} runs passed, {missing} say nothing about the agent"),
    }
}

/// A part in percent, as it is written: 90%, 99.5%.
fn percent(part: f64) -> String {
    format!("{}%", (part * 1e4).round() / 100.0)
}
