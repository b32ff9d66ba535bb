//! What a run came to, in numbers.

use std::time::Duration;

use hotseat_trace::{FailureKind, Millis, Spent, Status};
use serde::{Deserialize, Serialize};

use super::dispatcher::Options;
use super::measured::Measured;
use super::outcome::Outcome;
use super::stability::Grade;

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many cases were selected.
    pub total: usize,
    /// How many passed.
    pub passed: usize,
    /// How many of those that passed did so only when they were tried again.
    pub flaky: usize,
    /// How many failed, for whatever reason.
    pub failed: usize,
    /// How many were not run.
    pub skipped: usize,
    /// How many of those are skipped although they do not say so themselves.
    pub unasked_skips: usize,
    /// Whether such skips make the run fail.
    pub fail_on_skip: bool,
    /// How many of those that failed did so for another reason than a check or a time limit.
    pub errors: usize,
    /// How many of those that failed did so at a time limit.
    pub timeouts: usize,
    /// How many of those that failed never reached the agent.
    pub unreachable: usize,
    /// What the runs of all cases came to, where each has several.
    pub repeats: Option<Repeats>,
    /// What checks and criteria came to.
    #[serde(default)]
    pub measured: Box<Measured>,
    /// What all attempts have spent, as far as somebody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Box<Spent>>,
    /// Whether the run was ended from outside.
    pub interrupted: bool,
    /// Why it could not be carried out, where it could not: nothing was held, or not all that should have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Box<str>>,
    /// When it began.
    pub started_at: Millis,
    /// When it ended.
    pub ended_at: Millis,
    /// How long it took.
    pub duration: Duration,
}

/// What the runs of all cases came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// How many runs each case has where nothing else is declared; none where that is one.
    #[serde(default)]
    pub runs_per_case: Option<usize>,
    /// How many say something about the agent.
    pub total: usize,
    /// How many of them passed.
    pub passed: usize,
    /// How many were made that say nothing about the agent, and are counted nowhere else.
    pub invalid: usize,
    /// How many of these were made again.
    #[serde(default)]
    pub redrawn: usize,
    /// What became of declared reliabilities.
    #[serde(default)]
    pub grades: Grades,
    /// How many cases passed in each of their runs.
    pub stable_cases: usize,
    /// How many did not.
    pub unstable_cases: usize,
}

/// What became of declared reliabilities: of how many cases what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grades {
    /// They are kept.
    pub pass: usize,
    /// They are not, and the case never passed.
    pub fail: usize,
    /// They are not, and the case passes sometimes.
    pub flaky: usize,
    /// The runs do not tell.
    pub inconclusive: usize,
}

impl Grades {
    /// Of how many cases there are any.
    pub fn all(&self) -> usize {
        self.pass + self.fail + self.flaky + self.inconclusive
    }

    fn count(&mut self, grade: Grade) {
        *match grade {
            Grade::Pass => &mut self.pass,
            Grade::Fail => &mut self.fail,
            Grade::Flaky => &mut self.flaky,
            Grade::Inconclusive => &mut self.inconclusive,
        } += 1;
    }
}

impl Repeats {
    /// The part of the runs that passed, from 0 to 1; none where no run says anything about the agent.
    pub fn pass_rate(&self) -> Option<f64> {
        (self.total > 0).then(|| self.passed as f64 / self.total as f64)
    }
}

impl Summary {
    /// Of a run with these options that has come to nothing yet.
    pub(crate) fn begin(options: Options) -> Self {
        let runs_per_case = options.runs;
        let repeats =
            (runs_per_case > 1).then(|| Repeats { runs_per_case: Some(runs_per_case), ..Repeats::default() });
        Summary { repeats, fail_on_skip: options.fail_on_skip, ..Summary::default() }
    }

    /// Counts a case that has ended.
    pub(crate) fn count(&mut self, outcome: &Outcome) {
        self.total += 1;
        match outcome.verdict.status {
            Status::Passed => self.passed += 1,
            Status::Skipped => {
                self.skipped += 1;
                self.unasked_skips += usize::from(outcome.selected.case.skip.is_none());
            }
            Status::Failed => self.failed += 1,
        }
        self.flaky += usize::from(outcome.is_flaky());
        // Of a case that was tried again the last attempt counts, of one that was repeated all do.
        match &outcome.stability {
            Some(_) => outcome.attempts.iter().for_each(|attempt| self.measured.count(&attempt.checks)),
            None => self.measured.count(&outcome.telling().checks),
        }
        let attempts = outcome.attempts.iter().filter_map(|attempt| attempt.conversation.spent());
        let spent: Vec<Spent> = self.spent.take().into_iter().map(|spent| *spent).chain(attempts).collect();
        self.spent = Spent::sum(&spent).map(Box::new);
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

    /// How many percent of the cases that ran passed; none where none ran.
    pub fn pass_rate(&self) -> Option<f64> {
        let ran = self.passed + self.failed;
        (ran > 0).then(|| self.passed as f64 * 100.0 / ran as f64)
    }

    /// Whether some case has failed, or was skipped where that counts as much.
    pub fn has_failed(&self) -> bool {
        self.failed > 0 || (self.fail_on_skip && self.unasked_skips > 0)
    }

    /// Whether the agent was never reached although somebody tried: then the run says nothing about it.
    pub fn never_reached(&self) -> bool {
        self.unreachable > 0 && self.unreachable == self.failed && self.passed == 0
    }
}
