//! Threads for scripts. An engine cannot be interrupted within its built-in functions, so the caller must be
//! able to abandon its thread. A thread that has ended its work does that of the next caller.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use std::{io, thread};

use tokio::sync::{oneshot, watch};

use crate::error::{ScriptError, ScriptErrorKind};

/// Stack size of script threads: the deepest recursion that [`ScriptLimits`](crate::ScriptLimits) allows,
/// plus the engine's own needs. Only used pages take memory.
const THREAD_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Extra time for a script to notice that it should end.
const GRACE: Duration = Duration::from_millis(500);

/// Maximum number of abandoned threads. Each may use a full core and all the memory of a script, so no more
/// scripts start beyond this number.
pub const MAX_ABANDONED_THREADS: usize = 8;

/// Number of abandoned threads of this process that still run.
static ABANDONED_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Cancels a running script. Clones share the signal.
#[derive(Debug, Clone, Default)]
pub struct StopSignal {
    sender: watch::Sender<bool>,
    is_checked: Arc<AtomicBool>,
}

impl StopSignal {
    /// Sends the signal.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// Returns true if the signal was sent. A script that asks does not hang.
    pub fn is_stopped(&self) -> bool {
        self.is_checked.store(true, Ordering::Relaxed);
        *self.sender.borrow()
    }

    /// Returns true if the script has checked the signal since the last call, so it does not hang.
    pub fn take_checked(&self) -> bool {
        self.is_checked.swap(false, Ordering::Relaxed)
    }

    /// Waits for the signal.
    pub async fn wait_until_stopped(&self) {
        // The sender lives in `self`, so it cannot be dropped.
        let _ = self.sender.subscribe().wait_for(|stopped| *stopped).await;
    }
}

/// Runs work on a thread of its own and blocks until it ends. The work receives the signal that the caller no longer
/// waits.
///
/// # Errors
/// If the work does not end `within` this time plus a short grace period. Its thread is then abandoned. If
/// [too many](MAX_ABANDONED_THREADS) threads are abandoned, no work is started.
pub fn run<T: Send + 'static>(
    within: Duration,
    work: impl FnOnce(StopSignal) -> T + Send + 'static,
) -> Result<T, ScriptError> {
    let (done, result) = mpsc::sync_channel(1);
    let started = ScriptThread::new(work, move |result| drop(done.send(result)))?;
    result.recv_timeout(within + GRACE).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => started.abandon(within),
        mpsc::RecvTimeoutError::Disconnected => panicked(),
    })
}

/// Like [`run`], without blocking, on a tokio runtime. Dropping the future cancels the work.
///
/// # Errors
/// As [`run`].
pub async fn run_async<T: Send + 'static>(
    within: Duration,
    work: impl FnOnce(StopSignal) -> T + Send + 'static,
) -> Result<T, ScriptError> {
    let (done, result) = oneshot::channel();
    let started = ScriptThread::new(work, move |result| drop(done.send(result)))?;
    match tokio::time::timeout(within + GRACE, result).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(_)) => Err(panicked()),
        Err(_) => Err(started.abandon(within)),
    }
}

/// Work without a time limit on a thread of its own. Dropping it cancels the work.
pub struct RunningScript<T> {
    started: ScriptThread,
    result: oneshot::Receiver<T>,
}

impl<T: Send + 'static> RunningScript<T> {
    /// Starts the work.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        work: impl FnOnce(StopSignal) -> T + Send + 'static,
    ) -> Result<RunningScript<T>, ScriptError> {
        let (done, result) = oneshot::channel();
        let started = ScriptThread::new(work, move |result| drop(done.send(result)))?;
        Ok(RunningScript { started, result })
    }

    /// Waits for the result. Must not be called again after it has returned.
    ///
    /// # Errors
    /// If the thread panicked.
    pub async fn wait(&mut self) -> Result<T, ScriptError> {
        (&mut self.result).await.map_err(|_| panicked())
    }

    /// Returns the signal that cancels the work.
    pub fn stop_signal(&self) -> &StopSignal {
        &self.started.stop
    }

    /// Abandons work that has not ended within its time plus the [grace period](RunningScript::GRACE).
    pub fn abandon(self, within: Duration) -> ScriptError {
        self.started.abandon(within)
    }

    /// Extra time for work to notice that it should end.
    pub const GRACE: Duration = GRACE;
}

/// A started thread. Dropping it sends the stop signal.
struct ScriptThread {
    stop: StopSignal,
    state: Arc<AtomicU8>,
}

