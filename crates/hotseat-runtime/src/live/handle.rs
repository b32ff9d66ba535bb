//! How somebody outside holds a live conversation.

use std::sync::Arc;

use hotseat_trace::Trace;
use tokio::sync::{mpsc, oneshot};

use super::actor::{Answer, Message};
use super::watch::Watchers;
use super::{HostError, Shared, Watcher};
use crate::conversation::{Input, State};
use crate::ids::{AgentId, ConversationId, TurnId};

/// A live conversation. It stays loaded as long as there is a handle, a watcher, or something it waits for.
#[derive(Clone)]
pub struct Handle {
    held: Arc<Held>,
}

struct Held {
    shared: Arc<Shared>,
    id: ConversationId,
    inbox: mpsc::Sender<Message>,
    watchers: Arc<Watchers>,
    generation: u64,
}

/// What became of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// The turn that it began.
    pub turn: Option<TurnId>,
    /// Why it was ignored, if it was.
    pub ignored: Option<String>,
}

impl Handle {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: ConversationId,
        inbox: mpsc::Sender<Message>,
        watchers: Arc<Watchers>,
        generation: u64,
    ) -> Self {
        Handle { held: Arc::new(Held { shared, id, inbox, watchers, generation }) }
    }

    /// The id of the conversation.
    pub fn id(&self) -> &ConversationId {
        &self.held.id
    }

    /// Lets something happen to the conversation, or to the one opened for one of its calls that an answer is for.
    /// Waits until there is room, and until it is kept.
    ///
    /// # Errors
    /// When the conversation cannot be kept.
    pub async fn send(&self, input: Input) -> Result<Sent, HostError> {
        self.ask(|answer| Message::Send { input: Box::new(input), answer }).await
    }

    /// What is known of the conversation now.
    ///
    /// # Errors
    /// When the conversation cannot be kept.
    pub async fn state(&self) -> Result<State, HostError> {
        self.ask(|answer| Message::State { answer }).await
    }

    /// Everything that happened so far, with the conversations that were opened for its calls.
    ///
    /// # Errors
    /// When the conversation cannot be kept.
    pub async fn trace(&self) -> Result<Trace, HostError> {
        // Whatever was sent before is kept when this is answered.
        self.agent().await?;
        let records = self.held.shared.options.store.records(&self.held.id).await?;
        Ok(Trace::new(records))
    }

    /// Everything from now on.
    pub fn watch(&self) -> Watcher {
        self.held.watchers.watch(self.clone())
    }

    /// The agent that holds the conversation.
    pub(super) async fn agent(&self) -> Result<AgentId, HostError> {
        self.ask(|answer| Message::Agent { answer }).await
    }

    async fn ask<T>(&self, message: impl FnOnce(Answer<T>) -> Message) -> Result<T, HostError> {
        let (answer, answered) = oneshot::channel();
        self.held.inbox.send(message(answer)).await.map_err(|_| HostError::Gone)?;
        answered.await.map_err(|_| HostError::Gone)?
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.detach(&self.id, self.generation);
    }
}
