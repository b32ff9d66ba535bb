//! What was said in a conversation.

use super::view::pick;
use super::{Typed, View};
use crate::{AssistantMessage, Payload, Record, UserMessage};

/// Message events.
#[derive(Debug, Clone)]
pub struct Messages<'a>(pub(super) View<'a>);

/// One message, whoever said it.
#[derive(Debug, Clone, Copy)]
pub enum Said<'a> {
    /// A user, or the agent that called this one.
    User(Typed<'a, UserMessage>),
    /// An agent.
    Assistant(Typed<'a, AssistantMessage>),
}

impl<'a> Said<'a> {
    /// The text.
    pub fn content(&self) -> &'a str {
        match self {
            Said::User(p) => &p.payload.content,
            Said::Assistant(p) => &p.payload.content,
        }
    }

    /// The record.
    pub fn record(&self) -> &'a Record {
        match self {
            Said::User(p) => p.record,
            Said::Assistant(p) => p.record,
        }
    }
}

impl<'a> Messages<'a> {
    /// What users said.
    pub fn user(&self) -> Vec<Typed<'a, UserMessage>> {
        pick!(self.0, UserMessage)
    }

    /// What agents said.
    pub fn assistant(&self) -> Vec<Typed<'a, AssistantMessage>> {
        pick!(self.0, AssistantMessage)
    }

    /// What an agent said that is not the one the conversation is with.
    pub fn by_agent(&self, agent_id: &str) -> Vec<Typed<'a, AssistantMessage>> {
        self.assistant().into_iter().filter(|p| p.subagent.as_deref() == Some(agent_id)).collect()
    }

    /// Everything that was said, in order.
    pub fn all(&self) -> Vec<Said<'a>> {
        let said = |record: &'a Record| {
            let (sequence, offset) = (record.sequence, record.offset);
            match &record.payload {
                Payload::UserMessage(payload) => {
                    Some(Said::User(Typed { sequence, offset, payload, record }))
                }
                Payload::AssistantMessage(payload) => {
                    Some(Said::Assistant(Typed { sequence, offset, payload, record }))
                }
                _ => None,
            }
        };
        self.0.records().filter_map(said).collect()
    }

    /// Everything that was said in one turn, in order.
    pub fn in_turn(&self, turn_id: &str) -> Vec<Said<'a>> {
        let within = |said: &Said<'_>| said.record().payload.turn_id().is_some_and(|id| &**id == turn_id);
        self.all().into_iter().filter(within).collect()
    }
}
