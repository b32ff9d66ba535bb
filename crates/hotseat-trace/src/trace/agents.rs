//! Calls of other agents, participants and conversations.

use super::view::pick;
use super::{Typed, View};
use crate::{
    AgentCallCompleted, AgentCallContext, AgentCallFailed, AgentCallStarted, ConversationClosed,
    ConversationCreated, ParticipantAdded, ParticipantRemoved,
};

/// Events of calls between agents.
#[derive(Debug, Clone)]
pub struct Agents<'a>(pub(super) View<'a>);

/// Participant events.
#[derive(Debug, Clone)]
pub struct Participants<'a>(pub(super) View<'a>);

/// Conversation events.
#[derive(Debug, Clone)]
pub struct Conversations<'a>(pub(super) View<'a>);

impl<'a> Agents<'a> {
    /// Where agents were called.
    pub fn calls(&self) -> Vec<Typed<'a, AgentCallStarted>> {
        pick!(self.0, AgentCallStarted)
    }

    /// Where they answered.
    pub fn completions(&self) -> Vec<Typed<'a, AgentCallCompleted>> {
        pick!(self.0, AgentCallCompleted)
    }

    /// Where they failed.
    pub fn failures(&self) -> Vec<Typed<'a, AgentCallFailed>> {
        pick!(self.0, AgentCallFailed)
    }

    /// What the called agent got to see.
    pub fn context_for(&self, call_id: &str) -> Option<Typed<'a, AgentCallContext>> {
        pick!(self.0, AgentCallContext).into_iter().find(|p| &*p.call_id == call_id)
    }
}

impl<'a> Participants<'a> {
    /// Who joined.
    pub fn added(&self) -> Vec<Typed<'a, ParticipantAdded>> {
        pick!(self.0, ParticipantAdded)
    }

    /// Who left.
    pub fn removed(&self) -> Vec<Typed<'a, ParticipantRemoved>> {
        pick!(self.0, ParticipantRemoved)
    }
}

impl<'a> Conversations<'a> {
    /// Where the conversation was opened.
    pub fn created(&self) -> Vec<Typed<'a, ConversationCreated>> {
        pick!(self.0, ConversationCreated)
    }

    /// Where it was closed.
    pub fn closed(&self) -> Vec<Typed<'a, ConversationClosed>> {
        pick!(self.0, ConversationClosed)
    }
}
