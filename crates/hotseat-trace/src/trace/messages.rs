//! Message events.

use super::view::picks;
use super::{ConversationView, TypedRecord};
use crate::{AssistantMessage, EventRecord, Payload, UserMessage};

/// Message events.
#[derive(Debug, Clone)]
pub struct MessageEvents<'a>(pub(super) ConversationView<'a>);

/// A message of a user or an agent.
#[derive(Debug, Clone, Copy)]
pub enum MessageEvent<'a> {
    /// A message of a user, or of the calling agent.
    User(TypedRecord<'a, UserMessage>),
    /// A message of an agent.
    Assistant(TypedRecord<'a, AssistantMessage>),
}

impl<'a> MessageEvent<'a> {
    /// Returns the text.
    pub fn content(&self) -> &'a str {
        match self {
            MessageEvent::User(p) => &p.payload.content,
            MessageEvent::Assistant(p) => &p.payload.content,
        }
    }

    /// Returns the record.
    pub fn record(&self) -> &'a EventRecord {
        match self {
            MessageEvent::User(p) => p.record,
            MessageEvent::Assistant(p) => p.record,
        }
    }
}

impl<'a> MessageEvents<'a> {
    picks! {
        /// Returns the user messages.
        user: UserMessage = UserMessage;
        /// Returns the agent messages.
        assistant: AssistantMessage = AssistantMessage;
    }

    /// Returns the messages of a sub-agent.
    pub fn by_agent(&self, agent_id: &str) -> Vec<TypedRecord<'a, AssistantMessage>> {
        self.assistant().into_iter().filter(|p| p.subagent.as_deref() == Some(agent_id)).collect()
    }

    /// Returns all messages, in order.
    pub fn all(&self) -> Vec<MessageEvent<'a>> {
        let said = |record: &'a EventRecord| {
            let (sequence, offset) = (record.sequence, record.offset);
            match &record.payload {
                Payload::UserMessage(payload) => {
                    Some(MessageEvent::User(TypedRecord { sequence, offset, payload, record }))
                }
                Payload::AssistantMessage(payload) => {
                    Some(MessageEvent::Assistant(TypedRecord { sequence, offset, payload, record }))
                }
                _ => None,
            }
        };
        self.0.records().filter_map(said).collect()
    }

    /// Returns all messages of a turn, in order.
    pub fn for_turn(&self, turn_id: &str) -> Vec<MessageEvent<'a>> {
        let within =
            |said: &MessageEvent<'_>| said.record().payload.turn_id().is_some_and(|id| &**id == turn_id);
        self.all().into_iter().filter(within).collect()
    }
}
