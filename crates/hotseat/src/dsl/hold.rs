//! An example holds its conversation: it runs on a thread of its own, and what it asks for is done here.
//!
//! Futures of tests need not be `Send`, tests may block, and an agent in the program lives beside its test: all of that
//! fits onto a thread with a small runtime. The session stays with the run.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotseat_trace::{Failure, FailureKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};

use super::agents::AgentChoice;
use super::body::Run;
use super::line::{Line, Order, Seen};
use super::orders::{Doing, test_error};
use super::panics::{self, CaseEnded};
use super::place::At;
use super::test::Test;
use super::tree::Example;
use crate::adapters::Pending;
use crate::session::{Body, Session};

/// How long an example that is given up may take for what runs after it.
const GRACE: Duration = Duration::from_secs(5);

/// An example as the body of its case.
pub(super) struct Held(pub Arc<Example>);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "example {} ({})", self.0.name, self.0.at)
    }
}

impl Body for Held {
    fn hold<'a>(&'a self, session: &'a mut Session<'_>) -> Pending<'a, Result<(), Failure>> {
        Box::pin(hold(self.0.clone(), session))
    }
}

/// Whether an example still has time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    Left,
    Over,
}

async fn hold(example: Arc<Example>, session: &mut Session<'_>) -> Result<(), Failure> {
    let (orders, mut received) = mpsc::unbounded_channel();
    let (ended, mut end) = oneshot::channel();
    let (time, of_time) = watch::channel(Time::Left);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let questions = match &example.settings.agent {
        Some(AgentChoice::InProgram(program)) => program.take(&session.id()),
        Some(AgentChoice::Named(_)) | None => None,
    };
    let line = Line::new(orders, seen.clone(), example.clone());
    let thread = std::thread::Builder::new().name(example.name.clone());
    let started = thread.spawn(move || {
        let answering = questions.zip(match &line.example.settings.agent {
            Some(AgentChoice::InProgram(program)) => Some(program.clone()),
            Some(AgentChoice::Named(_)) | None => None,
        });
        let test = Test::new(line);
        // Who has gone away does not want to know.
        let _ = ended.send(run(&test, answering, of_time));
    });
    started.map_err(|error| test_error(format!("no thread for the example can be had: {error}")))?;

    let mut doing = Doing { session, example, seen: seen.clone() };
    let mut given_up = None;
    loop {
        let limit = doing.session.limit();
        let deadline = match (given_up, limit) {
            (Some(at), _) => Some(at + GRACE),
            (None, limit) => limit.map(|(at, _)| at),
        };
        let out_of_time = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(order) = received.recv() => carry_out(order, &mut doing, &mut received).await,
            result = &mut end => {
                // What was asked for before the end is done, though nobody waits for it.
                while let Ok(order) = received.try_recv() {
                    doing.carry_out(order).await;
                }
                return match result {
                    Ok(None) => {
                        doing.end().await;
                        Ok(())
                    }
                    Ok(Some(failure)) => Err(failure),
                    Err(_) => Err(test_error("the thread of the example has ended".to_string())),
                };
            }
            () = out_of_time => match (given_up, limit) {
                (None, Some((_, limit))) => {
                    let message = format!("the case timed out after {} ms", limit.as_millis());
                    let running = format!("{}: this example was still running", doing.example.at);
                    doing.session.fail(Failure::new(FailureKind::Timeout, message).with_detail(running));
                    seen.lock().unwrap_or_else(PoisonError::into_inner).over = true;
                    let _ = time.send(Time::Over);
                    given_up = Some(Instant::now());
                }
                // It does not come back; its thread is left to itself.
                (Some(_), _) | (None, None) => return Ok(()),
            },
        }
    }
}

