//! Summary of a run.

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{
    FailureKind, LabelCounts, Millis, ResultLabel, UsageTotals, VerdictStatus, optional_members,
};
use serde::{Deserialize, Serialize};

use super::check_totals::CheckTotals;
use super::execution_options::ExecutionOptions;
use super::outcome::CaseOutcome;
use super::stability::ReliabilityGrade;
use super::sweep_result::SweepReport;

optional_members! {
    /// Counts and totals of a run.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct RunSummary {
        /// Selected cases.
        pub total: usize,
        /// Passed cases.
        pub passed: usize,
        /// Cases that passed only after a retry.
        pub flaky: usize,
        /// Failed cases, for any reason.
        pub failed: usize,
        /// Skipped cases.
        pub skipped: usize,
        /// Cases that are skipped, or were skipped in an attempt, without a `skip` of their own.
        pub unasked_skips: usize,
        /// True if such skips make the run fail.
        pub fail_on_skip: bool,
        /// Cases that failed for another reason than a check or a time limit.
        pub errors: usize,
        /// Cases that failed because of a time limit.
        pub timeouts: usize,
        /// Cases that failed because the agent could not be reached.
        pub unreachable: usize,
        /// Cases by their label. Empty in runs that an earlier version saved.
        #[serde(default)]
        pub labels: Box<LabelCounts>,
        /// Totals of repeated cases.
        pub repeats: Option<RepeatTotals>,
        /// Totals of checks and criteria.
        #[serde(default)]
        pub measured: Box<CheckTotals>,
        /// Usage of all attempts, as far as it is reported.
        pub spent?: Option<Box<UsageTotals>>,
        /// Conversations of a sweep of faults that show a defect of an agent.
        pub sweep_failures?: usize,
        /// The sweep of faults, if there was one. Runs that an earlier version saved have only the number of its failures.
        pub sweep?: Option<Arc<SweepReport>>,
        /// True if the run was interrupted.
        pub interrupted: bool,
        /// Reason why the run could not be executed completely.
        pub broken?: Option<Box<str>>,
        /// True if the run has not ended: it still runs, or its process was killed.
        #[serde(skip)]
        pub unfinished: bool,
        /// Start time.
        pub started_at: Millis,
        /// End time.
        pub ended_at: Millis,
        /// Duration.
        pub duration: Duration,
    }
}

/// Totals of repeated cases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatTotals {
    /// Default number of attempts per case. `None` if it is one.
    pub runs_per_case: Option<usize>,
    /// Valid attempts.
    pub total: usize,
    /// Passed attempts.
    pub passed: usize,
    /// Invalid attempts, which are counted nowhere else.
    pub invalid: usize,
    /// Invalid attempts that were replaced.
    #[serde(default)]
    pub redrawn: usize,
    /// Grades of declared reliabilities.
    #[serde(default)]
    pub grades: GradeCounts,
    /// Cases that passed in all attempts.
    pub stable_cases: usize,
    /// Other cases.
    pub unstable_cases: usize,
}

/// Number of cases per reliability grade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradeCounts {
    /// Reached.
    pub pass: usize,
    /// Missed, never passed.
    pub fail: usize,
    /// Missed, passed sometimes.
    pub flaky: usize,
    /// Not decided.
    pub inconclusive: usize,
}

impl GradeCounts {
    /// Number of graded cases.
    pub fn total(&self) -> usize {
        self.pass + self.fail + self.flaky + self.inconclusive
    }

    fn count(&mut self, grade: ReliabilityGrade) {
        *match grade {
            ReliabilityGrade::Pass => &mut self.pass,
            ReliabilityGrade::Fail => &mut self.fail,
            ReliabilityGrade::Flaky => &mut self.flaky,
            ReliabilityGrade::Inconclusive => &mut self.inconclusive,
        } += 1;
    }
}

impl RepeatTotals {
    /// Pass rate of the valid attempts, from 0 to 1. `None` without valid attempts.
    pub fn pass_rate(&self) -> Option<f64> {
        (self.total > 0).then(|| self.passed as f64 / self.total as f64)
    }
}

