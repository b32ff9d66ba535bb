//! Events of agent calls, participants and conversations.

use super::view::{pick, picks};
use super::{ConversationView, TypedRecord};
use crate::{
    AgentCallCompleted, AgentCallContext, AgentCallFailed, AgentCallStarted, ConversationClosed,
    ConversationCreated, ParticipantAdded, ParticipantRemoved,
};

/// Events of agent calls.
#[derive(Debug, Clone)]
pub struct AgentCallEvents<'a>(pub(super) ConversationView<'a>);

/// Participant events.
#[derive(Debug, Clone)]
pub struct ParticipantEvents<'a>(pub(super) ConversationView<'a>);

/// Conversation events.
#[derive(Debug, Clone)]
pub struct ConversationEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> AgentCallEvents<'a> {
    picks! {
        /// Returns the starts of agent calls.
        calls: AgentCallStarted = AgentCallStarted;
        /// Returns the completed agent calls.
        completions: AgentCallCompleted = AgentCallCompleted;
        /// Returns the failed agent calls.
        failures: AgentCallFailed = AgentCallFailed;
    }

    /// Returns the context passed to the agent of a call.
    pub fn context_for(&self, call_id: &str) -> Option<TypedRecord<'a, AgentCallContext>> {
        pick!(self.0, AgentCallContext).into_iter().find(|p| &*p.call_id == call_id)
    }
}

impl<'a> ParticipantEvents<'a> {
    picks! {
        /// Returns the participants that joined.
        added: ParticipantAdded = ParticipantAdded;
        /// Returns the participants that left.
        removed: ParticipantRemoved = ParticipantRemoved;
    }
}

impl<'a> ConversationEvents<'a> {
    picks! {
        /// Returns the creation of the conversation.
        created: ConversationCreated = ConversationCreated;
        /// Returns the closing of the conversation.
        closed: ConversationClosed = ConversationClosed;
    }
}
