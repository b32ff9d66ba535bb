//! What happens in one conversation, as server-sent events that can be taken up again.
//!
//! The id of an event is its number in the trace, so a client that comes back with `Last-Event-ID` is told what it has
//! missed, also after the server was started again. Pieces of replies that are on their way have no id: the message
//! that follows holds the whole.

use std::collections::VecDeque;

use axum::body::Bytes;
use hotseat_model::Delta;
use hotseat_trace::{Payload, Record};
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::talk::broken;
use crate::ids::ConversationId;
use crate::live::{Handle, Signal, Watcher};

/// One client's stream of a conversation.
pub struct ThreadStream {
    conversation: ConversationId,
    /// What is kept and not sent yet.
    kept: VecDeque<Record>,
    /// The number of the last event that was sent or left out.
    seen: u64,
    watcher: Watcher,
}

impl ThreadStream {
    /// The stream of a conversation from the event after `seen` on.
    ///
    /// # Errors
    /// When the conversation cannot be read.
    pub async fn open(handle: &Handle, seen: u64) -> Result<ThreadStream, Refusal> {
        // What happens between these two is there twice, and sent once.
        let watcher = handle.watch();
        let trace = handle.trace().await.map_err(broken)?;
        let kept = trace.all().iter().cloned().collect();
        Ok(ThreadStream { conversation: handle.id().clone(), kept, seen, watcher })
    }

    /// The next event; none when the conversation cannot go on.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(record) = self.kept.pop_front() {
                if let Some(event) = self.event(&record) {
                    return Some(event);
                }
                continue;
            }
            let event = match self.watcher.next().await? {
                Signal::Event(record) => self.event(&record),
                Signal::Delta { conversation, at, delta: Delta::Text { text } }
                    if conversation == self.conversation =>
                {
                    let members = json!({"turnId": at.turn, "callNo": at.call, "text": text});
                    Some(written(None, "message.delta", &members))
                }
                Signal::Delta { .. } => None,
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// An event as it is sent, if the client has not seen it and is to see it.
    fn event(&mut self, record: &Record) -> Option<Bytes> {
        if record.sequence <= self.seen {
            return None;
        }
        self.seen = record.sequence;
        let is_here = record.execution.as_ref().is_some_and(|part| part.id == self.conversation.0);
        if !is_here || !is_told(&record.payload) {
            return None;
        }
        let line = serde_json::to_value(&record.event).ok()?;
        Some(written(Some(record.sequence), record.payload.type_name(), &line))
    }
}

/// Whether clients are told of an event: what was said, called and answered, and how turns go on; not how requests are
/// built and what runs for a call.
fn is_told(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::TurnStarted(_)
            | Payload::UserMessage(_)
            | Payload::AssistantMessage(_)
            | Payload::ToolInvoked(_)
            | Payload::ToolArguments(_)
            | Payload::ToolCompleted(_)
            | Payload::ToolFailed(_)
            | Payload::TurnWaiting(_)
            | Payload::TurnResumed(_)
            | Payload::AsyncTracked(_)
            | Payload::AsyncCompleted(_)
            | Payload::AsyncCancelled(_)
            | Payload::InterruptRaised(_)
            | Payload::InterruptAnswered(_)
            | Payload::StateSnapshot(_)
            | Payload::TurnCompleted(_)
            | Payload::TurnFailed(_)
            | Payload::DefinitionChanged(_)
            | Payload::ConversationClosed(_)
    )
}

fn written(id: Option<u64>, name: &str, data: &Value) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    format!("{id}event: {name}\ndata: {data}\n\n").into()
}
