//! Channel between an example, which runs on its own thread, and the session that it drives.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{mpsc, oneshot};

use super::caller_location::CallerLocation;
use super::conversation::{SessionView, SharedView, lock};
use super::example_facts::ExampleFacts;
use super::lost_assertions::UNATTRIBUTED;
use super::matcher::Assertion;
use super::panics::CaseEndedPanic;
use super::simulator::{SimulationResult, SimulatorSettings};
use super::topics::Graph;
use super::user_turn::UserTurnBuilder;
use hotseat_checks::CheckStrength;

/// A command from an example to its session.
pub(super) enum SessionCommand {
    /// Sends a user turn.
    Say { turn: UserTurnBuilder, reply: Reply<()> },
    /// Runs a simulated user.
    Simulate { brief: Box<SimulatorSettings>, at: CallerLocation, reply: Reply<SimulationResult> },
    /// Declares the topic graph of the conversation.
    DeclareGraph {
        graph: Graph,
        at: CallerLocation,
        reply: std::sync::mpsc::Sender<Result<(), CaseAlreadyEnded>>,
    },
    /// Evaluates an assertion.
    Check { asserted: AssertionRequest, reply: Reply<bool> },
    /// Skips the rest of the example.
    Skip(String),
    /// Reports an error in the test itself.
    TestError { words: String, at: CallerLocation },
    /// Adds a log line to the case, shown with `-v`.
    Log(String),
    /// Reports a command that the example sent during a turn and whose result it would await.
    Overlap { at: CallerLocation, reply: Reply<()> },
    /// Replies once the earlier commands were executed.
    Synchronize(Reply<()>),
}

impl SessionCommand {
    /// Returns the source location if the example awaits the result of this command.
    pub(super) fn awaited_at(&self) -> Option<CallerLocation> {
        match self {
            SessionCommand::Say { turn: said, .. } => Some(said.at),
            SessionCommand::Check { asserted, .. } => Some(asserted.at),
            SessionCommand::Simulate { at, .. } | SessionCommand::DeclareGraph { at, .. } => Some(*at),
            SessionCommand::Skip(_)
            | SessionCommand::Overlap { .. }
            | SessionCommand::TestError { .. }
            | SessionCommand::Log(_)
            | SessionCommand::Synchronize(_) => None,
        }
    }
}

/// Sender for the reply to a command.
pub(super) type Reply<T> = oneshot::Sender<Result<T, CaseAlreadyEnded>>;

/// Error: the case has already ended, so the session accepts no more commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CaseAlreadyEnded;

/// An assertion to evaluate, with its strength, message and location.
pub(super) struct AssertionRequest {
    pub assertion: Assertion,
    pub strength: CheckStrength,
    pub message: Option<String>,
    pub at: CallerLocation,
}

/// The example's end of the channel.
#[derive(Clone)]
pub(super) struct SessionChannel {
    commands: mpsc::UnboundedSender<SessionCommand>,
    view: SharedView,
    pub example: Arc<ExampleFacts>,
}

thread_local! {
    /// The channel of the example that runs on this thread.
    static CURRENT: RefCell<Option<SessionChannel>> = const { RefCell::new(None) };
}

/// The channels of all running examples.
static RUNNING: Mutex<Vec<SessionChannel>> = Mutex::new(Vec::new());

/// Lists an example as running until it is dropped.
pub(super) struct RunningExampleGuard(SharedView);

impl Drop for RunningExampleGuard {
    fn drop(&mut self) {
        lock(&RUNNING).retain(|line| !Arc::ptr_eq(&line.view, &self.0));
    }
}

/// Records an assertion that was made on a thread after its example had ended, for the run of the example.
fn lose_assertion(view: &SharedView, at: CallerLocation) -> ! {
    let SessionView { example, lost, .. } = lock(view).clone();
    lost.add(format!("an assertion was made on a thread after its example `{example}` had ended ({at})"))
}

impl std::fmt::Debug for SessionChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Line({})", self.example.name)
    }
}

impl SessionChannel {
    pub(super) fn new(
        orders: mpsc::UnboundedSender<SessionCommand>,
        seen: SharedView,
        example: Arc<ExampleFacts>,
    ) -> SessionChannel {
        SessionChannel { commands: orders, view: seen, example }
    }

    /// Marks the current thread as that of this example.
    pub(super) fn enter(&self) {
        CURRENT.with(|current| *current.borrow_mut() = Some(self.clone()));
    }

    /// Lists this example as running until the returned guard is dropped.
    pub(super) fn list_as_running(&self) -> RunningExampleGuard {
        lock(&RUNNING).push(self.clone());
        RunningExampleGuard(self.view.clone())
    }

