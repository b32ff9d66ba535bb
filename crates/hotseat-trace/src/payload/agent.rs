//! Members of events about calls between agents, participants and conversations.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::members::members;
use super::{ErrorInfo, InvocationMode};

/// Who takes part in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Participant {
    /// A person.
    User {
        /// Who.
        user_id: Arc<str>,
    },
    /// An agent.
    Agent {
        /// Which.
        agent_id: Arc<str>,
    },
}

/// The call that a conversation was opened for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentCall {
    /// The conversation that called.
    pub conversation_id: Arc<str>,
    /// The turn that called.
    pub turn_id: Arc<str>,
    /// The call.
    pub call_id: Arc<str>,
}

/// One utterance, as an agent that joins gets to see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Utterance {
    /// `user` or `agent`.
    pub role: Arc<str>,
    /// What was said.
    pub content: String,
    /// The agent that said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Arc<str>>,
}

members! {
    turn {
        /// `agent.call.started`
        AgentCallStarted {
            /// The call, which has the id of its tool call.
            call_id: Arc<str>,
            /// The agent that is called.
            agent_id: Arc<str>,
            /// How it takes part.
            mode: InvocationMode,
        }
        /// `agent.call.completed`
        AgentCallCompleted {
            /// The call.
            call_id: Arc<str>,
            /// What the agent answered.
            output: Value,
        }
        /// `agent.call.failed`
        AgentCallFailed {
            /// The call.
            call_id: Arc<str>,
            /// Why.
            error: ErrorInfo,
        }
        /// `agent.call.context`
        AgentCallContext {
            /// The call.
            call_id: Arc<str>,
            /// How the agent takes part.
            mode: InvocationMode,
            /// What it was asked.
            input: Value,
            /// What was said before; absent for an agent that works apart.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            conversation_history: Option<Vec<Utterance>>,
        }
    }
}

members! {
    free {
        /// `participant.added`
        ParticipantAdded {
            /// The conversation.
            conversation_id: Arc<str>,
            /// Who joined.
            participant: Participant,
            /// The turn that asked for it.
            added_by_turn_id: Arc<str>,
        }
        /// `participant.removed`
        ParticipantRemoved {
            /// The conversation.
            conversation_id: Arc<str>,
            /// Who left.
            participant: Participant,
        }
        /// `conversation.created`
        ConversationCreated {
            /// The conversation.
            conversation_id: Arc<str>,
            /// The agent that answers in it.
            agent_id: Arc<str>,
            /// The call it was opened for.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            parent: Option<ParentCall>,
        }
        /// `agent.definition_changed`
        DefinitionChanged {
            /// The conversation.
            conversation_id: Arc<str>,
            /// The agent whose definition was changed.
            agent_id: Arc<str>,
            /// The number of the first earlier event that the new definition would have led to differently.
            first_difference: u64,
        }
        /// `conversation.closed`
        ConversationClosed {
            /// The conversation.
            conversation_id: Arc<str>,
        }
    }
}
