//! Messages from handles to their conversation.

use tokio::sync::oneshot;

use super::error::HostError;
use crate::conversation::{ConversationInput, ConversationState};
use crate::ids::{AgentId, TurnId};

/// Channel for the answer to a message.
pub(super) type ReplySender<T> = oneshot::Sender<Result<T, HostError>>;

/// Message from a handle to its conversation.
pub(super) enum ActorMessage {
    Send {
        input: Box<ConversationInput>,
        answer: ReplySender<SendOutcome>,
    },
    State {
        answer: ReplySender<ConversationState>,
    },
    Agent {
        answer: ReplySender<AgentId>,
    },
    /// The last handle was dropped.
    HandleDropped,
}

/// Result of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SendOutcome {
    /// The turn that it started.
    pub turn: Option<TurnId>,
    /// Reason why it was ignored.
    pub ignored: Option<String>,
}

impl ActorMessage {
    /// Answers with an error.
    pub(super) fn refuse(self, error: HostError) {
        match self {
            ActorMessage::Send { answer, .. } => drop(answer.send(Err(error))),
            ActorMessage::State { answer } => drop(answer.send(Err(error))),
            ActorMessage::Agent { answer } => drop(answer.send(Err(error))),
            ActorMessage::HandleDropped => {}
        }
    }
}
