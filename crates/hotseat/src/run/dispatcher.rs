//! The dispatcher: starts attempts, takes their results, and hands them on in one stream of events.
//!
//! What to do next is decided by [`Dispatch`], which waits for nothing; [`execute`] does what it says and tells it
//! what has happened.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind, Millis, Verdict};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::attempt::{Attempt, attempt};
use super::cancellation::Cancellation;
use super::dispatch::{Dispatch, Step};
use super::outcome::{Outcome, Repetition};
use super::outside::Outside;
use super::plan::{Plan, Selected};
use super::reading::Cases;
use super::stability::PassRate;
use super::summary::Summary;
use super::told::Told;
use super::workers::Workers;
use crate::cases::Reliability;
use crate::config::{Agent, StartedAgent};
use crate::session::wall_millis;
use hotseat_document::Diagnostic;

/// How a run is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// How many conversations are held at once.
    pub parallel: usize,
    /// Whether no new case starts after one has failed.
    pub fail_fast: bool,
    /// How many times each case is run.
    pub runs: usize,
    /// Where that is several times: how much of it has to pass.
    pub min_pass_rate: PassRate,
    /// Whether cases for which a reliability is declared are run until it is known whether that is kept.
    #[serde(default)]
    pub as_declared: bool,
    /// The reliability that is declared for cases that do not say it.
    #[serde(default)]
    pub reliability: Option<Reliability>,
    /// Where a case is run several times: how many runs are made again because they say nothing about the agent; none for
    /// as many as are fit.
    #[serde(default)]
    pub redraws: Option<usize>,
    /// Where it is once: how often a case that failed is tried again, whatever it says itself.
    pub retries: Option<usize>,
    /// How often it is tried again where nobody says so.
    pub default_retries: usize,
    /// Whether cases that are skipped although they do not say so make the run fail.
    pub fail_on_skip: bool,
}

/// What the person at the keyboard, or the machine, wants of a run that goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// The run begins.
    Started {
        /// How many cases it has.
        total: usize,
        /// How many conversations it holds at once.
        parallel: usize,
        /// When.
        at: Millis,
    },
    /// A case begins.
    CaseStarted {
        /// Which one.
        case: Arc<Told>,
        /// How often it is attempted.
        repetition: Repetition,
    },
    /// An attempt at a case has ended.
    AttemptEnded {
        /// Which one.
        attempt: Arc<Attempt>,
        /// How often the case is attempted.
        repetition: Repetition,
    },
    /// A case has ended with the last of its attempts, or will never be begun.
    CaseEnded(Arc<Outcome>),
    /// The run was asked to end.
    Stopping(Control),
    /// The run has ended.
    Ended(Summary),
}

/// The agents that Hotseat has started for a run.
pub type Started = Vec<(Arc<Agent>, StartedAgent)>;

/// What of a run had ended before it was broken off.
pub struct Earlier<'a> {
    /// The places of its cases.
    pub ended: BTreeSet<usize>,
    /// What they came to, in any order.
    pub outcomes: Box<dyn Iterator<Item = Result<Outcome, Diagnostic>> + 'a>,
    /// When the run began.
    pub began: Millis,
    /// How long it took, where that is known; else as long as its cases show.
    pub took: Option<Duration>,
}

