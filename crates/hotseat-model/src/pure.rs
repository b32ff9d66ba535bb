//! Models that need nobody else: what they answer depends on what they are asked and nothing more.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Answering, Delta, Model, ModelError, Reply, Request, Sink, Sleep, Timed, TokioSleep};

/// A model without clock, chance and network: the same requests in the same order get the same answers. A simulator
/// asks it as it is; [`Live`] makes a [`Model`] of it.
pub trait PureModel: Send {
    /// What the model is called in traces and errors.
    fn name(&self) -> &str;

    /// Answers one request, and says how long that takes.
    fn answer(&mut self, request: &Request) -> Timed<Result<Reply, ModelError>>;

    /// The answers that it was given and has not used, by their names.
    fn unused(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A function as a model, for answers that no rule can say.
///
/// ```
/// use hotseat_model::{Function, PureModel, Reply, Request, Timed};
///
/// let mut echo = Function::new("echo", |request: &Request| {
///     Timed::now(Ok(Reply::text(request.last_user_text().unwrap_or_default())))
/// });
/// assert_eq!(echo.answer(&Request::default()).value.unwrap().text, "");
/// ```
pub struct Function<F> {
    name: String,
    answer: F,
}

impl<F> Function<F>
where
    F: FnMut(&Request) -> Timed<Result<Reply, ModelError>> + Send,
{
    /// A model of this name that answers what the function returns.
    pub fn new(name: impl Into<String>, answer: F) -> Self {
        Function { name: name.into(), answer }
    }
}

impl<F> PureModel for Function<F>
where
    F: FnMut(&Request) -> Timed<Result<Reply, ModelError>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(&mut self, request: &Request) -> Timed<Result<Reply, ModelError>> {
        (self.answer)(request)
    }
}

impl<F> fmt::Debug for Function<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A [`PureModel`] in real time: it waits as long as the answer takes and streams the words of the reply one by one,
/// spread evenly over that time.
pub struct Live<P> {
    name: String,
    pure: Mutex<P>,
    sleep: Arc<dyn Sleep>,
}

impl<P: PureModel> Live<P> {
    /// The model on tokio's timer.
    pub fn new(pure: P) -> Self {
        Live { name: pure.name().to_owned(), pure: Mutex::new(pure), sleep: Arc::new(TokioSleep) }
    }

    /// The same model with another way to wait.
    pub fn with_sleep(self, sleep: Arc<dyn Sleep>) -> Self {
        Live { sleep, ..self }
    }

    /// Looks at the model, for instance to see which rules of a script were never used.
    pub fn look<T>(&self, look: impl FnOnce(&P) -> T) -> T {
        look(&self.pure.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Streams the pieces of a reply over the time that it takes.
    async fn stream(&self, reply: Option<&Reply>, time: Duration, sink: &mut dyn Sink) {
        let deltas: Vec<Delta> = reply.map(Reply::deltas).unwrap_or_default();
        let pieces = u32::try_from(deltas.len().max(1)).unwrap_or(u32::MAX);
        let each = time / pieces;
        // What the division leaves over is waited first, so that the whole takes exactly `time`.
        self.wait(time - each * pieces).await;
        if deltas.is_empty() {
            self.wait(each).await;
        }
        for delta in deltas {
            self.wait(each).await;
            sink.delta(delta);
        }
    }

    async fn wait(&self, time: Duration) {
        if !time.is_zero() {
            self.sleep.sleep(time).await;
        }
    }
}

impl<P: PureModel> Model for Live<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        Box::pin(async move {
            let Timed { delay, value } =
                self.pure.lock().unwrap_or_else(PoisonError::into_inner).answer(request);
            let shown = match &value {
                Ok(reply) => Some(reply),
                Err(error) => error.partial.as_deref(),
            };
            self.stream(shown, delay, sink).await;
            value
        })
    }
}

impl<P> fmt::Debug for Live<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("name", &self.name).finish_non_exhaustive()
    }
}
