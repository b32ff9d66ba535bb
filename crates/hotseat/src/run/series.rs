//! The runs of a case that is repeated: how many there are to be, and what is known when some of them have ended.

use std::collections::BTreeMap;

use hotseat_trace::{FailureKind, Fault, Status, Verdict};
use serde::{Deserialize, Serialize};

use super::stability::PassRate;
use crate::cases::Reliability;
use crate::statistics::{Finding, Sequential};

/// Until when a case is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// So many times.
    Made {
        /// How often.
        runs: usize,
        /// How much of that has to pass.
        least: PassRate,
    },
    /// Until it is known whether it is as reliable as declared.
    Known(Reliability),
}

/// What one run of several came to, for the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// Nobody answered the agent.
    Skipped,
    /// It failed, and says nothing about the agent: a helper, a hook or the machine is to blame. Another run may be made
    /// in its place.
    Invalid,
    /// It failed, and says nothing about the agent: the test is wrong. Another run would be wrong in the same way, so none is
    /// made in its place.
    TestFault,
}

/// The runs of a case that have ended.
#[derive(Debug)]
pub(super) struct Series {
    until: Until,
    redraws: usize,
    /// Those that wait for one with a lower number.
    waiting: BTreeMap<usize, Standing>,
    /// How many were taken in their order.
    taken: usize,
    /// All that have ended, whether they were taken or not.
    ended: Counts,
    test: Option<Sequential>,
    /// Where they are decided again: how many are kept.
    kept: Option<usize>,
    /// How many were taken when the test was decided.
    decided_after: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    failed: usize,
    skipped: usize,
    invalid: usize,
    test_faults: usize,
    all: usize,
}

impl Until {
    /// How many runs are made at most, without those that are made again.
    pub fn most(self) -> usize {
        match self {
            Until::Made { runs, .. } => runs,
            Until::Known(reliability) => reliability.max_runs,
        }
    }
}

impl Standing {
    /// What a run with this verdict came to.
    pub fn of(verdict: &Verdict) -> Standing {
        match (verdict.status, verdict.failure.as_ref().map(|failure| failure.fault)) {
            (Status::Passed, _) => Standing::Passed,
            (Status::Skipped, _) => Standing::Skipped,
            (Status::Failed, Some(Fault::Infrastructure | Fault::Simulator | Fault::Judge)) => {
                Standing::Invalid
            }
            (Status::Failed, Some(Fault::Test)) => match verdict.failure.as_ref().map(|failure| failure.kind)
            {
                Some(FailureKind::HookError) => Standing::Invalid,
                // A case with `on_missing_input: fail` says that an agent that waits has failed.
                Some(FailureKind::NoInput) => Standing::Failed,
                _ => Standing::TestFault,
            },
            (Status::Failed, Some(Fault::Agent) | None) => Standing::Failed,
        }
    }

    /// Whether a run with this standing is an attempt of the agent.
    pub fn is_valid(self) -> bool {
        match self {
            Standing::Passed | Standing::Failed | Standing::Skipped => true,
            Standing::Invalid | Standing::TestFault => false,
        }
    }
}

impl Series {
    /// None has ended; so many may be made again.
    pub(super) fn new(until: Until, redraws: usize) -> Series {
        let test = match until {
            Until::Made { .. } => None,
            Until::Known(Reliability { rate, confidence, .. }) => Some(Sequential::new(rate, confidence)),
        };
        let (waiting, ended) = (BTreeMap::new(), Counts::default());
        Series { until, redraws, waiting, taken: 0, ended, test, kept: None, decided_after: None }
    }

    /// The same of runs that are kept, where they are: there are no more than these.
    pub(super) fn of_kept(self, kept: Option<usize>) -> Series {
        Series { kept, ..self }
    }

    /// A run has ended. What is known follows from runs in the order in which they began: those that fail may well be the
    /// first to end, and nothing may follow from that.
    pub(super) fn note(&mut self, number: usize, standing: Standing) {
        self.ended.all += 1;
        match standing {
            Standing::Passed => {}
            Standing::Failed => self.ended.failed += 1,
            Standing::Skipped => self.ended.skipped += 1,
            Standing::Invalid => self.ended.invalid += 1,
            Standing::TestFault => self.ended.test_faults += 1,
        }
        let Some(test) = &mut self.test else { return };
        self.waiting.insert(number, standing);
        while let Some(standing) = self.waiting.remove(&(self.taken + 1)) {
            // What a wrong test would have shown is not known, so nothing follows from the runs behind it.
            if standing == Standing::TestFault {
                return;
            }
            self.taken += 1;
            if standing.is_valid() && test.finding().is_none() {
                let found = test.note(standing == Standing::Passed);
                self.decided_after = found.map(|_| self.taken);
            }
        }
    }

