//! Threads for scripts. An engine is never interrupted within a function of its own, so whoever waits must not hang with
//! it.

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::{ErrorKind, ScriptError};

/// A thread of ours has room for the deepest recursion that [`Limits::stack`](crate::Limits::stack) allows, and for what
/// the engine needs beside it. Only what is used of it is memory.
const STACK: usize = 16 * 1024 * 1024;

/// How long a script that should have ended may take to notice it.
const GRACE: Duration = Duration::from_millis(500);

/// Does some work on a thread of its own and waits for it; this thread is blocked meanwhile.
///
/// # Errors
/// When the work does not end `within` this time and a little more. Its thread is left to itself then.
pub fn run<T: Send + 'static>(
    within: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ScriptError> {
    let (done, result) = mpsc::sync_channel(1);
    start(move || drop(done.send(work()))).map_err(|error| not_started(&error))?;
    result.recv_timeout(within + GRACE).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => stuck(within),
        mpsc::RecvTimeoutError::Disconnected => panicked(),
    })
}

/// The same for those who may not block, on a tokio runtime.
///
/// # Errors
/// As [`run`].
pub async fn run_async<T: Send + 'static>(
    within: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ScriptError> {
    let (done, result) = oneshot::channel();
    start(move || drop(done.send(work()))).map_err(|error| not_started(&error))?;
    match tokio::time::timeout(within + GRACE, result).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(_)) => Err(panicked()),
        Err(_) => Err(stuck(within)),
    }
}

fn start(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("script".to_string()).stack_size(STACK).spawn(work).map(drop)
}

fn not_started(error: &io::Error) -> ScriptError {
    ScriptError::new(ErrorKind::Thrown, format!("no thread can be started for a script: {error}"))
}

fn stuck(within: Duration) -> ScriptError {
    let message = format!("the script did not end within {} ms, and does not stop", within.as_millis());
    ScriptError::new(ErrorKind::TimeLimit, message)
}

fn panicked() -> ScriptError {
    ScriptError::new(ErrorKind::Thrown, "the engine or a function given to the script has panicked")
}
