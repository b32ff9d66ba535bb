//! What is to be done next in a run. Nothing here waits or reads a clock: it is told what happens and says what
//! follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotseat_trace::{Status, Verdict};

use super::attempt::Attempt;
use super::dispatcher::{Control, Options};
use super::outcome::{Outcome, Repetition, may_pass_another_time};
use super::plan::Selected;
use super::series::{Series, Until};
use super::stability::PassRate;
use super::summary::Summary;
use crate::cases::{Case, Declared, Reliability};

/// The state of a run.
#[derive(Debug)]
pub(super) struct Dispatch {
    options: Options,
    control: Control,
    first_failure: Option<String>,
    /// The cases that have begun and not ended, by their places in the run. There are never more of them than
    /// attempts that run: a case begins when no other one waits for an attempt.
    open: BTreeMap<usize, Open>,
    /// How many attempts are going on.
    running: usize,
    pub(super) summary: Summary,
}

/// A case that has begun.
#[derive(Debug)]
struct Open {
    selected: Selected,
    course: Course,
    /// How many attempts have begun.
    begun: usize,
    /// Those that have ended.
    ended: Vec<Arc<Attempt>>,
}

/// How a case is attempted, and how far that is.
#[derive(Debug)]
enum Course {
    /// Once, and at most so many times more.
    Retried(usize),
    /// Several times.
    Repeated(Series),
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Step {
    /// This attempt is to be made.
    Attempt(Selected, usize),
    /// Another case may begin, if there is one.
    Case,
    /// Nothing, until something has happened.
    Wait,
}

impl Dispatch {
    /// A run that begins.
    pub(super) fn new(options: Options, summary: Summary) -> Self {
        let (control, first_failure, open) = (Control::Run, None, BTreeMap::new());
        Dispatch { options, control, first_failure, open, running: 0, summary }
    }

    /// What is to be done next. An attempt that is given out counts as going on.
    pub(super) fn next(&mut self) -> Step {
        if self.running >= self.options.parallel || self.control != Control::Run {
            return Step::Wait;
        }
        if let Some(open) = self.open.values_mut().find(|open| open.goes_on()) {
            open.begun += 1;
            self.running += 1;
            return Step::Attempt(open.selected.clone(), open.begun);
        }
        match self.reason_not_to_begin() {
            None => Step::Case,
            Some(_) => Step::Wait,
        }
    }

    /// Whether somebody wants the run to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.control != Control::Run
    }

    /// Whether attempts are going on.
    pub(super) fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Why no new case begins any more, if that is so. Cases that have begun are brought to their end after a
    /// failure, and not when somebody wants the run to end.
    pub(super) fn reason_not_to_begin(&self) -> Option<String> {
        match (self.control, &self.first_failure) {
            (Control::Finish | Control::Cancel, _) => Some("not run: the run was interrupted".to_string()),
            (Control::Run, Some(case)) if self.options.fail_fast => {
                Some(format!("not run: `{case}` failed (--fail-fast)"))
            }
            (Control::Run, _) => None,
        }
    }

    /// A case begins.
    pub(super) fn begin(&mut self, selected: Selected) {
        let course = match self.options.repetition(&selected) {
            Repetition::Retried { retries } => Course::Retried(retries),
            Repetition::Repeated { until, redraws } => {
                Course::Repeated(Series::new(until, redraws).of_kept(selected.kept))
            }
        };
        let index = selected.index;
        self.open.insert(index, Open { selected, course, begun: 0, ended: Vec::new() });
    }

    /// An attempt has ended; says what its case came to if that has ended, too.
    pub(super) fn ended(&mut self, attempt: Arc<Attempt>) -> Option<Outcome> {
        self.running -= 1;
        let index = attempt.selected.index;
        let open = self.open.get_mut(&index)?;
        if let Course::Repeated(series) = &mut open.course {
            series.note(attempt.number, attempt.standing());
            if series.is_lost() && self.first_failure.is_none() {
                self.first_failure = Some(open.selected.case.name.clone());
            }
        }
        open.ended.push(attempt);
        let wants_more = open.goes_on();
        if (wants_more && self.control == Control::Run) || open.ended.len() < open.begun {
            return None;
        }
        let Open { selected, course, ended, .. } = self.open.remove(&index)?;
        let outcome = match course {
            Course::Retried(_) => Outcome::tried(selected.told, ended, wants_more),
            Course::Repeated(series) => Outcome::repeated(selected.told, &series, ended),
        };
        self.count(&outcome);
        Some(outcome)
    }

    /// A case will never begin.
    pub(super) fn never_begins(&mut self, selected: &Selected, reason: String) -> Outcome {
        let outcome = Outcome::not_begun(selected.told.clone(), Verdict::skipped(reason));
        self.count(&outcome);
        outcome
    }

