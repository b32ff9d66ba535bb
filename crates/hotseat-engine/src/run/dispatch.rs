//! Scheduling decisions of a run. Pure state machine: it receives events, returns the next step, and neither
//! waits nor reads a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_trace::{Verdict, VerdictStatus};

use super::attempt_result::Attempt;
use super::cancellation::RunControl;
use super::execution_options::ExecutionOptions;
use super::outcome::{AttemptPolicy, CaseOutcome, is_retryable};
use super::plan::SelectedCase;
use super::series::{RepeatSeries, StopRule};
use super::summary::RunSummary;
use crate::cases::{PassRate, Reliability, ReliabilitySetting};

/// Scheduling state of a run.
#[derive(Debug)]
pub(super) struct DispatchState {
    options: ExecutionOptions,
    control: RunControl,
    first_failure: Option<String>,
    /// Key of the limit of the whole run that its agents have exceeded.
    exceeded_limit: Option<String>,
    /// Started, unfinished cases by index in the run. A new case starts only if no open case needs another
    /// attempt, so there are never more open cases than running attempts.
    open_cases: BTreeMap<usize, Box<OpenCase>>,
    /// Indices of open cases that may need another attempt. The others wait for a running one.
    ready: BTreeSet<usize>,
    /// Number of running attempts.
    running_attempts: usize,
    pub(super) summary: RunSummary,
}

/// A case that has started and not finished.
#[derive(Debug)]
struct OpenCase {
    selected: SelectedCase,
    plan: AttemptPlan,
    /// Number of started attempts.
    started: usize,
    finished: Vec<Arc<Attempt>>,
}

/// Attempt policy of an open case, with its progress.
#[derive(Debug)]
enum AttemptPlan {
    /// Attempted once, then retried at most this many times on failure.
    Retried(usize),
    /// Repeated several times.
    Repeated(RepeatSeries),
}

/// The next action of the dispatcher.
#[derive(Debug)]
pub(super) enum DispatchStep {
    /// Start this attempt.
    Attempt(SelectedCase, usize),
    /// Start the next case, if there is one.
    Case,
    /// Wait for an event.
    Wait,
}

impl DispatchState {
    /// Creates the state of a new run.
    pub(super) fn new(options: ExecutionOptions, summary: RunSummary) -> Self {
        DispatchState {
            options,
            control: RunControl::Run,
            first_failure: None,
            exceeded_limit: None,
            open_cases: BTreeMap::new(),
            ready: BTreeSet::new(),
            running_attempts: 0,
            summary,
        }
    }

    /// Returns the next step. A returned attempt counts as running.
    pub(super) fn next_step(&mut self) -> DispatchStep {
        if self.running_attempts >= self.options.parallel || self.control != RunControl::Run {
            return DispatchStep::Wait;
        }
        while let Some(index) = self.ready.first() {
            match self.open_cases.get_mut(index).filter(|open| open.needs_attempt()) {
                Some(open) => {
                    open.started += 1;
                    self.running_attempts += 1;
                    return DispatchStep::Attempt(open.selected.clone(), open.started);
                }
                None => self.ready.pop_first(),
            };
        }
        match self.skip_reason() {
            None => DispatchStep::Case,
            Some(_) => DispatchStep::Wait,
        }
    }

