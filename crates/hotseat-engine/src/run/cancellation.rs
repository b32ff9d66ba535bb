//! Cancellation of a run: conversations stop immediately, cleanup gets a short grace period.

use std::future::{Future, pending};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::sleep;

/// A request from the user or the operating system to a running run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunControl {
    /// Continue.
    #[default]
    Run,
    /// Start no new cases; running ones finish.
    Finish,
    /// Stop all running conversations immediately.
    Cancel,
}

/// Grace period for cleanup after a run is cancelled.
pub const CLEANUP_LIMIT: Duration = Duration::from_secs(10);

/// A cleanup that did not end in time.
#[derive(Debug, thiserror::Error)]
#[error("stopped {} ms after the run was cancelled", CLEANUP_LIMIT.as_millis())]
pub struct CleanupError;

/// Notifies work of a run that the run has been cancelled.
#[derive(Debug, Clone)]
pub struct CancellationSignal(watch::Receiver<RunControl>);

impl CancellationSignal {
    /// Creates the signal from the control channel of a run.
    pub fn new(control: watch::Receiver<RunControl>) -> CancellationSignal {
        CancellationSignal(control)
    }

    /// True once the run should end, at least after its running cases.
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow() != RunControl::Run
    }

    /// Waits until the run is cancelled. Never resolves if it is not.
    pub async fn cancelled(&self) {
        let mut control = self.0.clone();
        if control.wait_for(|control| *control == RunControl::Cancel).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Runs a future until the run is cancelled. Returns `None` if it is cancelled first.
    pub async fn run_until_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.cancelled() => None,
            done = work => Some(done),
        }
    }

    /// Runs a cleanup future to completion or, once the run is cancelled, for at most [`CLEANUP_LIMIT`].
    /// Fails if the limit was exceeded.
    pub async fn clean_up<T>(&self, work: impl Future<Output = T>) -> Result<T, CleanupError> {
        let given_up = async {
            self.cancelled().await;
            sleep(CLEANUP_LIMIT).await;
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = given_up => Err(CleanupError),
        }
    }
}
