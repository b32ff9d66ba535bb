//! The attempts of a repeated case: the number still needed, and the conclusion reached so far.

use std::collections::BTreeMap;

use hotseat_trace::{FailureKind, ResponsibleParty, Verdict, VerdictStatus};
use serde::{Deserialize, Serialize};

use crate::cases::{PassRate, Reliability};
use hotseat_statistics::{RateDecision, SequentialTest};

/// Condition to stop repeating a case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRule {
    /// After a fixed number of attempts.
    Made {
        /// Number of attempts.
        runs: usize,
        /// Minimum pass rate.
        least: PassRate,
    },
    /// When the declared reliability is confirmed or refuted.
    Known(Reliability),
}

/// Status of one attempt with respect to its case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptStatus {
    /// The attempt passed.
    Passed,
    /// The attempt failed.
    Failed,
    /// The agent waited for input and got none.
    Skipped,
    /// The attempt failed and says nothing about the agent: a role, a hook or the machine is at fault. It may
    /// be replaced by another attempt.
    Invalid,
    /// The attempt failed because the test is wrong. Another attempt would fail in the same way, so it is not
    /// replaced.
    TestFault,
}

/// Progress of a repeated case.
#[derive(Debug)]
pub(super) struct RepeatSeries {
    until: StopRule,
    max_invalid: usize,
    /// Finished attempts that wait for one with a lower number.
    waiting: BTreeMap<usize, AttemptStatus>,
    /// Number of attempts counted in start order.
    taken: usize,
    /// Counts of all finished attempts, in any order.
    ended: AttemptCounts,
    reliability_test: Option<SequentialTest>,
    /// During a recheck: number of saved attempts.
    kept: Option<usize>,
    /// Number of counted attempts when the test reached its conclusion.
    decided_after: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct AttemptCounts {
    failed: usize,
    skipped: usize,
    invalid: usize,
    test_faults: usize,
    all: usize,
}

impl StopRule {
    /// Maximum number of attempts, without replacements of invalid ones.
    pub fn max_attempts(self) -> usize {
        match self {
            StopRule::Made { runs, .. } => runs,
            StopRule::Known(reliability) => reliability.max_runs,
        }
    }
}

impl AttemptStatus {
    /// Returns the status of an attempt with this verdict.
    pub fn from_verdict(verdict: &Verdict) -> AttemptStatus {
        let fault = verdict.failure.as_ref().map(|failure| failure.fault).or(verdict.skip_fault);
        match (verdict.status, fault) {
            (VerdictStatus::Passed, _) => AttemptStatus::Passed,
            (
                VerdictStatus::Failed | VerdictStatus::Skipped,
                Some(
                    ResponsibleParty::Infrastructure | ResponsibleParty::Simulator | ResponsibleParty::Judge,
                ),
            ) => AttemptStatus::Invalid,
            (VerdictStatus::Skipped, _) => AttemptStatus::Skipped,
            (VerdictStatus::Failed, Some(ResponsibleParty::Test)) => {
                match verdict.failure.as_ref().map(|failure| failure.kind) {
                    Some(FailureKind::HookError) => AttemptStatus::Invalid,
                    // With `on_missing_input: fail`, an agent that waits for input has failed.
                    Some(FailureKind::NoInput) => AttemptStatus::Failed,
                    _ => AttemptStatus::TestFault,
                }
            }
            (VerdictStatus::Failed, Some(ResponsibleParty::Agent) | None) => AttemptStatus::Failed,
        }
    }

    /// True if the attempt says something about the agent.
    pub fn is_valid(self) -> bool {
        match self {
            AttemptStatus::Passed | AttemptStatus::Failed | AttemptStatus::Skipped => true,
            AttemptStatus::Invalid | AttemptStatus::TestFault => false,
        }
    }
}

impl RepeatSeries {
    /// Creates a series without finished attempts; at most `max_invalid` invalid attempts are replaced.
    pub(super) fn new(until: StopRule, max_invalid: usize) -> RepeatSeries {
        let test = match until {
            StopRule::Made { .. } => None,
            StopRule::Known(Reliability { rate, confidence, .. }) => {
                Some(SequentialTest::new(rate, confidence))
            }
        };
        let (waiting, ended) = (BTreeMap::new(), AttemptCounts::default());
        RepeatSeries {
            until,
            max_invalid,
            waiting,
            taken: 0,
            ended,
            reliability_test: test,
            kept: None,
            decided_after: None,
        }
    }

    /// Limits the series to the saved attempts of a recheck.
    pub(super) fn with_saved_attempts(self, kept: Option<usize>) -> RepeatSeries {
        RepeatSeries { kept, ..self }
    }

    /// Records a finished attempt. Conclusions are drawn in start order: failed attempts often finish first,
    /// which would bias the test.
    pub(super) fn record(&mut self, number: usize, standing: AttemptStatus) {
        self.ended.all += 1;
        match standing {
            AttemptStatus::Passed => {}
            AttemptStatus::Failed => self.ended.failed += 1,
            AttemptStatus::Skipped => self.ended.skipped += 1,
            AttemptStatus::Invalid => self.ended.invalid += 1,
            AttemptStatus::TestFault => self.ended.test_faults += 1,
        }
        let Some(test) = &mut self.reliability_test else { return };
        self.waiting.insert(number, standing);
        while let Some(standing) = self.waiting.remove(&(self.taken + 1)) {
            // The result behind a wrong test is unknown, so no later attempt is counted.
            if standing == AttemptStatus::TestFault {
                return;
            }
            self.taken += 1;
            if standing.is_valid() && test.decision().is_none() {
                let found = test.record(standing == AttemptStatus::Passed);
                self.decided_after = found.map(|_| self.taken);
            }
        }
    }

