//! Waiting, given to whoever must wait, so that tests need not.

use std::pin::Pin;
use std::time::Duration;

/// A wait that is going on.
pub type Sleeping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Waits for a time.
pub trait Sleep: Send + Sync {
    /// A future that is done after `time`.
    fn sleep(&self, time: Duration) -> Sleeping;
}

/// Waits in real time, on tokio's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSleep;

impl Sleep for TokioSleep {
    fn sleep(&self, time: Duration) -> Sleeping {
        Box::pin(tokio::time::sleep(time))
    }
}

impl<F: Fn(Duration) -> Sleeping + Send + Sync> Sleep for F {
    fn sleep(&self, time: Duration) -> Sleeping {
        self(time)
    }
}