    /// True if the run has been asked to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.control != RunControl::Run
    }

    /// True if attempts are running.
    pub(super) fn is_running(&self) -> bool {
        self.running_attempts > 0
    }

    /// Records that the agents have exceeded a limit of the whole run.
    pub(super) fn exceed_limit(&mut self, key: Option<String>) {
        self.exceeded_limit = key;
    }

    /// Reason why no further cases start, if any. Open cases finish after a failure or an exceeded limit of the run, but not
    /// after a stop request.
    pub(super) fn skip_reason(&self) -> Option<String> {
        match (self.control, &self.first_failure) {
            (RunControl::Finish | RunControl::Cancel, _) => {
                Some("not run: the run was interrupted".to_string())
            }
            (RunControl::Run, Some(case)) if self.options.fail_fast => {
                Some(format!("not run: `{case}` failed (--fail-fast)"))
            }
            (RunControl::Run, _) => {
                self.exceeded_limit.as_ref().map(|key| format!("not run: `{key}` of the project is exceeded"))
            }
        }
    }

    /// Registers a started case.
    pub(super) fn start_case(&mut self, selected: SelectedCase) {
        let course = match self.options.attempt_policy(&selected) {
            AttemptPolicy::Retried { retries } => AttemptPlan::Retried(retries),
            AttemptPolicy::Repeated { until, max_invalid } => AttemptPlan::Repeated(
                RepeatSeries::new(until, max_invalid).with_saved_attempts(selected.saved_attempts),
            ),
        };
        let index = selected.index;
        let open = OpenCase { selected, plan: course, started: 0, finished: Vec::new() };
        self.open_cases.insert(index, Box::new(open));
        self.ready.insert(index);
    }

    /// Records an attempt that had ended before the run was resumed. Returns the outcome if its case needs no other one.
    pub(super) fn keep_attempt(&mut self, attempt: Arc<Attempt>) -> Option<CaseOutcome> {
        self.open_cases.get_mut(&attempt.case_ref.index)?.started += 1;
        self.running_attempts += 1;
        self.finish_attempt(attempt)
    }

    /// Records a finished attempt. Returns the outcome if its case has finished too.
    pub(super) fn finish_attempt(&mut self, attempt: Arc<Attempt>) -> Option<CaseOutcome> {
        self.running_attempts -= 1;
        let index = attempt.case_ref.index;
        let open = self.open_cases.get_mut(&index)?;
        if let AttemptPlan::Repeated(series) = &mut open.plan {
            series.record(attempt.number, attempt.status());
            if series.is_lost() && self.first_failure.is_none() {
                self.first_failure = Some(open.selected.case.name.clone());
            }
        }
        open.finished.push(attempt);
        let wants_more = open.needs_attempt();
        if (wants_more && self.control == RunControl::Run) || open.finished.len() < open.started {
            self.ready.insert(index);
            return None;
        }
        let open = *self.open_cases.remove(&index)?;
        let outcome = open.into_outcome();
        self.record_outcome(&outcome);
        Some(outcome)
    }

    /// Ends the cases that wanted another attempt, or a first one, when the run was asked to stop, and returns their outcomes.
    pub(super) fn end_open_cases(&mut self) -> Vec<CaseOutcome> {
        let Some(reason) = self.skip_reason() else { return Vec::new() };
        let end = |(_, open): (usize, Box<OpenCase>)| match open.finished.is_empty() {
            true => not_started(&open.selected, reason.clone()),
            false => open.into_outcome(),
        };
        let outcomes: Vec<CaseOutcome> = std::mem::take(&mut self.open_cases).into_iter().map(end).collect();
        outcomes.iter().for_each(|outcome| self.record_outcome(outcome));
        outcomes
    }

    /// Records a case that will never start.
    pub(super) fn skip_case(&mut self, selected: &SelectedCase, reason: String) -> CaseOutcome {
        let outcome = not_started(selected, reason);
        self.record_outcome(&outcome);
        outcome
    }

    /// Records a finished case, for instance one from before the run was resumed.
    pub(super) fn record_outcome(&mut self, outcome: &CaseOutcome) {
        self.summary.count_outcome(outcome);
        if outcome.verdict.status == VerdictStatus::Failed && self.first_failure.is_none() {
            self.first_failure = Some(outcome.case_ref.case.name.clone());
        }
    }

    /// Applies a control request and returns true if it changed the state. A weaker request never overrides a
    /// stronger one.
    pub(super) fn update_control(&mut self, control: RunControl) -> bool {
        let new = control > self.control;
        if new {
            self.control = control;
            self.summary.interrupted = true;
        }
        new
    }
}

/// Returns the outcome of a case that will never start.
fn not_started(selected: &SelectedCase, reason: String) -> CaseOutcome {
    // A case that is always skipped has its own reason.
    let verdict = Verdict::skipped(selected.case.skip.clone().unwrap_or(reason));
    CaseOutcome::not_started(selected.case_ref.clone(), verdict)
}

