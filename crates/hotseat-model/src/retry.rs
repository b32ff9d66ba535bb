//! Retries failed calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Model, ModelError, ModelRequest, ReplyDelta, ReplyFuture, ReplySink, Sleep, TokioSleep};

/// Policy for retries and their delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts, including the first.
    pub max_attempts: u32,
    /// Delay after the first attempt. It doubles with each further one.
    pub initial_delay: Duration,
    /// Maximum delay. If the provider asks for a longer one, the call is not retried.
    pub max_delay: Duration,
    /// Also retries after parts of the reply were streamed. Watchers then get [`ReplyDelta::Restarted`].
    pub after_output: bool,
}

impl Default for RetryPolicy {
    /// Three attempts with delays of 0.5 s and 1 s; no retry after output.
    fn default() -> Self {
        RetryPolicy {
            max_attempts: 3,
            initial_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            after_output: false,
        }
    }
}

impl RetryPolicy {
    /// Returns the delay after attempt number `attempt` (from 1) failed, or None if there is no further
    /// attempt. `seen` is true if parts of the reply were streamed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hotseat_model::{ModelError, ModelErrorKind, RetryPolicy};
    ///
    /// let error = ModelError::new(ModelErrorKind::Server, "HTTP 503");
    /// let policy = RetryPolicy::default();
    /// let waits: Vec<_> = (1..4).map(|attempt| policy.delay_after(attempt, &error, false)).collect();
    /// assert_eq!(waits, [Some(Duration::from_millis(500)), Some(Duration::from_secs(1)), None]);
    /// ```
    pub fn delay_after(&self, attempt: u32, error: &ModelError, seen: bool) -> Option<Duration> {
        if attempt >= self.max_attempts || !error.can_retry() || (seen && !self.after_output) {
            return None;
        }
        let doubled = 2u32.saturating_pow(attempt.saturating_sub(1));
        let backoff = self.initial_delay.saturating_mul(doubled).min(self.max_delay);
        match error.retry_after {
            Some(asked) if asked > self.max_delay => None,
            Some(asked) => Some(backoff.max(asked)),
            None => Some(backoff),
        }
    }
}

/// A model that retries failed calls. The positions of its requests count the attempts.
pub struct RetryingModel<M> {
    model: M,
    policy: RetryPolicy,
    sleep: Arc<dyn Sleep>,
}

impl<M: Model> RetryingModel<M> {
    /// Creates the model with a policy and tokio's timer.
    pub fn new(model: M, policy: RetryPolicy) -> Self {
        RetryingModel { model, policy, sleep: Arc::new(TokioSleep) }
    }

    /// Replaces the timer.
    pub fn with_sleep(self, sleep: Arc<dyn Sleep>) -> Self {
        RetryingModel { sleep, ..self }
    }
}

impl<M: Model> Model for RetryingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        Box::pin(async move {
            let mut request = request.clone();
            let mut watched = OutputTrackingSink { sink, seen: false };
            let mut attempt = 0;
            loop {
                attempt += 1;
                let error = match self.model.call(&request, &mut watched).await {
                    Ok(reply) => return Ok(reply),
                    Err(error) => error,
                };
                let Some(wait) = self.policy.delay_after(attempt, &error, watched.seen) else {
                    return Err(error);
                };
                if !wait.is_zero() {
                    self.sleep.sleep(wait).await;
                }
                if watched.seen {
                    watched.sink.delta(ReplyDelta::Restarted);
                    watched.seen = false;
                }
                request.position.attempt = request.position.attempt.max(1).saturating_add(1);
            }
        })
    }
}

impl<M: fmt::Debug> fmt::Debug for RetryingModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingModel")
            .field("model", &self.model)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// A sink that records whether it received anything.
struct OutputTrackingSink<'a> {
    sink: &'a mut dyn ReplySink,
    seen: bool,
}

impl ReplySink for OutputTrackingSink<'_> {
    fn delta(&mut self, delta: ReplyDelta) {
        self.seen = true;
        self.sink.delta(delta);
    }
}