// States of a thread; 0 means running.
const STATE_ENDED: u8 = 1;
const STATE_ABANDONED: u8 = 2;

/// Records the end of a thread, even on panic.
struct ThreadEndGuard(Arc<AtomicU8>);

impl ScriptThread {
    fn new<T>(
        work: impl FnOnce(StopSignal) -> T + Send + 'static,
        done: impl FnOnce(T) + Send + 'static,
    ) -> Result<ScriptThread, ScriptError> {
        if ABANDONED_THREADS.load(Ordering::Relaxed) >= MAX_ABANDONED_THREADS {
            let message = format!(
                "{MAX_ABANDONED_THREADS} scripts hang in built-in functions that cannot be interrupted, so no further script is started"
            );
            return Err(ScriptError::new(ScriptErrorKind::TimeLimit, message).help(HANG_ADVICE));
        }
        let started = ScriptThread { stop: StopSignal::default(), state: Arc::default() };
        let (stop, ending) = (started.stop.clone(), ThreadEndGuard(started.state.clone()));
        let body = move || {
            let result = work(stop);
            drop(ending);
            done(result);
        };
        start_work(Box::new(body)).map_err(|error| not_started(&error))?;
        Ok(started)
    }

    /// Abandons the thread.
    fn abandon(self, within: Duration) -> ScriptError {
        ABANDONED_THREADS.fetch_add(1, Ordering::Relaxed);
        if self.state.swap(STATE_ABANDONED, Ordering::AcqRel) == STATE_ENDED {
            ABANDONED_THREADS.fetch_sub(1, Ordering::Relaxed);
        }
        let message = format!(
            "the script did not finish within {} ms and cannot be stopped; its thread was abandoned",
            within.as_millis()
        );
        ScriptError::new(ScriptErrorKind::TimeLimit, message).help(HANG_ADVICE)
    }
}

type ThreadWork = Box<dyn FnOnce() + Send>;

/// Threads without work, the last one that became idle at the end, each with its number. A script needs less time than
/// a new thread with its stack.
static IDLE_THREADS: Mutex<Vec<(u64, mpsc::Sender<ThreadWork>)>> = Mutex::new(Vec::new());

/// Time after which a thread without work ends.
const IDLE_TIME: Duration = Duration::from_secs(1);

fn idle_threads() -> std::sync::MutexGuard<'static, Vec<(u64, mpsc::Sender<ThreadWork>)>> {
    IDLE_THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts work on a thread without work, or else on a new one.
fn start_work(mut work: ThreadWork) -> io::Result<()> {
    loop {
        let Some((_, idle)) = idle_threads().pop() else { break };
        match idle.send(work) {
            Ok(()) => return Ok(()),
            Err(mpsc::SendError(refused)) => work = refused,
        }
    }
    let thread = thread::Builder::new().name("script".to_string()).stack_size(THREAD_STACK_BYTES);
    thread.spawn(move || run_until_idle(work)).map(drop)
}

/// Does work after work, until there has been none for a while. A panic ends the thread.
fn run_until_idle(first: ThreadWork) {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let (sender, more) = mpsc::channel();
    let mut work = first;
    loop {
        work();
        idle_threads().push((number, sender.clone()));
        work = match more.recv_timeout(IDLE_TIME) {
            Ok(next) => next,
            Err(_) if withdraw(number) => return,
            // Work for it is on its way.
            Err(_) => match more.recv() {
                Ok(next) => next,
                Err(_) => return,
            },
        };
    }
}

/// Removes a thread from those without work. Returns false if it was given work.
fn withdraw(number: u64) -> bool {
    let mut idle = idle_threads();
    let place = idle.iter().position(|(other, _)| *other == number);
    place.map(|place| idle.remove(place)).is_some()
}

impl Drop for ScriptThread {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

impl Drop for ThreadEndGuard {
    fn drop(&mut self) {
        if self.0.swap(STATE_ENDED, Ordering::AcqRel) == STATE_ABANDONED {
            ABANDONED_THREADS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

const HANG_ADVICE: &str = "look for a built-in call on a huge value, such as an array of millions of entries";

fn not_started(error: &io::Error) -> ScriptError {
    ScriptError::new(ScriptErrorKind::Thrown, format!("cannot start a thread for a script: {error}"))
}

fn panicked() -> ScriptError {
    ScriptError::new(ScriptErrorKind::Thrown, "the script engine or a host function panicked")
}
