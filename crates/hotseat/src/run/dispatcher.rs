//! The dispatcher: starts attempts, takes their results, and hands them on in one stream of events.
//!
//! What to do next is decided by [`Dispatch`], an ordinary struct without any waiting; [`execute`] does what it
//! says and tells it what has happened.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind, Millis, Status, Verdict};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::attempt::{Attempt, Outside, attempt};
use super::plan::{Plan, Selected};
use crate::config::{Agent, StartedAgent};
use crate::session::wall_millis;
use hotseat_document::Diagnostic;

/// How a run is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How many conversations are held at once.
    pub parallel: usize,
    /// Whether no new case starts after one has failed.
    pub fail_fast: bool,
}

/// What the person at the keyboard, or the machine, wants of a run that goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    /// Go on.
    #[default]
    Run,
    /// Start no new cases; those that run go on to their end.
    Finish,
    /// End what runs, now.
    Cancel,
}

/// What happens in a run, in order.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The run begins.
    Started {
        /// What it will do.
        plan: &'a Plan,
        /// How many conversations it holds at once.
        parallel: usize,
        /// When.
        at: Millis,
    },
    /// An attempt begins.
    CaseStarted(&'a Selected),
    /// An attempt has ended, or will never be made.
    CaseEnded(&'a Attempt),
    /// The run was asked to end.
    Stopping(Control),
    /// The run has ended.
    Ended(&'a Summary),
}

/// What a run came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many cases were selected.
    pub total: usize,
    /// How many passed.
    pub passed: usize,
    /// How many failed, for whatever reason.
    pub failed: usize,
    /// How many were not run.
    pub skipped: usize,
    /// How many of those that failed did so for another reason than a check or a time limit.
    pub errors: usize,
    /// How many of those that failed did so at a time limit.
    pub timeouts: usize,
    /// How many of those that failed never reached the agent.
    pub unreachable: usize,
    /// Whether the run was ended from outside.
    pub interrupted: bool,
    /// When it began.
    pub started_at: Millis,
    /// When it ended.
    pub ended_at: Millis,
    /// How long it took.
    pub duration: Duration,
}

impl Summary {
    fn count(&mut self, verdict: &Verdict) {
        self.total += 1;
        match verdict.status {
            Status::Passed => self.passed += 1,
            Status::Skipped => self.skipped += 1,
            Status::Failed => self.failed += 1,
        }
        match verdict.failure.as_ref().map(|failure| failure.kind) {
            None | Some(FailureKind::Assertion) => {}
            Some(FailureKind::Timeout) => self.timeouts += 1,
            Some(kind) => {
                self.errors += 1;
                self.unreachable += usize::from(kind == FailureKind::Unreachable);
            }
        }
    }

    /// How many percent of the cases that ran passed; none where none ran.
    pub fn pass_rate(&self) -> Option<f64> {
        let ran = self.passed + self.failed;
        (ran > 0).then(|| self.passed as f64 * 100.0 / ran as f64)
    }

    /// Whether the agent was never reached although somebody tried: then the run says nothing about it.
    pub fn never_reached(&self) -> bool {
        self.unreachable > 0 && self.unreachable == self.failed && self.passed == 0
    }
}

/// The state of a run, and what follows from it.
#[derive(Debug)]
struct Dispatch {
    options: Options,
    control: Control,
    first_failure: Option<String>,
    summary: Summary,
}

impl Dispatch {
    /// Whether another attempt may begin while `running` are going on.
    fn may_start(&self, running: usize) -> bool {
        running < self.options.parallel && self.reason_not_to_start().is_none()
    }

    /// Why no new case begins any more, if that is so.
    fn reason_not_to_start(&self) -> Option<String> {
        match (self.control, &self.first_failure) {
            (Control::Finish | Control::Cancel, _) => Some("not run: the run was interrupted".to_string()),
            (Control::Run, Some(case)) if self.options.fail_fast => {
                Some(format!("not run: `{case}` failed (--fail-fast)"))
            }
            (Control::Run, _) => None,
        }
    }

    /// Takes note of an attempt that has ended.
    fn ended(&mut self, attempt: &Attempt) {
        self.summary.count(&attempt.verdict);
        if attempt.verdict.status == Status::Failed && self.first_failure.is_none() {
            self.first_failure = Some(attempt.selected.case.name.clone());
        }
    }

    /// Takes note of a wish from outside; says whether it is a new one. A lesser one never takes back a greater.
    fn control(&mut self, control: Control) -> bool {
        let new = control > self.control;
        if new {
            self.control = control;
            self.summary.interrupted = true;
        }
        new
    }
}

/// The agents that Hotseat has started for a run.
pub type Started = Vec<(Arc<Agent>, StartedAgent)>;

/// Carries out a plan. `report` is called with everything that happens, in order; while it works, the run waits.
/// Results leave memory with the call that reports them.
///
/// # Errors
/// When a suite that was fine when the plan was made can no longer be read.
pub async fn execute(
    plan: &Plan,
    outside: Arc<Outside>,
    options: Options,
    mut control: watch::Receiver<Control>,
    started_agents: &mut Started,
    report: &mut (dyn FnMut(RunEvent<'_>) + Send),
) -> Result<Summary, Vec<Diagnostic>> {
    let started = Instant::now();
    let started_at = wall_millis();
    let summary = Summary { started_at, ..Summary::default() };
    let mut dispatch = Dispatch { options, control: Control::Run, first_failure: None, summary };
    report(RunEvent::Started { plan, parallel: options.parallel, at: started_at });

    let project = outside.project.clone();
    let mut cases = plan.cases(&project);
    let mut running: HashMap<Id, Selected> = HashMap::new();
    let mut attempts: JoinSet<Attempt> = JoinSet::new();
    let mut all_started = false;
    let mut unreadable = None;
    loop {
        while !all_started && dispatch.may_start(running.len()) {
            let selected = match cases.next() {
                Some(Ok(selected)) => selected,
                Some(Err(mistakes)) => {
                    unreadable = Some(mistakes);
                    all_started = true;
                    break;
                }
                None => {
                    all_started = true;
                    break;
                }
            };
            report(RunEvent::CaseStarted(&selected));
            let (outside, own) = (outside.clone(), selected.clone());
            let task = attempts.spawn(async move { attempt(own, &outside).await });
            running.insert(task.id(), selected);
        }
        if running.is_empty() {
            break;
        }
        tokio::select! {
            Some(ended) = attempts.join_next_with_id() => {
                let (id, ended) = match ended {
                    Ok((id, attempt)) => (id, Ok(attempt)),
                    Err(error) => (error.id(), Err(error)),
                };
                let Some(selected) = running.remove(&id) else { continue };
                let mut attempt = ended.unwrap_or_else(|error| Attempt::not_made(selected, Verdict::failed(lost(error))));
                add_last_words(&mut attempt, started_agents).await;
                dispatch.ended(&attempt);
                report(RunEvent::CaseEnded(&attempt));
            }
            Ok(()) = control.changed() => {
                let wish = *control.borrow_and_update();
                if dispatch.control(wish) {
                    report(RunEvent::Stopping(wish));
                }
                if wish == Control::Cancel {
                    attempts.abort_all();
                }
            }
        }
    }
    // What is left is reported too: nobody should have to count what did not run.
    if let Some(reason) = dispatch.reason_not_to_start() {
        for selected in cases.map_while(|case| case.map_err(|mistakes| unreadable = Some(mistakes)).ok()) {
            let attempt = Attempt::not_made(selected, Verdict::skipped(reason.clone()));
            dispatch.ended(&attempt);
            report(RunEvent::CaseEnded(&attempt));
        }
    }
    let mut summary = dispatch.summary;
    summary.ended_at = wall_millis();
    summary.duration = started.elapsed();
    report(RunEvent::Ended(&summary));
    unreadable.map_or(Ok(summary), Err)
}

/// The failure of an attempt whose task did not come to its end.
fn lost(error: tokio::task::JoinError) -> Failure {
    if error.is_cancelled() {
        return Failure::new(FailureKind::Cancelled, "cancelled before it ended");
    }
    let panic = error.into_panic();
    let words =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    Failure::new(
        FailureKind::TestError,
        format!("this is a fault of Hotseat: {}", words.unwrap_or("it panicked")),
    )
}

/// An agent that was started here and has ended explains why it cannot be reached.
async fn add_last_words(attempt: &mut Attempt, started: &mut Started) {
    let Some(failure) = &mut attempt.verdict.failure else { return };
    if !matches!(failure.kind, FailureKind::Unreachable | FailureKind::ProtocolError) {
        return;
    }
    let Some(tested) = &attempt.selected.agent else { return };
    let Some((_, agent)) = started.iter_mut().find(|(known, _)| Arc::ptr_eq(known, tested)) else { return };
    if let Some(words) = agent.ended().await {
        let detail = failure.detail.take().map_or_else(String::new, |detail| detail + "\n");
        failure.detail = Some(detail + &words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch(parallel: usize, fail_fast: bool) -> Dispatch {
        let options = Options { parallel, fail_fast };
        Dispatch { options, control: Control::Run, first_failure: None, summary: Summary::default() }
    }

    #[test]
    fn no_more_start_than_may_run_at_once() {
        let dispatch = dispatch(2, false);
        assert!(dispatch.may_start(0) && dispatch.may_start(1) && !dispatch.may_start(2));
    }

    #[test]
    fn a_failure_stops_new_cases_only_with_fail_fast() {
        for fail_fast in [false, true] {
            let mut dispatch = dispatch(2, fail_fast);
            dispatch.first_failure = Some("a".to_string());
            assert_eq!(dispatch.may_start(0), !fail_fast);
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