/// Carries out an order. While somebody speaks nothing else can be asked for: it would wait for the end of the turn, and the
/// agent, if that is who asks, with it.
async fn carry_out(order: Order, doing: &mut Doing<'_, '_>, received: &mut mpsc::UnboundedReceiver<Order>) {
    if !matches!(order, Order::Say { .. } | Order::Simulate { .. }) {
        return doing.carry_out(order).await;
    }
    let mut told = Vec::new();
    let asked_meanwhile = {
        let mut carried_out = pin!(doing.carry_out(order));
        loop {
            tokio::select! {
                biased;
                () = &mut carried_out => break None,
                Some(other) = received.recv() => match other.is_waited_for() {
                    Some(at) => break Some(at),
                    None => told.push(other),
                },
            }
        }
    };
    if let Some(at) = asked_meanwhile {
        doing.wrong(
            "while the user speaks and the agent answers, nothing else can be asked for or asserted",
            at,
        );
    }
    for order in told {
        doing.carry_out(order).await;
    }
}

type Answering = (mpsc::UnboundedReceiver<super::agents::Asked>, Arc<super::agents::Program>);

/// Runs an example with everything around it, on this thread. What went wrong in the example itself comes back; what its
/// checks came to is with the session.
fn run(test: &Test, answering: Option<Answering>, time: watch::Receiver<Time>) -> Option<Failure> {
    panics::watch();
    let _entered = test.line.enter();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Some(test_error(format!("no runtime for the example can be had: {error}"))),
    };
    let local = LocalSet::new();
    if let Some((questions, program)) = answering {
        let test = test.clone();
        local.spawn_local(async move { program.answer(questions, test).await });
    }
    let example = &test.line.example;
    let part = |run: &Arc<dyn Run>, stage: Stage, time: Option<watch::Receiver<Time>>| {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(local.run_until(async {
                tokio::select! {
                    error = run.run(test.clone()) => error,
                    () = out_of_time(time) => None,
                }
            }))
        }));
        stage.came_to(caught, run.at())
    };
    let mut failure = None;
    for hook in &example.before {
        failure = part(hook, Stage::Before, Some(time.clone()));
        if failure.is_some() || test.line.seen().over {
            break;
        }
    }
    if failure.is_none() && !test.line.seen().over {
        failure = part(&example.body, Stage::Body, Some(time.clone()));
    }
    for hook in &example.after {
        let of_hook = part(hook, Stage::After, None);
        failure = failure.or(of_hook);
    }
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        let _runtime = runtime.enter();
        test.values.take();
        None
    }));
    failure = failure.or(Stage::Dropped.came_to(dropped, example.body.at()));
    // What the example has begun and not waited for ends with it.
    drop(local);
    if let Some(seen) = panics::untold() {
        test.log(format!("nobody heard that something the test had begun {}", seen.words()));
    }
    runtime.shutdown_background();
    failure
}

async fn out_of_time(time: Option<watch::Receiver<Time>>) {
    let Some(mut time) = time else { return std::future::pending().await };
    // Where nobody can say so any more, the run has given up the case altogether.
    let _ = time.wait_for(|time| *time == Time::Over).await;
}

/// What of an example runs.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Before,
    Body,
    After,
    /// The values that it has made go.
    Dropped,
}

impl Stage {
    fn came_to(self, ran: std::thread::Result<Option<String>>, at: At) -> Option<Failure> {
        let kind = match self {
            Stage::Body => FailureKind::TestError,
            Stage::Before | Stage::After | Stage::Dropped => FailureKind::HookError,
        };
        let what = match self {
            Stage::Body => "the test",
            Stage::Before => "`before`",
            Stage::After => "`after`",
            Stage::Dropped => "a fixture that was dropped",
        };
        match ran {
            Ok(None) => None,
            Ok(Some(error)) => Some(Failure::new(kind, format!("{what} returned an error: {error} ({at})"))),
            Err(panic) if panic.is::<CaseEnded>() => None,
            Err(panic) => {
                let seen = panics::seen(&*panic);
                let failure = Failure::new(kind, format!("{what} {}", seen.words()));
                Some(failure.with_detail(seen.backtrace.unwrap_or_default()))
            }
        }
    }
}
