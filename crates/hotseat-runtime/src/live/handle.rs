//! Handle to a live conversation.

use std::sync::Arc;

use hotseat_trace::Trace;
use tokio::sync::{SemaphorePermit, mpsc, oneshot};

use super::error::HostError;
use super::message::{ActorMessage, ReplySender, SendOutcome};
use super::state::HostState;
use super::watch::{Signal, SignalQueue, WatcherList};
use crate::conversation::{ConversationInput, ConversationState};
use crate::ids::{AgentId, ConversationId};

/// Handle to a live conversation, which stays loaded while it has handles, watchers or pending work.
#[derive(Clone)]
pub struct ConversationHandle {
    inner: Arc<HandleInner>,
}

struct HandleInner {
    shared: Arc<HostState>,
    id: ConversationId,
    inbox: mpsc::Sender<ActorMessage>,
    watchers: Arc<WatcherList>,
    generation: u64,
}

impl ConversationHandle {
    /// Creates a handle, which the host has counted.
    pub(super) fn new(
        shared: Arc<HostState>,
        id: ConversationId,
        inbox: mpsc::Sender<ActorMessage>,
        watchers: Arc<WatcherList>,
        generation: u64,
    ) -> Self {
        ConversationHandle { inner: Arc::new(HandleInner { shared, id, inbox, watchers, generation }) }
    }

    /// Returns the id of the conversation.
    pub fn id(&self) -> &ConversationId {
        &self.inner.id
    }

    /// Sends an input to the conversation, or to the nested conversation that the answer belongs to. Waits
    /// for space in the inbox and until the input is stored.
    ///
    /// # Errors
    /// If the conversation cannot be stored.
    pub async fn send(&self, input: ConversationInput) -> Result<SendOutcome, HostError> {
        self.ask(|answer| ActorMessage::Send { input: Box::new(input), answer }).await
    }

    /// Returns a copy of the current state.
    ///
    /// # Errors
    /// If the conversation cannot be stored.
    pub async fn state(&self) -> Result<ConversationState, HostError> {
        self.ask(|answer| ActorMessage::State { answer }).await
    }

    /// Returns the trace so far, including the nested conversations of calls. It has digests in place of long inputs and outputs
    /// of runs that build requests or extract memories; a [`Watcher`] receives them.
    ///
    /// # Errors
    /// If the conversation cannot be stored.
    pub async fn trace(&self) -> Result<Trace, HostError> {
        // All inputs sent before are stored once this is answered.
        self.agent().await?;
        let records = self.inner.shared.options.store.records(&self.inner.id).await?;
        Ok(Trace::new(records))
    }

    /// Waits until few traces are being read, so that many readers do not hold as many traces in memory.
    pub async fn wait_to_read(&self) -> Option<SemaphorePermit<'_>> {
        self.inner.shared.readers.acquire().await.ok()
    }

    /// Returns a watcher for all later signals.
    pub fn watch(&self) -> Watcher {
        Watcher { queue: self.inner.watchers.subscribe(), _handle: self.clone() }
    }

    /// Returns the agent of the conversation.
    pub(super) async fn agent(&self) -> Result<AgentId, HostError> {
        self.ask(|answer| ActorMessage::Agent { answer }).await
    }

    async fn ask<T>(&self, message: impl FnOnce(ReplySender<T>) -> ActorMessage) -> Result<T, HostError> {
        let (answer, answered) = oneshot::channel();
        self.inner.inbox.send(message(answer)).await.map_err(|_| HostError::Closed)?;
        answered.await.map_err(|_| HostError::Closed)?
    }
}

impl Drop for HandleInner {
    fn drop(&mut self) {
        self.shared.detach(&self.id, self.generation);
    }
}

/// Receives all signals since its creation. A slow watcher receives text in larger pieces but loses nothing;
/// its queue never exceeds the size of the conversation.
pub struct Watcher {
    queue: Arc<SignalQueue>,
    // A watched conversation stays loaded.
    _handle: ConversationHandle,
}

impl Watcher {
    /// Returns the next signal, or `None` if the conversation was closed because its store failed.
    pub async fn next(&mut self) -> Option<Signal> {
        self.queue.next().await
    }
}
