//! Runs an example as the body of its case, on a thread of its own. Commands that the example sends are
//! executed here, on its session.
//!
//! A thread with a single-threaded runtime lets futures of tests be `!Send`, lets tests block, and keeps an
//! agent in the program next to its test. The session stays with the run.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hotseat_trace::{AttemptFailure, FailureKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};

use super::agents::AgentChoice;
use super::caller_location::CallerLocation;
use super::commands::{CommandHandler, test_error};
use super::conversation::{SessionView, lock};
use super::harness::HarnessContext;
use super::panics::{self, CaseEndedPanic, PanicLog};
use super::session_channel::{SessionChannel, SessionCommand};
use super::test::Test;
use super::test_function::TestFunction;
use super::tree::ExampleSpec;
use hotseat_engine::session::{CaseBody, Session};
use hotseat_targets::BoxFuture;

/// Time that `after` hooks may take once an example has timed out.
const TIMEOUT_GRACE: Duration = Duration::from_secs(5);

/// An example as the body of its case.
pub(super) struct ExampleBody(pub Arc<ExampleSpec>);

impl fmt::Debug for ExampleBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "example {} ({})", self.0.facts.name, self.0.facts.at)
    }
}

impl CaseBody for ExampleBody {
    fn drive<'a>(&'a self, session: &'a mut Session<'_>) -> BoxFuture<'a, Result<(), AttemptFailure>> {
        Box::pin(run_on_thread(self.0.clone(), session))
    }
}

/// An example that runs on this thread. A function that ends the program drops it; the exit code of that function would be the
/// result of all examples.
struct RunningExample(Cell<Option<String>>);

impl Drop for RunningExample {
    fn drop(&mut self) {
        if let Some(name) = self.0.take() {
            HarnessContext::abort(&name);
        }
    }
}

thread_local! {
    static RUNNING: RunningExample = const { RunningExample(Cell::new(None)) };
}

/// Ends the example of this thread, also if it panics.
struct ExampleEnd;

impl Drop for ExampleEnd {
    fn drop(&mut self) {
        RUNNING.with(|running| running.0.take());
    }
}

/// Whether the time limit of an example has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeBudget {
    Remaining,
    Exhausted,
}

async fn run_on_thread(example: Arc<ExampleSpec>, session: &mut Session<'_>) -> Result<(), AttemptFailure> {
    let (orders, mut received) = mpsc::unbounded_channel();
    let (ended, mut end) = oneshot::channel();
    let (time, time_receiver) = watch::channel(TimeBudget::Remaining);
    let services = Arc::new(session.service_addresses());
    let facts = example.facts.clone();
    let conversation = Arc::new(session.conversation().clone());
    let (example_name, lost) = (facts.name.clone(), facts.lost.clone());
    let view = SessionView { example: example_name, lost, services, conversation, ..SessionView::default() };
    let view = Arc::new(Mutex::new(view));
    let questions = match &example.settings.agent {
        Some(AgentChoice::InProgram(program)) => program.take_requests(&session.id()),
        Some(AgentChoice::Named(_)) | None => None,
    };
    let channel = SessionChannel::new(orders, view.clone(), facts.clone());
    // A thread that blocks may never end; its example does.
    let _running = channel.list_as_running();
    let thread = std::thread::Builder::new().name(facts.name.clone());
    let started = thread.spawn(move || {
        let answering = questions.zip(match &example.settings.agent {
            Some(AgentChoice::InProgram(program)) => Some(program.clone()),
            Some(AgentChoice::Named(_)) | None => None,
        });
        RUNNING.with(|running| running.0.set(Some(example.facts.name.clone())));
        let _end = ExampleEnd;
        let test = Test::new(channel);
        // The receiver is gone if the run has dropped the case.
        let _ = ended.send(run_stages(&example, &test, answering, time_receiver));
    });
    started.map_err(|error| test_error(format!("cannot start a thread for the example: {error}")))?;

    let mut handler = CommandHandler { session, example: facts, view: view.clone() };
    let mut timed_out_at = None;
    loop {
        let limit = handler.session.conversation_deadline();
        let deadline = match (timed_out_at, limit) {
            (Some(at), _) => Some(at + TIMEOUT_GRACE),
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
            Some(order) = received.recv() => handle_command(order, &mut handler, &mut received).await,
            result = &mut end => {
                // Executes the commands that were sent before the end, even if nothing awaits them.
                while let Ok(order) = received.try_recv() {
                    handler.handle(order).await;
                }
                return match result {
                    Ok(None) => {
                        handler.finish().await;
                        Ok(())
                    }
                    Ok(Some(failure)) => Err(failure),
                    Err(_) => Err(test_error("the thread of the example ended unexpectedly".to_string())),
                };
            }
            () = out_of_time => match (timed_out_at, limit) {
                (None, Some((_, limit))) => {
                    let message = format!("the case timed out after {} ms", limit.as_millis());
                    let running = format!("{}: this example was still running", handler.example.at);
                    handler.session.fail(AttemptFailure::new(FailureKind::Timeout, message).with_detail(running));
                    lock(&view).ended = true;
                    let _ = time.send(TimeBudget::Exhausted);
                    timed_out_at = Some(Instant::now());
                }
                // The thread does not return; leave it running.
                (Some(_), _) | (None, None) => return Ok(()),
            },
        }
    }
}