impl RunSummary {
    /// Creates an empty summary for a run with these options.
    pub fn new(options: ExecutionOptions) -> Self {
        let runs_per_case = options.runs;
        let repeats = (runs_per_case > 1)
            .then(|| RepeatTotals { runs_per_case: Some(runs_per_case), ..RepeatTotals::default() });
        RunSummary { repeats, fail_on_skip: options.fail_on_skip, ..RunSummary::default() }
    }

    /// Counts a finished case.
    pub fn count_outcome(&mut self, outcome: &CaseOutcome) {
        self.total += 1;
        self.labels.add(ResultLabel::from_verdict(&outcome.verdict));
        match outcome.verdict.status {
            VerdictStatus::Passed => self.passed += 1,
            VerdictStatus::Skipped => self.skipped += 1,
            VerdictStatus::Failed => self.failed += 1,
        }
        let case = &outcome.case_ref.case;
        let is_unasked = case.skip.is_none() || case.left_out;
        self.unasked_skips += usize::from(is_unasked && outcome.has_skips());
        self.flaky += usize::from(outcome.is_flaky());
        // Counts the representative attempt of retried cases, and all attempts of repeated cases.
        match &outcome.stability {
            Some(_) => outcome.attempts.iter().for_each(|attempt| self.measured.count_all(&attempt.checks)),
            None => self.measured.count_all(&outcome.representative().checks),
        }
        let attempts = outcome.attempts.iter().filter_map(|attempt| attempt.conversation.usage_totals());
        let spent: Vec<UsageTotals> =
            self.spent.take().into_iter().map(|spent| *spent).chain(attempts).collect();
        self.spent = UsageTotals::sum(&spent).map(Box::new);
        match outcome.verdict.failure.as_ref().map(|failure| failure.kind) {
            None | Some(FailureKind::Assertion) => {}
            Some(FailureKind::Timeout) => self.timeouts += 1,
            Some(kind) => {
                self.errors += 1;
                self.unreachable += usize::from(kind == FailureKind::Unreachable);
            }
        }
        if let Some(stability) = &outcome.stability {
            let repeats = self.repeats.get_or_insert_default();
            repeats.total += stability.runs;
            repeats.passed += stability.passed;
            repeats.invalid += stability.invalid;
            repeats.redrawn += stability.redrawn;
            if let Some(promise) = stability.promise {
                repeats.grades.count(promise.grade);
            }
            match stability.is_stable() {
                Some(true) => repeats.stable_cases += 1,
                Some(false) => repeats.unstable_cases += 1,
                None => {}
            }
        }
    }

    /// Adds the sweep of faults that followed the cases. A whole sweep without a fault proves nothing and breaks the run, unless
    /// cases failed: these are not swept.
    pub fn add_sweep(&mut self, sweep: Arc<SweepReport>, is_whole: bool) {
        self.sweep_failures = sweep.failures();
        if is_whole && sweep.injected_nothing() && self.failed == 0 && !self.interrupted {
            self.broken = Some("the sweep injected no fault".into());
        }
        self.sweep = Some(sweep);
    }

    /// Pass rate of the executed cases in percent. `None` if no case ran.
    pub fn pass_rate(&self) -> Option<f64> {
        let ran = self.passed + self.failed;
        (ran > 0).then(|| self.passed as f64 * 100.0 / ran as f64)
    }

    /// True if a case failed, a skip counts as a failure, or a sweep of faults found a defect.
    pub fn has_failed(&self) -> bool {
        self.failed > 0 || self.sweep_failures > 0 || (self.fail_on_skip && self.unasked_skips > 0)
    }

    /// True if every failure is a connection failure and no case passed, so the run says nothing about the
    /// agent.
    pub fn never_reached(&self) -> bool {
        self.unreachable > 0 && self.unreachable == self.failed && self.passed == 0
    }
}