/// Carries out a plan, or what is left of it: what ended `earlier` is reported as it was. `report` is called with everything that happens, in order; while it works, the run waits.
/// Results leave memory with the call that reports their case.
///
/// # Errors
/// When a suite that was fine when the plan was made can no longer be read, or no threads can be started.
pub async fn execute(
    plan: &Arc<Plan>,
    outside: Arc<Outside>,
    options: Options,
    mut control: watch::Receiver<Control>,
    started_agents: &mut Started,
    earlier: Option<Earlier<'_>>,
    report: &mut (dyn FnMut(RunEvent) + Send),
) -> Result<Summary, Vec<Diagnostic>> {
    let started = Instant::now();
    let cancellation = Cancellation::new(control.clone());
    let started_at = earlier.as_ref().map_or_else(wall_millis, |earlier| earlier.began);
    let mut dispatch = Dispatch::new(options, Summary { started_at, ..Summary::begin(options) });
    report(RunEvent::Started { total: plan.selected, parallel: options.parallel, at: started_at });

    let mut took = Duration::ZERO;
    let mut ended = BTreeSet::new();
    if let Some(earlier) = earlier {
        for outcome in earlier.outcomes {
            let outcome = Arc::new(outcome.map_err(|mistake| vec![mistake])?);
            took = took.max(outcome.ended_at(started_at));
            dispatch.has_ended(&outcome);
            report(RunEvent::CaseEnded(outcome));
        }
        took = earlier.took.unwrap_or(took);
        ended = earlier.ended;
    }
    let mut cases = Cases::of(plan, &outside.project, ended);
    let mut running: HashMap<Id, (Selected, usize)> = HashMap::new();
    let workers = Workers::start(options.parallel.min(plan.selected))
        .map_err(|error| vec![Diagnostic::new(format!("cannot start: {error}"))])?;
    // Dropped before the threads: nothing new is begun on them then.
    let mut attempts: JoinSet<Attempt> = JoinSet::new();
    let mut all_begun = false;
    let mut unreadable = None;
    loop {
        let is_ahead = !outside.pace.has_room() && !dispatch.is_stopping();
        let may_begin = !is_ahead
            && loop {
                match dispatch.next() {
                    Step::Attempt(selected, number) => {
                        let (outside, own, cancellation) =
                            (outside.clone(), selected.clone(), cancellation.clone());
                        let made = async move { attempt(own, number, &outside, &cancellation).await };
                        let task = workers.spawn(&mut attempts, made);
                        running.insert(task.id(), (selected, number));
                    }
                    Step::Case => break !all_begun,
                    Step::Wait => break false,
                }
            };
        if !may_begin && !is_ahead && !dispatch.is_running() {
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
            }
            () = outside.pace.room(), if is_ahead => {}
            case = cases.next(), if may_begin => match case {
                Some(Ok(selected)) => {
                    let selected = match &outside.recheck {
                        Some(recheck) => recheck.select(selected, &outside.project),
                        None => selected,
                    };
                    let repetition = options.repetition(&selected);
                    report(RunEvent::CaseStarted { case: selected.told.clone(), repetition });
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
                let told = &selected.told;
                let lost = |error| Attempt::not_made(told.clone(), number, Verdict::failed(lost(error)));
                let mut attempt = ended.unwrap_or_else(lost);
                add_last_words(&mut attempt, selected.agent.as_ref(), started_agents).await;
                let repetition = options.repetition(&selected);
                let attempt = Arc::new(attempt);
                report(RunEvent::AttemptEnded { attempt: attempt.clone(), repetition });
                if let Some(outcome) = dispatch.ended(attempt) {
                    report(RunEvent::CaseEnded(Arc::new(outcome)));
                }
            }
        }
    }
    // What is left is reported too: nobody should have to count what did not run.
    if let Some(reason) = dispatch.reason_not_to_begin() {
        while let Some(case) = cases.next().await {
            match case {
                Ok(selected) => {
                    let outcome = dispatch.never_begins(&selected, reason.clone());
                    report(RunEvent::CaseEnded(Arc::new(outcome)));
                }
                Err(mistakes) => {
                    unreadable = Some(mistakes);
                    break;
                }
            }
        }
    }
    let mut summary = dispatch.summary;
    let first = unreadable.as_ref().and_then(|mistakes: &Vec<Diagnostic>| mistakes.first());
    summary.broken = first.map(|mistake| mistake.message.as_str().into());
    summary.ended_at = wall_millis();
    summary.duration = took + started.elapsed();
    report(RunEvent::Ended(summary.clone()));
    unreadable.map_or(Ok(summary), Err)
}

/// The failure of an attempt whose task did not come to its end.
fn lost(error: tokio::task::JoinError) -> Failure {
    if error.is_cancelled() {
        return Failure::new(FailureKind::Cancelled, "its task was cancelled");
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
async fn add_last_words(attempt: &mut Attempt, tested: Option<&Arc<Agent>>, started: &mut Started) {
    let Some(failure) = &mut attempt.verdict.failure else { return };
    if !matches!(failure.kind, FailureKind::Unreachable | FailureKind::ProtocolError) {
        return;
    }
    let Some(tested) = tested else { return };
    let Some((_, agent)) = started.iter_mut().find(|(known, _)| Arc::ptr_eq(known, tested)) else { return };
    if let Some(words) = agent.ended().await {
        let detail = failure.detail.take().map_or_else(String::new, |detail| detail + "\n");
        failure.detail = Some(detail + &words);
    }
}