    /// Returns the channel of the example that makes an assertion. On other threads, that is the only running
    /// example. If several examples are running, the assertion is ambiguous and all of them fail.
    pub(super) fn current(at: CallerLocation) -> SessionChannel {
        if let Some(line) = CURRENT.with(|current| current.borrow().clone()) {
            return line;
        }
        let running = lock(&RUNNING).clone();
        match running.as_slice() {
            [line] => line.clone(),
            [] => UNATTRIBUTED
                .add(format!("an assertion was made on a thread after all examples had ended ({at})")),
            several => {
                let words = "a value was asserted on another thread while several examples were running, so its example is unknown; assert on `agent` or `conversation`, or on the thread of the example";
                for line in several {
                    line.send(SessionCommand::TestError { words: words.to_string(), at });
                }
                panic!("{words} ({at})");
            }
        }
    }

    /// Returns the channel of the example with this view. If it has ended, records the assertion so that the run
    /// fails.
    pub(super) fn of_session(view: &SharedView, at: CallerLocation) -> SessionChannel {
        let is_own = |line: &&SessionChannel| Arc::ptr_eq(&line.view, view);
        // The thread of an example that has timed out may still assert.
        let current = CURRENT.with(|current| current.borrow().as_ref().filter(is_own).cloned());
        let running = || lock(&RUNNING).iter().find(is_own).cloned();
        current.or_else(running).unwrap_or_else(|| lose_assertion(view, at))
    }

    fn is_current(&self) -> bool {
        let is_own = |own: &SessionChannel| Arc::ptr_eq(&own.view, &self.view);
        CURRENT.with(|current| current.borrow().as_ref().is_some_and(is_own))
    }

    pub(super) fn session(&self) -> SharedView {
        self.view.clone()
    }

    pub(super) fn view(&self) -> MutexGuard<'_, SessionView> {
        lock(&self.view)
    }

    /// Sends a command without waiting for a reply.
    pub(super) fn send(&self, order: SessionCommand) {
        // Sending fails only after the case has ended.
        let _ = self.commands.send(order);
    }

    /// Sends a command and waits for its reply. Ends the example if the case ends or has ended.
    pub(super) async fn request<T>(&self, order: impl FnOnce(Reply<T>) -> SessionCommand) -> T {
        let (reply, answer) = oneshot::channel();
        let order = order(reply);
        let at = order.awaited_at();
        if let Some(told) = self.report_overlap(&order) {
            let _ = told.await;
            leave_example();
        }
        let _open = OpenRequest::new(&self.view);
        self.send(order);
        match answer.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(CaseAlreadyEnded)) => leave_example(),
            Err(_) => {
                // A thread spawned by the test may outlive it; record the assertion so that the run fails.
                match at.filter(|_| !self.is_current()) {
                    Some(at) => lose_assertion(&self.view, at),
                    None => leave_example(),
                }
            }
        }
    }

    /// Ends the case if a command whose result is awaited begins during a turn: it would deadlock with the turn if the
    /// agent itself sends it. Returns what to wait for then. This is decided here, because the session may have ended
    /// the turn before it receives the command.
    fn report_overlap(
        &self,
        order: &SessionCommand,
    ) -> Option<oneshot::Receiver<Result<(), CaseAlreadyEnded>>> {
        let at = order.awaited_at()?;
        let is_turn = matches!(order, SessionCommand::Say { .. } | SessionCommand::Simulate { .. });
        let mut view = self.view();
        if !view.turn_in_progress {
            view.turn_in_progress = is_turn;
            return None;
        }
        let (reply, told) = oneshot::channel();
        self.send(SessionCommand::Overlap { at, reply });
        Some(told)
    }

    /// Blocking version of [`SessionChannel::request`].
    pub(super) fn request_blocking<T>(
        &self,
        order: impl FnOnce(std::sync::mpsc::Sender<Result<T, CaseAlreadyEnded>>) -> SessionCommand,
    ) -> T {
        let (reply, answer) = std::sync::mpsc::channel();
        let order = order(reply);
        // If it is refused, the case has ended when the session gets it.
        drop(self.report_overlap(&order));
        self.send(order);
        match answer.recv() {
            Ok(Ok(answer)) => answer,
            Ok(Err(CaseAlreadyEnded)) | Err(_) => leave_example(),
        }
    }

    /// Fails the case with a test error and ends the example.
    pub(super) fn fail_test(&self, words: impl Into<String>, at: CallerLocation) -> ! {
        self.send(SessionCommand::TestError { words: words.into(), at });
        leave_example()
    }
}

/// Counts a request as open until it is dropped.
struct OpenRequest<'a>(&'a SharedView);

impl OpenRequest<'_> {
    fn new(view: &SharedView) -> OpenRequest<'_> {
        lock(view).open_requests += 1;
        OpenRequest(view)
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        lock(self.0).open_requests -= 1;
    }
}

/// Unwinds out of the example. The verdict is computed from the recorded checks, so catching the panic has no
/// effect.
pub(super) fn leave_example() -> ! {
    resume_unwind(Box::new(CaseEndedPanic))
}
