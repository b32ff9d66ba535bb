//! The dispatcher: starts attempts, takes their results, and hands them on in one stream of events.
//!
//! What to do next is decided by [`Dispatch`], which waits for nothing; [`execute`] does what it says and tells it
//! what has happened.

use std::collections::HashMap;
use std::sync::Arc;

use hotseat_trace::{Failure, FailureKind, Millis, Verdict};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::attempt::{Attempt, attempt};
use super::dispatch::{Dispatch, Step};
use super::outcome::{Outcome, Repetition};
use super::outside::Outside;
use super::plan::{Plan, Selected};
use super::reading::Cases;
use super::stability::PassRate;
use super::summary::Summary;
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
    /// How many times each case is run.
    pub runs: usize,
    /// Where that is several times: how much of it has to pass.
    pub min_pass_rate: PassRate,
    /// Where it is once: how often a case that failed is tried again, whatever it says itself.
    pub retries: Option<usize>,
    /// How often it is tried again where nobody says so.
    pub default_retries: usize,
    /// Whether cases that are skipped although they do not say so make the run fail.
    pub fail_on_skip: bool,
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
    /// A case begins.
    CaseStarted(&'a Selected),
    /// An attempt at a case has ended.
    AttemptEnded {
        /// Which one.
        attempt: &'a Attempt,
        /// How often the case is attempted.
        repetition: Repetition,
    },
    /// A case has ended with the last of its attempts, or will never be begun.
    CaseEnded(&'a Outcome),
    /// The run was asked to end.
    Stopping(Control),
    /// The run has ended.
    Ended(&'a Summary),
}

/// The agents that Hotseat has started for a run.
pub type Started = Vec<(Arc<Agent>, StartedAgent)>;

/// Carries out a plan. `report` is called with everything that happens, in order; while it works, the run waits.
/// Results leave memory with the call that reports their case.
///
/// # Errors
/// When a suite that was fine when the plan was made can no longer be read.
pub async fn execute(
    plan: &Arc<Plan>,
    outside: Arc<Outside>,
    options: Options,
    mut control: watch::Receiver<Control>,
    started_agents: &mut Started,
    report: &mut (dyn FnMut(RunEvent<'_>) + Send),
) -> Result<Summary, Vec<Diagnostic>> {
    let started = Instant::now();
    let started_at = wall_millis();
    let mut dispatch = Dispatch::new(options, Summary { started_at, ..Summary::default() });
    report(RunEvent::Started { plan, parallel: options.parallel, at: started_at });

    let mut cases = Cases::of(plan, &outside.project);
    let mut running: HashMap<Id, (Selected, usize)> = HashMap::new();
    let mut attempts: JoinSet<Attempt> = JoinSet::new();
    let mut all_begun = false;
    let mut unreadable = None;
    loop {
        let may_begin = loop {
            match dispatch.next() {
                Step::Attempt(selected, number) => {
                    let (outside, own) = (outside.clone(), selected.clone());
                    let task = attempts.spawn(async move { attempt(own, number, &outside).await });
                    running.insert(task.id(), (selected, number));
                }
                Step::Case => break !all_begun,
                Step::Wait => break false,
            }
        };
        if !may_begin && !dispatch.is_running() {
            break;
        }
        tokio::select! {
            // What somebody wishes comes first, and cases begin before results are looked at.
            biased;
            Ok(()) = control.changed() => {
                let wish = *control.borrow_and_update();
                if dispatch.control(wish) {
                    report(RunEvent::Stopping(wish));
                }
                if wish == Control::Cancel {
                    attempts.abort_all();
                }
            }
            case = cases.next(), if may_begin => match case {
                Some(Ok(selected)) => {
                    report(RunEvent::CaseStarted(&selected));
                    dispatch.begin(selected);
                }
                Some(Err(mistakes)) => (all_begun, unreadable) = (true, Some(mistakes)),
                None => all_begun = true,
            },
            Some(ended) = attempts.join_next_with_id() => {
                let (id, ended) = match ended {
                    Ok((id, attempt)) => (id, Ok(attempt)),
                    Err(error) => (error.id(), Err(error)),
                };
                let Some((selected, number)) = running.remove(&id) else { continue };
                let lost = |error| Attempt::not_made(selected, number, Verdict::failed(lost(error)));
                let mut attempt = ended.unwrap_or_else(lost);
                add_last_words(&mut attempt, started_agents).await;
                let repetition = options.repetition(&attempt.selected);
                report(RunEvent::AttemptEnded { attempt: &attempt, repetition });
                if let Some(outcome) = dispatch.ended(attempt) {
                    report(RunEvent::CaseEnded(&outcome));
                }
            }
        }
    }
    // What is left is reported too: nobody should have to count what did not run.
    if let Some(reason) = dispatch.reason_not_to_begin() {
        while let Some(case) = cases.next().await {
            match case {
                Ok(selected) => {
                    report(RunEvent::CaseEnded(&dispatch.never_begins(selected, reason.clone())));
                }
                Err(mistakes) => {
                    unreadable = Some(mistakes);
                    break;
                }
            }
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