/// Executes a command. A turn ends when the example sends another command whose result it awaits.
async fn handle_command(
    order: SessionCommand,
    handler: &mut CommandHandler<'_, '_>,
    received: &mut mpsc::UnboundedReceiver<SessionCommand>,
) {
    if !matches!(order, SessionCommand::Say { .. } | SessionCommand::Simulate { .. }) {
        return handler.handle(order).await;
    }
    let mut deferred = Vec::new();
    {
        let mut carried_out = pin!(handler.handle(order));
        loop {
            tokio::select! {
                biased;
                () = &mut carried_out => break,
                Some(other) = received.recv() => {
                    let overlaps = matches!(other, SessionCommand::Overlap { .. });
                    deferred.push(other);
                    if overlaps {
                        break;
                    }
                }
            }
        }
    }
    for order in deferred {
        handler.handle(order).await;
    }
}

type AgentTask =
    (mpsc::UnboundedReceiver<super::agents::ResponderRequest>, Arc<super::agents::InProgramAgent>);

/// Runs the hooks and the body of an example on the current thread. Returns an error of the example itself;
/// results of checks are stored in the session.
fn run_stages(
    example: &ExampleSpec,
    test: &Test,
    answering: Option<AgentTask>,
    time: watch::Receiver<TimeBudget>,
) -> Option<AttemptFailure> {
    let panics = Arc::new(PanicLog::default());
    panics.capture();
    test.channel.enter();
    let log = Arc::downgrade(&panics);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().on_thread_start(move || {
        if let Some(log) = log.upgrade() {
            log.capture();
        }
    });
    let runtime = match runtime.build() {
        Ok(runtime) => runtime,
        Err(error) => return Some(test_error(format!("cannot start a runtime for the example: {error}"))),
    };
    let local = LocalSet::new();
    if let Some((questions, program)) = answering {
        let test = test.clone();
        local.spawn_local(async move { program.answer(questions, test).await });
    }
    let part =
        |run: &Arc<dyn TestFunction>, stage: ExampleStage, time: Option<watch::Receiver<TimeBudget>>| {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(local.run_until(async {
                    tokio::select! {
                        error = run.run(test.clone()) => error,
                        () = wait_for_timeout(time) => None,
                    }
                }))
            }));
            stage.failure(caught, run.location())
        };
    let mut failure = None;
    for hook in &example.before {
        failure = part(hook, ExampleStage::Before, Some(time.clone()));
        if failure.is_some() || test.channel.view().ended {
            break;
        }
    }
    if failure.is_none() && !test.channel.view().ended {
        failure = part(&example.body, ExampleStage::Body, Some(time.clone()));
    }
    for hook in &example.after {
        let hook_failure = part(hook, ExampleStage::After, None);
        failure = failure.or(hook_failure);
    }
    if failure.is_none() && !test.channel.view().ended {
        // The case has ended if this unwinds.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(local.run_until(async {
                tokio::select! {
                    () = run_ready_tasks(&test.channel) => {}
                    () = wait_for_timeout(Some(time)) => {}
                }
            }))
        }));
    }
    let dropped = catch_unwind(AssertUnwindSafe(|| {
        let _runtime = runtime.enter();
        test.fixture_values.take();
        None
    }));
    failure = failure.or(ExampleStage::Teardown.failure(dropped, example.body.location()));
    // Tasks that still wait are dropped here.
    drop(local);
    runtime.shutdown_background();
    failure.or_else(|| {
        let report = panics.take_first_in_task()?;
        let failure = test_error(format!("a task of the test {report}"));
        Some(failure.with_detail(report.backtrace.unwrap_or_default()))
    })
}

/// Runs the tasks that the example spawned, until those that remain wait for something else than its session. Ends
/// sooner if they keep going.
async fn run_ready_tasks(channel: &SessionChannel) {
    const MAX_ROUNDS: usize = 100;
    for _ in 0..MAX_ROUNDS {
        for _ in 0..MAX_ROUNDS {
            tokio::task::yield_now().await;
        }
        if channel.view().open_requests == 0 {
            return;
        }
        channel.request(SessionCommand::Synchronize).await;
    }
}

async fn wait_for_timeout(time: Option<watch::Receiver<TimeBudget>>) {
    let Some(mut time) = time else { return std::future::pending().await };
    // If the sender is gone, the run has dropped the case.
    let _ = time.wait_for(|time| *time == TimeBudget::Exhausted).await;
}

/// A stage of an example, for error messages.
#[derive(Debug, Clone, Copy)]
enum ExampleStage {
    Before,
    Body,
    After,
    /// Dropping the fixtures.
    Teardown,
}

impl ExampleStage {
    fn failure(self, ran: std::thread::Result<Option<String>>, at: CallerLocation) -> Option<AttemptFailure> {
        let kind = match self {
            ExampleStage::Body => FailureKind::TestError,
            ExampleStage::Before | ExampleStage::After | ExampleStage::Teardown => FailureKind::HookError,
        };
        let what = match self {
            ExampleStage::Body => "the test",
            ExampleStage::Before => "`before`",
            ExampleStage::After => "`after`",
            ExampleStage::Teardown => "dropping a fixture",
        };
        match ran {
            Ok(None) => None,
            Ok(Some(error)) => {
                Some(AttemptFailure::new(kind, format!("{what} returned an error: {error} ({at})")))
            }
            Err(panic) if panic.is::<CaseEndedPanic>() => None,
            Err(panic) => {
                let report = panics::report_for(&*panic);
                let failure = AttemptFailure::new(kind, format!("{what} {report}"));
                Some(failure.with_detail(report.backtrace.unwrap_or_default()))
            }
        }
    }
}
