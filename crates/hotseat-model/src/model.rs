//! The one thing that can be done with a language model.

use std::pin::Pin;

use crate::{Delta, ModelError, Reply, Request};

/// A reply that is on its way. Dropping it gives the call up.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;

/// Something that answers requests as a language model does.
pub trait Model: Send + Sync {
    /// What the model is called in traces and errors.
    fn name(&self) -> &str;

    /// Answers one request. Pieces of the reply go to `sink` as they arrive; the reply at the end is whole.
    ///
    /// # Errors
    /// When there is no reply; the error says whether another attempt makes sense.
    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a>;
}

impl<M: Model + ?Sized> Model for std::sync::Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        (**self).call(request, sink)
    }
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        (**self).call(request, sink)
    }
}

/// Takes the pieces of a reply as they arrive. It is never waited for: a slow watcher must not slow a conversation.
pub trait Sink: Send {
    /// Takes the next piece.
    fn delta(&mut self, delta: Delta);
}

impl<F: FnMut(Delta) + Send> Sink for F {
    fn delta(&mut self, delta: Delta) {
        self(delta);
    }
}

/// The sink of those who only want the whole reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Sink for Discard {
    fn delta(&mut self, _delta: Delta) {}
}
