//! What becomes of work when a run is cancelled: conversations end at once, and what cleans up has a little time.

use std::future::{Future, pending};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::Control;

/// How long work that cleans up may go on after a run was cancelled.
pub const CLEANUP_LIMIT: Duration = Duration::from_secs(10);

/// Tells work of a run that the run is cancelled.
#[derive(Debug, Clone)]
pub struct Cancellation(watch::Receiver<Control>);

impl Cancellation {
    /// That of the run which is controlled by this.
    pub fn new(control: watch::Receiver<Control>) -> Cancellation {
        Cancellation(control)
    }

    /// Waits until the run is cancelled; for ever if it never is.
    pub async fn cancelled(&self) {
        let mut control = self.0.clone();
        if control.wait_for(|control| *control == Control::Cancel).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Does some work until the run is cancelled; none where it was.
    pub async fn or_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.cancelled() => None,
            done = work => Some(done),
        }
    }

    /// Does work that cleans up: to its end or, when the run is cancelled, for [a little longer](CLEANUP_LIMIT).
    ///
    /// # Errors
    /// When it was given up, in words.
    pub async fn clean_up<T>(&self, work: impl Future<Output = T>) -> Result<T, String> {
        let given_up = async {
            self.cancelled().await;
            sleep(CLEANUP_LIMIT).await;
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = given_up => {
                Err(format!("given up {} ms after the run was cancelled", CLEANUP_LIMIT.as_millis()))
            }
        }
    }
}
