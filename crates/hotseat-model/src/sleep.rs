//! Timers as a parameter, so that tests need not wait.

use std::pin::Pin;
use std::time::Duration;

/// A pending wait.
pub type SleepFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits for a duration.
pub trait Sleep: Send + Sync {
    /// Returns a future that completes after `time`.
    fn sleep(&self, time: Duration) -> SleepFuture;
}

/// Waits in real time, on tokio's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSleep;

impl Sleep for TokioSleep {
    fn sleep(&self, time: Duration) -> SleepFuture {
        Box::pin(tokio::time::sleep(time))
    }
}

impl<F: Fn(Duration) -> SleepFuture + Send + Sync> Sleep for F {
    fn sleep(&self, time: Duration) -> SleepFuture {
        self(time)
    }
}
