//! Aggregation of repeated attempts into the verdict of their case.

use std::sync::Arc;

use hotseat_trace::{AttemptFailure, FailureKind, ResponsibleParty, Verdict, VerdictStatus};

use super::attempt_result::Attempt;
use super::series::{AttemptStatus, StopRule};
use super::stability::{CaseStability, ReliabilityGrade, ReliabilityResult};
use crate::cases::{MAX_RUNS_LIMIT, PassRate, format_rate};

const MORE_RUNS: &str = "increase `max_runs` for a conclusion";
const OTHER_RATE: &str = "no more runs are supported: declare a lower `confidence`, or a `rate` that the agent exceeds or misses clearly";
const NO_MORE_SAVED: &str = "the saved run has no more attempts: run the case again for a conclusion";

/// Aggregate verdict of a repeated case.
pub(super) struct AggregateVerdict {
    outcome: AggregateOutcome,
    /// Number of passed attempts, with an explanation.
    summary: String,
    /// True if the case failed for lack of valid attempts.
    lacks_valid_attempts: bool,
    /// What leads to a conclusion, if there is none.
    advice: &'static str,
}

enum AggregateOutcome {
    /// Enough attempts passed.
    Enough,
    /// Too few attempts passed.
    TooFew,
    /// All allowed attempts were made without a conclusion.
    Undecided,
    /// The run was interrupted before a conclusion.
    CutShort,
}

impl AggregateVerdict {
    pub(super) fn new(until: StopRule, stability: &CaseStability) -> AggregateVerdict {
        match (until, stability.promise) {
            (StopRule::Made { runs, least }, _) => AggregateVerdict::from_pass_rate(runs, least, stability),
            (StopRule::Known(_), Some(promise)) => AggregateVerdict::from_reliability(promise, stability),
            (StopRule::Known(_), None) => unreachable!("a declared reliability always has a result"),
        }
    }

    fn from_pass_rate(runs: usize, least: PassRate, stability: &CaseStability) -> AggregateVerdict {
        let CaseStability { passed, not_run, .. } = *stability;
        let (needed, missing) = (least.required_passes(runs), stability.missing_attempts());
        let mut words = describe_passes(stability, runs);
        if needed < runs {
            words.push_str(&format!(", at least {needed} required"));
        }
        let came_to = match () {
            () if passed >= needed && not_run == 0 => AggregateOutcome::Enough,
            () if passed + not_run >= needed => {
                let begun = stability.runs + missing;
                words.push_str(&format!(", only {begun} were started"));
                AggregateOutcome::CutShort
            }
            () => AggregateOutcome::TooFew,
        };
        AggregateVerdict {
            outcome: came_to,
            summary: words,
            lacks_valid_attempts: missing > 0 && passed + missing >= needed,
            advice: MORE_RUNS,
        }
    }

    fn from_reliability(promise: ReliabilityResult, stability: &CaseStability) -> AggregateVerdict {
        let ReliabilityResult { reliability, grade, .. } = promise;
        let (rate, confidence) = (format_rate(reliability.rate), format_rate(reliability.confidence));
        let so_far = describe_passes(stability, stability.runs + stability.missing_attempts());
        let (came_to, words) = match grade {
            ReliabilityGrade::Pass => (AggregateOutcome::Enough, so_far),
            ReliabilityGrade::Inconclusive if stability.not_run > 0 => (AggregateOutcome::CutShort, so_far),
            ReliabilityGrade::Fail | ReliabilityGrade::Flaky => {
                let name = grade.name();
                (
                    AggregateOutcome::TooFew,
                    format!(
                        "{name}: {so_far}; the declared rate of {rate} is missed, with {confidence} confidence"
                    ),
                )
            }
            ReliabilityGrade::Inconclusive => {
                // The interval may exclude the rate before the test, which looks after each run, decides.
                let words = format!(
                    "INCONCLUSIVE: {so_far}; the declared rate of {rate} is not yet decided with {confidence} confidence"
                );
                (AggregateOutcome::Undecided, words)
            }
        };
        AggregateVerdict {
            outcome: came_to,
            summary: words,
            lacks_valid_attempts: stability.missing_attempts() > 0 && grade == ReliabilityGrade::Inconclusive,
            // Only a recheck ends early without a conclusion.
            advice: match () {
                () if stability.runs < reliability.max_runs => NO_MORE_SAVED,
                () if reliability.max_runs < MAX_RUNS_LIMIT => MORE_RUNS,
                () => OTHER_RATE,
            },
        }
    }

