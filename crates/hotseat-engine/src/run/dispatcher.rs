//! The dispatcher: starts attempts, collects their results, and reports them as one stream of events.
//!
//! [`DispatchState`] makes the scheduling decisions without waiting; [`execute`] carries them out and feeds back
//! the results.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{AttemptFailure, FailureKind, Millis, Verdict};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::attempt::run_attempt;
use super::attempt_result::Attempt;
use super::cancellation::{CancellationSignal, RunControl};
use super::case_queue::CaseQueue;
use super::context::RunContext;
use super::dispatch::{DispatchState, DispatchStep};
use super::execution_options::ExecutionOptions;
use super::outcome::{AttemptPolicy, CaseOutcome};
use super::plan::{RunPlan, SelectedCase};
use super::results::CaseRef;
use super::summary::RunSummary;
use super::sweep_result::SweepReport;
use super::workers::spawn_conversation;
use crate::config::{ProjectAgent, StartedAgent};
use hotseat_document::Diagnostic;
use hotseat_targets::recorder::wall_millis;

/// An event of a run, in order of occurrence.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum RunEvent {
    /// The run has started, with so many cases, and at most so many conversations at once.
    Started { total: usize, parallel: usize, at: Millis },
    /// A case has started.
    CaseStarted { case: Arc<CaseRef>, repetition: AttemptPolicy },
    /// An attempt has finished.
    AttemptEnded { attempt: Arc<Attempt>, repetition: AttemptPolicy },
    /// A case has finished, or will never start.
    CaseEnded(Arc<CaseOutcome>),
    /// The run was asked to stop.
    Stopping(RunControl),
    /// All cases have finished, and a sweep of faults has started: so many conversations with a fault, of all combinations of calls
    /// and faults.
    SweepStarted { runs: usize, combinations: usize },
    /// A sweep of faults has finished.
    SweepEnded(Arc<SweepReport>),
    /// The run has finished.
    Ended(Box<RunSummary>),
}

/// Agents started by Hotseat for a run.
pub type StartedAgents = Vec<(Arc<ProjectAgent>, StartedAgent)>;

/// Results of an interrupted run that is being resumed.
pub struct ResumeState {
    /// Indices of the finished cases.
    pub finished: BTreeSet<usize>,
    /// Attempts of the other cases that had ended, in the order of their numbers, by index.
    pub attempts: BTreeMap<usize, Vec<Attempt>>,
    /// Outcomes of the finished cases, in any order.
    pub outcomes: Box<dyn Iterator<Item = Result<CaseOutcome, Diagnostic>> + Send>,
    /// Original start time.
    pub started_at: Millis,
    /// Duration before the interruption, if known; otherwise derived from the cases.
    pub duration: Option<Duration>,
}

/// Executes a plan, or the rest of it after an interruption: outcomes in `earlier` are reported unchanged.
/// `report` is called with every event in order and blocks the run while it works. Results are dropped after
/// the call that reports their case. Must run on worker threads ([`start_workers`](super::start_workers)). Fails if a
/// suite can no longer be read.
pub async fn execute(
    plan: &Arc<RunPlan>,
    outside: Arc<RunContext>,
    options: ExecutionOptions,
    mut control: watch::Receiver<RunControl>,
    started_agents: &mut StartedAgents,
    earlier: Option<ResumeState>,
    report: &mut (dyn FnMut(RunEvent) + Send),
) -> Result<RunSummary, Vec<Diagnostic>> {
    let started = Instant::now();
    let cancellation = CancellationSignal::new(control.clone());
    let started_at = earlier.as_ref().map_or_else(wall_millis, |earlier| earlier.started_at);
    let mut dispatch = DispatchState::new(options, RunSummary { started_at, ..RunSummary::new(options) });
    report(RunEvent::Started { total: plan.selected, parallel: options.parallel, at: started_at });

    let mut kept_attempts = BTreeMap::new();
    let (earlier_duration, ended) = match earlier {
        Some(mut earlier) => {
            kept_attempts = std::mem::take(&mut earlier.attempts);
            report_earlier(earlier, &mut dispatch, report)?
        }
        None => (Duration::ZERO, BTreeSet::new()),
    };
    let mut cases = CaseQueue::new(plan, &outside.project, ended);
    let mut running: HashMap<Id, (SelectedCase, usize)> = HashMap::new();
    let mut attempts: JoinSet<Attempt> = JoinSet::new();
    let mut all_begun = false;
    let mut unreadable = None;
    loop {
        // Read here, not where it wakes the loop: a request may also end an attempt before it is noticed.
        let wish = *control.borrow_and_update();
        if dispatch.update_control(wish) {
            report(RunEvent::Stopping(wish));
        }
        let is_ahead = !outside.backlog.has_room() && !dispatch.is_stopping();
        let may_begin = !is_ahead
            && loop {
                match dispatch.next_step() {
                    DispatchStep::Attempt(selected, number) => {
                        let (outside, own, cancellation) =
                            (outside.clone(), selected.clone(), cancellation.clone());
                        let made = async move { run_attempt(own, number, &outside, &cancellation).await };
                        let task = spawn_conversation(&mut attempts, made);
                        running.insert(task.id(), (selected, number));
                    }
                    DispatchStep::Case => break !all_begun,
                    DispatchStep::Wait => break false,
                }
            };
        if !may_begin && !is_ahead && !dispatch.is_running() {
            break;
        }
        tokio::select! {
            // Stop requests have priority; new cases start before results are processed.
            biased;
            Ok(()) = control.changed() => {}
            () = outside.backlog.wait_for_room(), if is_ahead => {}
            case = cases.next(), if may_begin => match case {
                Some(Ok(selected)) => {
                    let selected = match &outside.recheck {
                        Some(recheck) => recheck.attach_saved(selected),
                        None => selected,
                    };
                    let kept = kept_attempts.remove(&selected.case_ref.index).unwrap_or_default();
                    start_case(selected, kept, options, &mut dispatch, report);
                }
                Some(Err(diagnostics)) => (all_begun, unreadable) = (true, Some(diagnostics)),
                None => all_begun = true,
            },
            Some(ended) = attempts.join_next_with_id() => {
                let (id, ended) = match ended {
                    Ok((id, attempt)) => (id, Ok(attempt)),
                    Err(error) => (error.id(), Err(error)),
                };
                let Some((selected, number)) = running.remove(&id) else { continue };
                let case_ref = &selected.case_ref;
                let lost = |error| Attempt::not_started(case_ref.clone(), number, Verdict::failed(task_failure(error)));
                let mut attempt = ended.unwrap_or_else(lost);
                append_start_diagnostics(&mut attempt, selected.agent.as_ref(), started_agents).await;
                let repetition = options.attempt_policy(&selected);
                let attempt = Arc::new(attempt);
                report(RunEvent::AttemptEnded { attempt: attempt.clone(), repetition });
                dispatch.exceed_limit(outside.traffic.exceeded_limit());
                if let Some(outcome) = dispatch.finish_attempt(attempt) {
                    report(RunEvent::CaseEnded(Arc::new(outcome)));
                }
            }
        }
    }
    for outcome in dispatch.end_open_cases() {
        report(RunEvent::CaseEnded(Arc::new(outcome)));
    }
    if let Some(reason) = dispatch.skip_reason() {
        let skipped = skip_remaining(&mut cases, &mut dispatch, &reason, report).await;
        unreadable = skipped.err().or(unreadable);
    }
    let mut summary = dispatch.summary;
    let first = unreadable.as_ref().and_then(|diagnostics: &Vec<Diagnostic>| diagnostics.first());
    summary.broken = first.map(|mistake| mistake.message.as_str().into());
    summary.ended_at = wall_millis();
    summary.duration = earlier_duration + started.elapsed();
    report(RunEvent::Ended(Box::new(summary.clone())));
    unreadable.map_or(Ok(summary), Err)
}

