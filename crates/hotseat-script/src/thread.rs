//! Threads for scripts. An engine is never interrupted within a function of its own, so whoever waits must not hang with
//! it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::error::{ErrorKind, ScriptError};

/// A thread of ours has room for the deepest recursion that [`Limits::stack`](crate::Limits::stack) allows, and for what
/// the engine needs beside it. Only what is used of it is memory.
const STACK: usize = 16 * 1024 * 1024;

/// How long a script that should have ended may take to notice it.
const GRACE: Duration = Duration::from_millis(500);

/// So many threads may hang. Each of them may hold a processor and all the memory that a script may have, so a program
/// that has given up so many starts no more.
pub const MOST_LEFT: usize = 8;

/// How many threads of this process were left to themselves and have not ended since.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Tells a script that nobody waits for it any more. Clones are the same.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Stop(watch::Sender::new(false))
    }
}

impl Stop {
    /// Says so.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether somebody has said so.
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody says so.
    pub async fn stopped(&self) {
        // The sender lives in `self`, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}

/// Does some work on a thread of its own and waits for it; this thread is blocked meanwhile. What the work is given says
/// when nobody waits any more.
///
/// # Errors
/// When the work does not end `within` this time and a little more. Its thread is left to itself then; where
/// [many](MOST_LEFT) were, no further work is begun.
pub fn run<T: Send + 'static>(
    within: Duration,
    work: impl FnOnce(Stop) -> T + Send + 'static,
) -> Result<T, ScriptError> {
    let (done, result) = mpsc::sync_channel(1);
    let started = Started::new(work, move |result| drop(done.send(result)))?;
    result.recv_timeout(within + GRACE).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => started.leave(within),
        mpsc::RecvTimeoutError::Disconnected => panicked(),
    })
}

/// The same for those who may not block, on a tokio runtime. Whoever drops what is returned waits no longer.
///
/// # Errors
/// As [`run`].
pub async fn run_async<T: Send + 'static>(
    within: Duration,
    work: impl FnOnce(Stop) -> T + Send + 'static,
) -> Result<T, ScriptError> {
    let (done, result) = oneshot::channel();
    let started = Started::new(work, move |result| drop(done.send(result)))?;
    match tokio::time::timeout(within + GRACE, result).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(_)) => Err(panicked()),
        Err(_) => Err(started.leave(within)),
    }
}

/// Work on a thread of its own that may take as long as it likes. Whoever drops this waits no longer.
pub struct Running<T> {
    started: Started,
    result: oneshot::Receiver<T>,
}

impl<T: Send + 'static> Running<T> {
    /// Begins the work.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(work: impl FnOnce(Stop) -> T + Send + 'static) -> Result<Running<T>, ScriptError> {
        let (done, result) = oneshot::channel();
        let started = Started::new(work, move |result| drop(done.send(result)))?;
        Ok(Running { started, result })
    }

    /// What it comes to. To be asked until it has come to something, and then no more.
    ///
    /// # Errors
    /// When its thread has broken off.
    pub async fn ended(&mut self) -> Result<T, ScriptError> {
        (&mut self.result).await.map_err(|_| panicked())
    }

    /// Leaves work to itself that has not ended [a little](Running::GRACE) after its time `within` which it had to.
    pub fn leave(self, within: Duration) -> ScriptError {
        self.started.leave(within)
    }

    /// How long work that should have ended may take to notice it.
    pub const GRACE: Duration = GRACE;
}

/// A thread that was started. Its work is told to stop when this is dropped.
struct Started {
    stop: Stop,
    state: Arc<AtomicU8>,
}

// What becomes of a thread that runs, which is 0.
const HAS_ENDED: u8 = 1;
const IS_LEFT: u8 = 2;

/// Notes that a thread has ended, however it does.
struct Ending(Arc<AtomicU8>);

impl Started {
    fn new<T>(
        work: impl FnOnce(Stop) -> T + Send + 'static,
        done: impl FnOnce(T) + Send + 'static,
    ) -> Result<Started, ScriptError> {
        if LEFT.load(Ordering::Relaxed) >= MOST_LEFT {
            let message = format!(
                "{MOST_LEFT} scripts hang in functions of the engine that cannot be interrupted, so no other one is started"
            );
            return Err(ScriptError::new(ErrorKind::TimeLimit, message).help(HANGS));
        }
        let started = Started { stop: Stop::default(), state: Arc::default() };
        let (stop, ending) = (started.stop.clone(), Ending(started.state.clone()));
        let body = move || {
            let result = work(stop);
            drop(ending);
            done(result);
        };
        let thread = thread::Builder::new().name("script".to_string()).stack_size(STACK).spawn(body);
        thread.map(|_| started).map_err(|error| not_started(&error))
    }

    /// Leaves the thread to itself.
    fn leave(self, within: Duration) -> ScriptError {
        LEFT.fetch_add(1, Ordering::Relaxed);
        if self.state.swap(IS_LEFT, Ordering::AcqRel) == HAS_ENDED {
            LEFT.fetch_sub(1, Ordering::Relaxed);
        }
        let message = format!(
            "the script did not end within {} ms and cannot be stopped; its thread is left behind",
            within.as_millis()
        );
        ScriptError::new(ErrorKind::TimeLimit, message).help(HANGS)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.0.swap(HAS_ENDED, Ordering::AcqRel) == IS_LEFT {
            LEFT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

const HANGS: &str =
    "look for one call on very much data, for example on an array of many millions of entries";

fn not_started(error: &io::Error) -> ScriptError {
    ScriptError::new(ErrorKind::Thrown, format!("no thread can be started for a script: {error}"))
}

fn panicked() -> ScriptError {
    ScriptError::new(ErrorKind::Thrown, "the engine or a function given to the script has panicked")
}