    /// How many of the runs that say nothing about the agent are made again.
    pub(super) fn redrawn(&self) -> usize {
        self.ended.invalid.min(self.redraws)
    }

    /// How many of them were made again: a run that was broken off has not made those that were still to come.
    pub(super) fn made_again(&self) -> usize {
        match self.until {
            Until::Made { runs, .. } => self.redrawn().min(self.ended.all.saturating_sub(runs)),
            Until::Known(_) => self.redrawn(),
        }
    }

    /// Whether another one is to be made when so many have begun.
    pub(super) fn goes_on(&self, begun: usize) -> bool {
        let more =
            begun < self.until.most() + self.redrawn() && self.kept.is_none_or(|kept| begun < kept.max(1));
        match self.until {
            Until::Made { .. } => more,
            // What is missing would have to be counted as failed, and that is not known.
            Until::Known(_) => more && self.finding().is_none() && !self.is_short_of_runs(),
        }
    }

    /// Whether the case can no longer pass, whatever comes of the runs that are left.
    pub(super) fn is_lost(&self) -> bool {
        let Counts { failed, skipped, invalid, test_faults, all } = self.ended;
        // A case of which all runs are skipped is skipped.
        let some = skipped < all;
        match self.until {
            Until::Made { runs, least } => {
                let missing = test_faults + invalid - self.redrawn();
                failed + skipped + missing > runs - least.of(runs) && some
            }
            Until::Known(_) => {
                let missing = self.is_short_of_runs() && self.finding().is_none();
                (self.finding() == Some(Finding::Missed) || missing) && some
            }
        }
    }

    /// Whether more runs say nothing about the agent than are made again.
    fn is_short_of_runs(&self) -> bool {
        self.ended.invalid > self.redraws || self.ended.test_faults > 0
    }

    /// What is known of the declared reliability.
    pub(super) fn finding(&self) -> Option<Finding> {
        self.test.as_ref()?.finding()
    }

    /// How many runs it took to know that.
    pub(super) fn decided_after(&self) -> Option<usize> {
        self.decided_after
    }

    pub(super) fn until(&self) -> Until {
        self.until
    }

    /// How many runs were asked for and not begun, when so many were.
    pub(super) fn not_begun(&self, begun: usize) -> usize {
        match self.goes_on(begun) {
            true => self.until.most() + self.redrawn() - begun,
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Standing::{Failed, Invalid, Passed};
    use super::*;

    fn known(rate: f64) -> Series {
        Series::new(Until::Known(Reliability { rate, confidence: 0.95, max_runs: 50 }), 3)
    }

    #[test]
    fn what_is_known_follows_from_runs_in_the_order_in_which_they_began() {
        // Failures come first, as they do when the agent breaks off.
        let mut series = known(0.9);
        for (number, standing) in [(3, Failed), (4, Failed)] {
            series.note(number, standing);
        }
        assert_eq!(series.finding(), None, "nothing is known of the first two");
        series.note(1, Passed);
        series.note(2, Passed);
        let mut in_order = known(0.9);
        [Passed, Passed, Failed, Failed].into_iter().zip(1..).for_each(|(one, n)| in_order.note(n, one));
        assert_eq!((series.finding(), series.taken), (in_order.finding(), 4));
    }

    #[test]
    fn runs_that_say_nothing_are_made_again_so_many_times() {
        let mut series = Series::new(Until::Made { runs: 3, least: PassRate::ALL }, 2);
        for (number, standing, begun, goes_on, lost) in [
            (1, Invalid, 3, true, false),
            (2, Passed, 4, false, false),
            (3, Invalid, 4, true, false),
            (4, Invalid, 5, false, true),
            (5, Passed, 5, false, true),
        ] {
            series.note(number, standing);
            assert_eq!((series.goes_on(begun), series.is_lost()), (goes_on, lost), "after run {number}");
        }
        let mut series = known(0.9);
        (1..=4).for_each(|number| series.note(number, Invalid));
        assert!(!series.goes_on(4) && series.is_lost(), "nobody can tell any more");
    }

    #[test]
    fn a_case_of_which_enough_is_known_is_not_run_again() {
        let mut series = known(0.8);
        let mut number = 0;
        while series.goes_on(number) {
            number += 1;
            // One that says nothing decides nothing.
            series.note(number, if number == 5 { Invalid } else { Passed });
        }
        assert_eq!(
            (number, series.finding(), series.decided_after()),
            (17, Some(Finding::Reached), Some(17))
        );
        assert_eq!(series.not_begun(number), 0);
    }
}