/// Starts a case with the results of its attempts before an interruption.
fn start_case(
    selected: SelectedCase,
    kept: Vec<Attempt>,
    options: ExecutionOptions,
    dispatch: &mut DispatchState,
    report: &mut (dyn FnMut(RunEvent) + Send),
) {
    let repetition = options.attempt_policy(&selected);
    let case = selected.case_ref.clone();
    report(RunEvent::CaseStarted { case: case.clone(), repetition });
    dispatch.start_case(selected);
    for (number, attempt) in (1..).zip(kept) {
        // Attempts that were running have no result, so the others get new numbers.
        let attempt = Arc::new(Attempt { case_ref: case.clone(), number, ..attempt });
        report(RunEvent::AttemptEnded { attempt: attempt.clone(), repetition });
        if let Some(outcome) = dispatch.keep_attempt(attempt) {
            report(RunEvent::CaseEnded(Arc::new(outcome)));
            break;
        }
    }
}

/// Reports the outcomes of a run before its interruption. Returns its duration and the indices of the finished cases.
fn report_earlier(
    earlier: ResumeState,
    dispatch: &mut DispatchState,
    report: &mut (dyn FnMut(RunEvent) + Send),
) -> Result<(Duration, BTreeSet<usize>), Vec<Diagnostic>> {
    let mut duration = Duration::ZERO;
    for outcome in earlier.outcomes {
        let outcome = Arc::new(outcome.map_err(|mistake| vec![mistake])?);
        duration = duration.max(outcome.elapsed_since(earlier.started_at));
        dispatch.record_outcome(&outcome);
        report(RunEvent::CaseEnded(outcome));
    }
    Ok((earlier.duration.unwrap_or(duration), earlier.finished))
}

/// Reports the cases that never started.
async fn skip_remaining(
    cases: &mut CaseQueue,
    dispatch: &mut DispatchState,
    reason: &str,
    report: &mut (dyn FnMut(RunEvent) + Send),
) -> Result<(), Vec<Diagnostic>> {
    while let Some(case) = cases.next().await {
        let outcome = dispatch.skip_case(&case?, reason.to_string());
        report(RunEvent::CaseEnded(Arc::new(outcome)));
    }
    Ok(())
}

/// Failure of an attempt whose task was cancelled or panicked.
fn task_failure(error: tokio::task::JoinError) -> AttemptFailure {
    if error.is_cancelled() {
        return AttemptFailure::new(FailureKind::Cancelled, "the task of the attempt was cancelled");
    }
    let panic = error.into_panic();
    let words =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    AttemptFailure::new(
        FailureKind::TestError,
        format!("internal error in Hotseat: {}", words.unwrap_or("it panicked")),
    )
}

/// Appends the output of an agent process that has exited to a connection failure.
async fn append_start_diagnostics(
    attempt: &mut Attempt,
    tested: Option<&Arc<ProjectAgent>>,
    started: &mut StartedAgents,
) {
    let Some(failure) = &mut attempt.result.verdict.failure else { return };
    if !matches!(failure.kind, FailureKind::Unreachable | FailureKind::ProtocolError) {
        return;
    }
    let Some(tested) = tested else { return };
    let Some((_, agent)) = started.iter_mut().find(|(known, _)| Arc::ptr_eq(known, tested)) else { return };
    if let Some(words) = agent.describe_exit().await {
        let detail = failure.detail.take().map_or_else(String::new, |detail| detail + "\n");
        failure.detail = Some(detail + &words);
    }
}