    /// A case had ended before the run was broken off.
    pub(super) fn has_ended(&mut self, outcome: &Outcome) {
        self.count(outcome);
    }

    fn count(&mut self, outcome: &Outcome) {
        self.summary.count(outcome);
        if outcome.verdict.status == Status::Failed && self.first_failure.is_none() {
            self.first_failure = Some(outcome.selected.case.name.clone());
        }
    }

    /// Takes note of a wish from outside; says whether it is a new one. A lesser one never takes back a greater.
    pub(super) fn control(&mut self, control: Control) -> bool {
        let new = control > self.control;
        if new {
            self.control = control;
            self.summary.interrupted = true;
        }
        new
    }
}

impl Open {
    /// Whether another attempt is to be made.
    fn goes_on(&self) -> bool {
        match (&self.course, self.ended.last()) {
            (Course::Repeated(series), _) => series.goes_on(self.begun),
            // Whether it is tried again depends on how this one ends.
            (Course::Retried(_), _) if self.begun > self.ended.len() => false,
            (Course::Retried(_), None) => true,
            (Course::Retried(retries), Some(last)) => {
                // An attempt that says nothing about the agent takes none of its retries: there are as many for those.
                let is_valid = |attempt: &Arc<Attempt>| attempt.standing().is_valid();
                let alike = self.ended.iter().filter(|attempt| is_valid(attempt) == is_valid(last)).count();
                let is_kept = self.selected.kept.is_none_or(|kept| self.begun < kept);
                alike <= *retries && is_kept && may_pass_another_time(&last.verdict)
            }
        }
    }
}

impl Options {
    /// How often a case is attempted. One that is left out is left out once, and one that is run several times is
    /// never tried again: that would hide what the runs are to show.
    pub(super) fn repetition(&self, selected: &Selected) -> Repetition {
        let case = &selected.case;
        let until = match (self.declared_by(case), self.runs) {
            _ if case.skip.is_some() => return Repetition::Retried { retries: 0 },
            (Some(reliability), _) => Until::Known(reliability),
            (None, runs @ 2..) => Until::Made { runs, least: self.min_pass_rate },
            (None, _) => {
                let retries = self.retries.or(case.retries).unwrap_or(self.default_retries);
                // What was not held cannot be tried again.
                let retries = selected.kept.map_or(retries, |kept| retries.min(kept.saturating_sub(1)));
                return Repetition::Retried { retries };
            }
        };
        // Now and then a helper errs; one that always does is not asked again and again.
        let redraws = self.redraws.unwrap_or((until.most() / 10).max(3));
        Repetition::Repeated { until, redraws }
    }

    /// The reliability that is declared for a case, if that counts. What the case says itself goes before what the
    /// project says.
    pub fn declared_by(&self, case: &Case) -> Option<Reliability> {
        match (self.as_declared, case.reliability) {
            (false, _) | (true, Declared::Nothing) => None,
            (true, Declared::Here(reliability)) => Some(reliability),
            (true, Declared::Inherited) => self.reliability.filter(|_| case.retries.is_none()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            parallel: 1,
            fail_fast: false,
            runs: 1,
            min_pass_rate: PassRate::ALL,
            as_declared: true,
            reliability: None,
            redraws: None,
            retries: None,
            default_retries: 0,
            fail_on_skip: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch(parallel: usize, fail_fast: bool) -> Dispatch {
        Dispatch::new(Options { parallel, fail_fast, ..Options::default() }, Summary::default())
    }

    #[test]
    fn no_more_begin_than_may_run_at_once() {
        let mut dispatch = dispatch(2, false);
        for (running, begins) in [(0, true), (1, true), (2, false)] {
            dispatch.running = running;
            assert_eq!(matches!(dispatch.next(), Step::Case), begins, "{running} are running");
        }
    }

    #[test]
    fn a_failure_stops_new_cases_only_with_fail_fast() {
        for fail_fast in [false, true] {
            let mut dispatch = dispatch(2, fail_fast);
            dispatch.first_failure = Some("a".to_string());
            assert_eq!(matches!(dispatch.next(), Step::Wait), fail_fast);
        }
    }

    #[test]
    fn a_lesser_wish_never_takes_back_a_greater() {
        let table = [
            (Control::Run, Control::Finish, true, Control::Finish),
            (Control::Run, Control::Cancel, true, Control::Cancel),
            (Control::Finish, Control::Cancel, true, Control::Cancel),
            (Control::Cancel, Control::Finish, false, Control::Cancel),
            (Control::Finish, Control::Run, false, Control::Finish),
        ];
        for (before, wish, new, after) in table {
            let mut dispatch = dispatch(1, false);
            dispatch.control = before;
            assert_eq!((dispatch.control(wish), dispatch.control), (new, after), "{before:?} then {wish:?}");
        }
    }
}