impl OpenCase {
    /// Returns the outcome of the finished attempts, of which there is one at least.
    fn into_outcome(self) -> CaseOutcome {
        let is_untried = self.needs_attempt();
        match self.plan {
            AttemptPlan::Retried(_) => {
                CaseOutcome::from_retries(self.selected.case_ref, self.finished, is_untried)
            }
            AttemptPlan::Repeated(series) => {
                CaseOutcome::from_repeats(self.selected.case_ref, &series, self.finished)
            }
        }
    }

    /// True if the case needs another attempt.
    fn needs_attempt(&self) -> bool {
        match (&self.plan, self.finished.last()) {
            (AttemptPlan::Repeated(series), _) => series.needs_attempt(self.started),
            // Only the result of the running attempt decides on a retry.
            (AttemptPlan::Retried(_), _) if self.started > self.finished.len() => false,
            (AttemptPlan::Retried(_), None) => true,
            (AttemptPlan::Retried(retries), Some(last)) => {
                // Invalid attempts have their own retry budget of the same size.
                let is_valid = |attempt: &Arc<Attempt>| attempt.status().is_valid();
                let same_kind =
                    self.finished.iter().filter(|attempt| is_valid(attempt) == is_valid(last)).count();
                let is_kept = self.selected.saved_attempts.is_none_or(|kept| self.started < kept);
                same_kind <= *retries && is_kept && is_retryable(&last.verdict)
            }
        }
    }
}

impl ExecutionOptions {
    /// Returns the attempt policy of a case. Skipped cases are attempted once. Repeated cases are never
    /// retried, since retries would hide the flakiness that repeats are meant to show.
    pub(super) fn attempt_policy(&self, selected: &SelectedCase) -> AttemptPolicy {
        let case = &selected.case;
        let until = match (self.declared_reliability(selected), self.runs) {
            _ if case.skip.is_some() => return AttemptPolicy::Retried { retries: 0 },
            (Some(reliability), _) => StopRule::Known(reliability),
            (None, runs @ 2..) => StopRule::Made { runs, least: self.min_pass_rate },
            (None, _) => {
                let retries = self.retries.or(case.retries).unwrap_or(self.default_retries);
                // A recheck cannot retry attempts that were not recorded.
                let retries =
                    selected.saved_attempts.map_or(retries, |kept| retries.min(kept.saturating_sub(1)));
                return AttemptPolicy::Retried { retries };
            }
        };
        // Tolerates occasional errors of roles, but not a role that always fails.
        let max_invalid = self.max_invalid.unwrap_or((until.max_attempts() / 10).max(3));
        AttemptPolicy::Repeated { until, max_invalid }
    }

    /// Returns the reliability declared for a case, if it applies. The declaration of the case overrides that
    /// of the project. A recording is one attempt, however often it is replayed.
    fn declared_reliability(&self, selected: &SelectedCase) -> Option<Reliability> {
        let case = &selected.case;
        let is_replayed = selected.agent.as_ref().is_some_and(|agent| agent.is_replayed());
        match (self.as_declared && !is_replayed, case.reliability) {
            (false, _) | (true, ReliabilitySetting::Nothing) => None,
            (true, ReliabilitySetting::Here(reliability)) => Some(reliability),
            (true, ReliabilitySetting::Inherited) => self.reliability.filter(|_| case.retries.is_none()),
        }
    }
}

