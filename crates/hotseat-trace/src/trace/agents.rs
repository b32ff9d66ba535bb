//! Events of agent calls, participants and conversations.

use super::view::pick;
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
    /// Returns the starts of agent calls.
    pub fn calls(&self) -> Vec<TypedRecord<'a, AgentCallStarted>> {
        pick!(self.0, AgentCallStarted)
    }

    /// Returns the completed agent calls.
    pub fn completions(&self) -> Vec<TypedRecord<'a, AgentCallCompleted>> {
        pick!(self.0, AgentCallCompleted)
    }

    /// Returns the failed agent calls.
    pub fn failures(&self) -> Vec<TypedRecord<'a, AgentCallFailed>> {
        pick!(self.0, AgentCallFailed)
    }

    /// Returns the context passed to the agent of a call.
    pub fn context_for(&self, call_id: &str) -> Option<TypedRecord<'a, AgentCallContext>> {
        pick!(self.0, AgentCallContext).into_iter().find(|p| &*p.call_id == call_id)
    }
}

impl<'a> ParticipantEvents<'a> {
    /// Returns the participants that joined.
    pub fn added(&self) -> Vec<TypedRecord<'a, ParticipantAdded>> {
        pick!(self.0, ParticipantAdded)
    }

    /// Returns the participants that left.
    pub fn removed(&self) -> Vec<TypedRecord<'a, ParticipantRemoved>> {
        pick!(self.0, ParticipantRemoved)
    }
}

impl<'a> ConversationEvents<'a> {
    /// Returns the creation of the conversation.
    pub fn created(&self) -> Vec<TypedRecord<'a, ConversationCreated>> {
        pick!(self.0, ConversationCreated)
    }

    /// Returns the closing of the conversation.
    pub fn closed(&self) -> Vec<TypedRecord<'a, ConversationClosed>> {
        pick!(self.0, ConversationClosed)
    }
}
