//! Makes a failed call again, where that makes sense.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Answering, Delta, Model, ModelError, Request, Sink, Sleep, TokioSleep};

/// When a call is made again, and after which wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a call is made at most, the first time included.
    pub attempts: u32,
    /// The wait after the first attempt. It doubles with each further one.
    pub first_wait: Duration,
    /// The longest wait. A provider that asks for a longer one is not asked again.
    pub longest_wait: Duration,
    /// Also make a call again of which pieces of the reply had been seen. Who watches gets [`Delta::Restarted`].
    pub after_output: bool,
}

impl Default for RetryPolicy {
    /// Three attempts, half a second and a second apart; never after output.
    fn default() -> Self {
        RetryPolicy {
            attempts: 3,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            after_output: false,
        }
    }
}

impl RetryPolicy {
    /// How long to wait after `attempt` (from 1) has failed; none if there is to be no further attempt. `seen` says
    /// that pieces of the reply had been seen.
    ///
    /// ```
    /// use std::time::Duration;
    /// use hotseat_model::{ErrorKind, ModelError, RetryPolicy};
    ///
    /// let error = ModelError::new(ErrorKind::Server, "HTTP 503");
    /// let waits: Vec<_> = (1..4).map(|attempt| RetryPolicy::default().wait(attempt, &error, false)).collect();
    /// assert_eq!(waits, [Some(Duration::from_millis(500)), Some(Duration::from_secs(1)), None]);
    /// ```
    pub fn wait(&self, attempt: u32, error: &ModelError, seen: bool) -> Option<Duration> {
        if attempt >= self.attempts || !error.can_retry() || (seen && !self.after_output) {
            return None;
        }
        let doubled = 2u32.saturating_pow(attempt.saturating_sub(1));
        let backoff = self.first_wait.saturating_mul(doubled).min(self.longest_wait);
        match error.retry_after {
            Some(asked) if asked > self.longest_wait => None,
            Some(asked) => Some(backoff.max(asked)),
            None => Some(backoff),
        }
    }
}

/// A model whose failed calls are made again. The positions of its requests count the attempts.
pub struct Retrying<M> {
    model: M,
    policy: RetryPolicy,
    sleep: Arc<dyn Sleep>,
}

impl<M: Model> Retrying<M> {
    /// The model with a policy, on tokio's timer.
    pub fn new(model: M, policy: RetryPolicy) -> Self {
        Retrying { model, policy, sleep: Arc::new(TokioSleep) }
    }

    /// The same model with another way to wait.
    pub fn with_sleep(self, sleep: Arc<dyn Sleep>) -> Self {
        Retrying { sleep, ..self }
    }
}

impl<M: Model> Model for Retrying<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        Box::pin(async move {
            let mut request = request.clone();
            let mut watched = Watched { sink, seen: false };
            let mut attempt = 0;
            loop {
                attempt += 1;
                let error = match self.model.call(&request, &mut watched).await {
                    Ok(reply) => return Ok(reply),
                    Err(error) => error,
                };
                let Some(wait) = self.policy.wait(attempt, &error, watched.seen) else { return Err(error) };
                if !wait.is_zero() {
                    self.sleep.sleep(wait).await;
                }
                if watched.seen {
                    watched.sink.delta(Delta::Restarted);
                    watched.seen = false;
                }
                request.position.attempt = request.position.attempt.max(1).saturating_add(1);
            }
        })
    }
}

impl<M: fmt::Debug> fmt::Debug for Retrying<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrying")
            .field("model", &self.model)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// A sink that knows whether anything came.
struct Watched<'a> {
    sink: &'a mut dyn Sink,
    seen: bool,
}

impl Sink for Watched<'_> {
    fn delta(&mut self, delta: Delta) {
        self.seen = true;
        self.sink.delta(delta);
    }
}