    /// Index of the attempt that best explains the verdict. If the case failed for lack of valid attempts,
    /// that is the first invalid one. Invalid attempts that were replaced explain nothing.
    pub(super) fn representative_index(&self, stability: &CaseStability, attempts: &[Arc<Attempt>]) -> usize {
        let has_missing = stability.missing_attempts() > 0;
        let fault = |attempt: &Attempt| attempt.verdict.failure.as_ref().map(|failure| failure.fault);
        let rank = |attempt: &Attempt| match attempt.status() {
            AttemptStatus::Invalid | AttemptStatus::TestFault if self.lacks_valid_attempts => 0,
            AttemptStatus::Failed if fault(attempt) == Some(ResponsibleParty::Agent) => 1,
            AttemptStatus::Failed => 2,
            AttemptStatus::Invalid | AttemptStatus::TestFault if has_missing => 3,
            AttemptStatus::Skipped => 4,
            AttemptStatus::Passed => 5,
            AttemptStatus::Invalid | AttemptStatus::TestFault => 6,
        };
        (0..attempts.len()).min_by_key(|index| rank(&attempts[*index])).unwrap_or(0)
    }

    /// The verdict of the case; `telling` is the representative attempt.
    pub(super) fn to_verdict(&self, stability: &CaseStability, telling: &Attempt) -> Verdict {
        let (words, number) = (&self.summary, telling.number);
        let is_unanswered = stability.passed == 0 && telling.verdict.status == VerdictStatus::Skipped;
        match self.outcome {
            AggregateOutcome::Enough => Verdict::passed(),
            // A case that never got an answer has not the reliability that it declares.
            AggregateOutcome::Undecided if is_unanswered => {
                let reason = telling.verdict.skip_reason.as_deref().unwrap_or_default();
                let message = format!("{words}; run {number} was skipped: {reason}");
                Verdict::failed(AttemptFailure::new(FailureKind::Inconclusive, message))
            }
            AggregateOutcome::CutShort => Verdict::skipped(format!("{words}: the run was interrupted")),
            _ if stability.passed + stability.failed == 0 => telling.verdict.clone(),
            AggregateOutcome::TooFew => {
                Verdict::failed(match (&telling.verdict.failure, &telling.verdict.skip_reason) {
                    (Some(failure), _) => AttemptFailure {
                        message: format!("{words}; run {number}: {}", failure.message),
                        ..failure.clone()
                    },
                    (None, reason) => {
                        let reason = reason.as_deref().unwrap_or_default();
                        let message = format!("{words}; run {number} was skipped: {reason}");
                        let kind = match telling.verdict.skip_fault {
                            Some(_) => FailureKind::SimulatorError,
                            None => FailureKind::NoInput,
                        };
                        AttemptFailure::new(kind, message)
                    }
                })
            }
            AggregateOutcome::Undecided => {
                let cause = telling.verdict.failure.as_ref().filter(|_| self.lacks_valid_attempts);
                let message = match cause {
                    Some(failure) => format!("{words}; run {number}: {}", failure.message),
                    None => format!("{words}; {}", self.advice),
                };
                let undecided = AttemptFailure::new(FailureKind::Inconclusive, message);
                Verdict::failed(AttemptFailure {
                    fault: cause.map_or(undecided.fault, |cause| cause.fault),
                    ..undecided
                })
            }
        }
    }
}

/// `2 of 3 runs passed`, with the number of invalid attempts.
fn describe_passes(stability: &CaseStability, runs: usize) -> String {
    let CaseStability { passed, invalid, redrawn, .. } = stability;
    let invalid_ones = match invalid {
        0 => String::new(),
        1 => ", 1 was invalid".to_string(),
        _ => format!(", {invalid} were invalid"),
    };
    let replaced = match redrawn {
        0 => String::new(),
        _ if redrawn == invalid => " and replaced".to_string(),
        _ => format!(", {redrawn} of them replaced"),
    };
    format!("{passed} of {runs} runs passed{invalid_ones}{replaced}")
}
