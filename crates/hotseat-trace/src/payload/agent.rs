//! Payloads of events about agent calls, participants and conversations.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::members::members;
use super::{ErrorInfo, InvocationMode};

/// A participant of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Participant {
    /// A human.
    User {
        /// Id of the user.
        user_id: Arc<str>,
    },
    /// An agent.
    Agent {
        /// Id of the agent.
        agent_id: Arc<str>,
    },
}

/// The call that a conversation was opened for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentCall {
    /// Conversation of the call.
    pub conversation_id: Arc<str>,
    /// Turn of the call.
    pub turn_id: Arc<str>,
    /// Id of the call.
    pub call_id: Arc<str>,
}

/// One utterance of the history passed to an agent that joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Utterance {
    /// `user` or `agent`.
    pub role: Arc<str>,
    /// Text of the utterance.
    pub content: String,
    /// Agent that produced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Arc<str>>,
}

members! {
    turn {
        /// `agent.call.started`
        AgentCallStarted {
            /// Call id, equal to the id of its tool call.
            call_id: Arc<str>,
            /// Called agent.
            agent_id: Arc<str>,
            /// How the agent participates.
            mode: InvocationMode,
        }
        /// `agent.call.completed`
        AgentCallCompleted {
            /// The call.
            call_id: Arc<str>,
            /// Answer of the agent.
            output: Value,
        }
        /// `agent.call.failed`
        AgentCallFailed {
            /// The call.
            call_id: Arc<str>,
            /// Error of the call.
            error: ErrorInfo,
        }
        /// `agent.call.context`
        AgentCallContext {
            /// The call.
            call_id: Arc<str>,
            /// How the agent participates.
            mode: InvocationMode,
            /// Input of the call.
            input: Value,
            /// Earlier utterances. Absent for an agent in a conversation of its own.
            conversation_history?: Option<Vec<Utterance>>,
        }
    }
}

members! {
    free {
        /// `participant.added`
        ParticipantAdded {
            /// The conversation.
            conversation_id: Arc<str>,
            /// The new participant.
            participant: Participant,
            /// Turn that added the participant.
            added_by_turn_id: Arc<str>,
        }
        /// `participant.removed`
        ParticipantRemoved {
            /// The conversation.
            conversation_id: Arc<str>,
            /// The removed participant.
            participant: Participant,
        }
        /// `conversation.created`
        ConversationCreated {
            /// The conversation.
            conversation_id: Arc<str>,
            /// Agent that answers in the conversation.
            agent_id: Arc<str>,
            /// Call that opened the conversation.
            parent?: Option<ParentCall>,
        }
        /// `agent.definition_changed`
        DefinitionChanged {
            /// The conversation.
            conversation_id: Arc<str>,
            /// Agent whose definition changed.
            agent_id: Arc<str>,
            /// Number of the first earlier event that would differ under the new definition.
            first_difference: u64,
        }
        /// `conversation.closed`
        ConversationClosed {
            /// The conversation.
            conversation_id: Arc<str>,
        }
    }
}
