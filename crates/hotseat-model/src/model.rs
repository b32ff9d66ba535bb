//! The interface of a language model.

use std::pin::Pin;

use crate::{ModelError, ModelReply, ModelRequest, ReplyDelta};

/// A pending reply. Dropping it cancels the call.
pub type ReplyFuture<'a> = Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>>;

/// Answers requests as a language model does.
pub trait Model: Send + Sync {
    /// Returns the name of the model for traces and errors.
    fn name(&self) -> &str;

    /// Returns the names of the answers that no call has used, for models with a fixed set of answers.
    fn unused(&self) -> Vec<String> {
        Vec::new()
    }

    /// Answers one request. Pieces of the reply go to `sink` as they arrive; the returned reply is complete.
    /// Fails if there is no reply. The error tells whether a retry makes sense.
    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a>;
}

/// Models behind pointers, such as `Box` and `Arc`.
impl<P> Model for P
where
    P: std::ops::Deref<Target: Model> + Send + Sync,
{
    fn name(&self) -> &str {
        (**self).name()
    }

    fn unused(&self) -> Vec<String> {
        (**self).unused()
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        (**self).call(request, sink)
    }
}

/// Receives the pieces of a reply as they arrive. Implementations must return at once: callers do not wait
/// for slow watchers.
pub trait ReplySink: Send {
    /// Receives the next piece.
    fn delta(&mut self, delta: ReplyDelta);
}

impl<F: FnMut(ReplyDelta) + Send> ReplySink for F {
    fn delta(&mut self, delta: ReplyDelta) {
        self(delta);
    }
}

/// A sink that discards all pieces.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscardSink;

impl ReplySink for DiscardSink {
    fn delta(&mut self, _delta: ReplyDelta) {}
}
