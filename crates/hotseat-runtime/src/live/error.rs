//! Errors of a host.

use crate::ids::{AgentId, ConversationId};
use crate::store::ConversationStoreError;

/// Error of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The agent does not exist.
    #[error("unknown agent {0}")]
    UnknownAgent(AgentId),
    /// The conversation does not exist.
    #[error("unknown conversation {0}")]
    UnknownConversation(ConversationId),
    /// The conversation belongs to another agent.
    #[error("conversation {conversation} belongs to agent {agent}")]
    OtherAgent {
        /// The conversation.
        conversation: ConversationId,
        /// The agent of the conversation.
        agent: AgentId,
    },
    /// The maximum number of loaded conversations is in use.
    #[error("all {0} conversation slots are in use; try again later")]
    Full(usize),
    /// The store failed. The conversation can be opened again.
    #[error("the conversation cannot be stored: {0}")]
    Store(#[from] ConversationStoreError),
    /// The conversation was closed because its store failed.
    #[error("the conversation was closed")]
    Closed,
}
