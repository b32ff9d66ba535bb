//! Deterministic models: the answer depends only on the requests.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::{Model, ModelError, ModelReply, ModelRequest, ReplyDelta, ReplyFuture, ReplySink, TimedValue};

/// A deterministic model without clock or network: the same requests in the same order get the same answers.
/// Simulators call it directly; [`LiveModel`] makes a [`Model`] of it.
pub trait PureModel: Send {
    /// Returns the name of the model for traces and errors.
    fn name(&self) -> &str;

    /// Answers one request, with the simulated delay of the answer.
    fn answer(&mut self, request: &ModelRequest) -> TimedValue<Result<ModelReply, ModelError>>;

    /// Returns the names of the answers that were not used.
    fn unused(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A model backed by a function, for answers that rules cannot express.
///
/// ```
/// use hotseat_model::{FunctionModel, ModelReply, ModelRequest, PureModel, TimedValue};
///
/// let mut echo = FunctionModel::new("echo", |request: &ModelRequest| {
///     TimedValue::now(Ok(ModelReply::text(request.last_user_text().unwrap_or_default())))
/// });
/// assert_eq!(echo.answer(&ModelRequest::default()).value.unwrap().text, "");
/// ```
pub struct FunctionModel<F> {
    name: String,
    answer: F,
}

impl<F> FunctionModel<F>
where
    F: FnMut(&ModelRequest) -> TimedValue<Result<ModelReply, ModelError>> + Send,
{
    /// Creates a model that answers with the result of a function.
    pub fn new(name: impl Into<String>, answer: F) -> Self {
        FunctionModel { name: name.into(), answer }
    }
}

impl<F> PureModel for FunctionModel<F>
where
    F: FnMut(&ModelRequest) -> TimedValue<Result<ModelReply, ModelError>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(&mut self, request: &ModelRequest) -> TimedValue<Result<ModelReply, ModelError>> {
        (self.answer)(request)
    }
}

impl<F> fmt::Debug for FunctionModel<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionModel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A [`PureModel`] in real time: streams the words of the reply one by one, spread evenly over its delay.
pub struct LiveModel<P> {
    name: String,
    inner: Mutex<P>,
}

impl<P: PureModel> LiveModel<P> {
    /// Creates the model with tokio's timer.
    pub fn new(pure: P) -> Self {
        LiveModel { name: pure.name().to_owned(), inner: Mutex::new(pure) }
    }

    /// Streams the pieces of a reply over the given time.
    async fn stream(reply: Option<&ModelReply>, time: Duration, sink: &mut dyn ReplySink) {
        let deltas: Vec<ReplyDelta> = reply.map(ModelReply::deltas).unwrap_or_default();
        let pieces = u32::try_from(deltas.len().max(1)).unwrap_or(u32::MAX);
        let each = time / pieces;
        // The remainder of the division is waited first, so that the total is exactly `time`.
        wait(time - each * pieces).await;
        if deltas.is_empty() {
            wait(each).await;
        }
        for delta in deltas {
            wait(each).await;
            sink.delta(delta);
        }
    }
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

impl<P: PureModel> Model for LiveModel<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn unused(&self) -> Vec<String> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).unused()
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        Box::pin(async move {
            let TimedValue { delay, value } =
                self.inner.lock().unwrap_or_else(PoisonError::into_inner).answer(request);
            let shown = match &value {
                Ok(reply) => Some(reply),
                Err(error) => error.partial.as_deref(),
            };
            Self::stream(shown, delay, sink).await;
            value
        })
    }
}

impl<P> fmt::Debug for LiveModel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveModel").field("name", &self.name).finish_non_exhaustive()
    }
}