    /// Number of invalid attempts to be replaced.
    pub(super) fn replacements(&self) -> usize {
        self.ended.invalid.min(self.max_invalid)
    }

    /// Number of invalid attempts already replaced. An interrupted run lacks the pending ones.
    pub(super) fn replaced(&self) -> usize {
        match self.until {
            StopRule::Made { runs, .. } => self.replacements().min(self.ended.all.saturating_sub(runs)),
            StopRule::Known(_) => self.replacements(),
        }
    }

    /// True if another attempt is needed after `begun` have started.
    pub(super) fn needs_attempt(&self, begun: usize) -> bool {
        let more = begun < self.until.max_attempts() + self.replacements()
            && self.kept.is_none_or(|kept| begun < kept.max(1));
        match self.until {
            StopRule::Made { .. } => more,
            // A missing attempt would have to count as failed, which is not known.
            StopRule::Known(_) => more && self.conclusion().is_none() && !self.lacks_attempts(),
        }
    }

    /// True if the case can no longer pass.
    pub(super) fn is_lost(&self) -> bool {
        let AttemptCounts { failed, skipped, invalid, test_faults, all } = self.ended;
        match self.until {
            StopRule::Made { runs, least } => {
                let missing = test_faults + invalid - self.replacements();
                // A case is skipped if all its attempts are, without those that are replaced.
                let is_skipped = missing == 0 && skipped + invalid == all;
                failed + skipped + missing > runs - least.required_passes(runs) && !is_skipped
            }
            StopRule::Known(_) => match self.conclusion() {
                Some(decision) => decision == RateDecision::Missed,
                None => self.lacks_attempts(),
            },
        }
    }

    /// True if more attempts are invalid than can be replaced.
    fn lacks_attempts(&self) -> bool {
        self.ended.invalid > self.max_invalid || self.ended.test_faults > 0
    }

    /// Conclusion about the declared reliability, if reached.
    pub(super) fn conclusion(&self) -> Option<RateDecision> {
        self.reliability_test.as_ref()?.decision()
    }

    /// Number of attempts until the conclusion.
    pub(super) fn decided_after(&self) -> Option<usize> {
        self.decided_after
    }

    pub(super) fn stop_rule(&self) -> StopRule {
        self.until
    }

    /// Number of attempts still due after `begun` have started.
    pub(super) fn pending_attempts(&self, begun: usize) -> usize {
        match self.needs_attempt(begun) {
            true => self.until.max_attempts() + self.replacements() - begun,
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AttemptStatus::{Failed, Invalid, Passed};
    use super::*;

    fn known(rate: f64) -> RepeatSeries {
        RepeatSeries::new(StopRule::Known(Reliability { rate, confidence: 0.95, max_runs: 50 }), 3)
    }

    #[test]
    fn attempts_are_counted_in_start_order() {
        // Failures finish first, as with an agent that aborts early.
        let mut series = known(0.9);
        for (number, standing) in [(3, Failed), (4, Failed)] {
            series.record(number, standing);
        }
        assert_eq!(series.conclusion(), None, "nothing is known of the first two");
        series.record(1, Passed);
        series.record(2, Passed);
        let mut in_order = known(0.9);
        [Passed, Passed, Failed, Failed].into_iter().zip(1..).for_each(|(one, n)| in_order.record(n, one));
        assert_eq!((series.conclusion(), series.taken), (in_order.conclusion(), 4));
    }

    #[test]
    fn invalid_attempts_are_replaced_up_to_the_limit() {
        let mut series = RepeatSeries::new(StopRule::Made { runs: 3, least: PassRate::ALL }, 2);
        for (number, standing, begun, goes_on, lost) in [
            (1, Invalid, 3, true, false),
            (2, Passed, 4, false, false),
            (3, Invalid, 4, true, false),
            (4, Invalid, 5, false, true),
            (5, Passed, 5, false, true),
        ] {
            series.record(number, standing);
            assert_eq!(
                (series.needs_attempt(begun), series.is_lost()),
                (goes_on, lost),
                "after run {number}"
            );
        }
        let mut series = known(0.9);
        (1..=4).for_each(|number| series.record(number, Invalid));
        assert!(!series.needs_attempt(4) && series.is_lost(), "the series is decided");
    }

    #[test]
    fn concluded_case_needs_no_further_attempt() {
        let mut series = known(0.8);
        let mut number = 0;
        while series.needs_attempt(number) {
            number += 1;
            // An invalid attempt is not counted.
            series.record(number, if number == 5 { Invalid } else { Passed });
        }
        assert_eq!(
            (number, series.conclusion(), series.decided_after()),
            (17, Some(RateDecision::Reached), Some(17))
        );
        assert_eq!(series.pending_attempts(number), 0);
    }
}