impl Default for ExecutionOptions {
    fn default() -> Self {
        ExecutionOptions {
            parallel: 1,
            fail_fast: false,
            runs: 1,
            min_pass_rate: PassRate::ALL,
            as_declared: true,
            reliability: None,
            max_invalid: None,
            retries: None,
            default_retries: 0,
            fail_on_skip: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hotseat_targets::recorder::SecretRedactor;
    use hotseat_trace::{AttemptFailure, FailureKind};

    use super::*;
    use crate::cases::{DecodeSettings, InheritedSettings, Suite};
    use crate::run::results::{CaseInfo, CaseRef, JudgingDigests};

    fn dispatch(parallel: usize, fail_fast: bool) -> DispatchState {
        DispatchState::new(
            ExecutionOptions { parallel, fail_fast, ..ExecutionOptions::default() },
            RunSummary::default(),
        )
    }

    /// Returns a case that needs no agent.
    fn selected_case() -> SelectedCase {
        let suite = Suite::from_text(r#"{"id": "a", "input": "hello"}"#.to_string(), "a", ".".into());
        let decoding = DecodeSettings {
            inherited: &InheritedSettings::default(),
            agents: &Arc::default(),
            shared: &Arc::default(),
            root: Path::new("."),
            environment: &BTreeMap::new(),
            redactor: &SecretRedactor::default(),
            default_simulator: false,
        };
        let case = suite.cases_sequential(decoding).next().expect("a case").expect("a valid one");
        let suite = Arc::new(suite);
        let info = CaseInfo::new(&case, JudgingDigests::default());
        let case_ref = Arc::new(CaseRef { index: 0, case: info, suite: suite.clone(), agent: None });
        SelectedCase {
            index: 0,
            case,
            suite,
            suite_name: "a".into(),
            agent: None,
            body: None,
            case_ref,
            saved_attempts: None,
            swept_fault: None,
            cassette: None,
        }
    }

    /// A request to stop may arrive when nothing of a case runs: before its first attempt, or between two.
    #[test]
    fn stopped_run_reports_cases_between_two_attempts() {
        for attempts in [0, 1] {
            let mut dispatch = dispatch(1, false);
            dispatch.options.default_retries = 3;
            let selected = selected_case();
            dispatch.start_case(selected.clone());
            for number in 1..=attempts {
                assert!(
                    matches!(dispatch.next_step(), DispatchStep::Attempt(_, started) if started == number)
                );
                let failure = AttemptFailure::new(FailureKind::Timeout, "late");
                let failed =
                    Attempt::not_started(selected.case_ref.clone(), number, Verdict::failed(failure));
                assert!(dispatch.finish_attempt(Arc::new(failed)).is_none(), "it wants a retry");
            }
            assert!(dispatch.end_open_cases().is_empty(), "the run goes on");
            dispatch.update_control(RunControl::Finish);
            assert!(matches!(dispatch.next_step(), DispatchStep::Wait) && !dispatch.is_running());
            let ended = dispatch.end_open_cases();
            assert_eq!((ended.len(), dispatch.summary.skipped), (1, 1), "{attempts} attempts");
            assert_eq!(ended[0].never_started, attempts == 0);
            assert!(dispatch.end_open_cases().is_empty());
        }
    }

    #[test]
    fn starts_at_most_parallel_attempts() {
        let mut dispatch = dispatch(2, false);
        for (running, begins) in [(0, true), (1, true), (2, false)] {
            dispatch.running_attempts = running;
            assert_eq!(matches!(dispatch.next_step(), DispatchStep::Case), begins, "{running} are running");
        }
    }

    #[test]
    fn failure_stops_new_cases_only_with_fail_fast() {
        for fail_fast in [false, true] {
            let mut dispatch = dispatch(2, fail_fast);
            dispatch.first_failure = Some("a".to_string());
            assert_eq!(matches!(dispatch.next_step(), DispatchStep::Wait), fail_fast);
        }
    }

    #[test]
    fn weaker_request_never_overrides_stronger() {
        let table = [
            (RunControl::Run, RunControl::Finish, true, RunControl::Finish),
            (RunControl::Run, RunControl::Cancel, true, RunControl::Cancel),
            (RunControl::Finish, RunControl::Cancel, true, RunControl::Cancel),
            (RunControl::Cancel, RunControl::Finish, false, RunControl::Cancel),
            (RunControl::Finish, RunControl::Run, false, RunControl::Finish),
        ];
        for (before, wish, new, after) in table {
            let mut dispatch = dispatch(1, false);
            dispatch.control = before;
            assert_eq!(
                (dispatch.update_control(wish), dispatch.control),
                (new, after),
                "{before:?} then {wish:?}"
            );
        }
    }
}
