//! Events of a conversation as a resumable stream of server-sent events.
//!
//! The id of an event is its number in the trace. A client that reconnects with `Last-Event-ID` receives the
//! events that it missed, even after a restart of the server. Pieces of streamed replies have no id; the
//! message that follows contains the whole text.

use std::collections::VecDeque;

use axum::body::Bytes;
use hotseat_model::ReplyDelta;
use hotseat_trace::{EventRecord, Payload};
use serde_json::{Value, json};

use super::client::{RequestError, host_error};
use crate::ids::ConversationId;
use crate::live::{ConversationHandle, Signal, Watcher};

/// Event stream of a conversation for one client.
pub struct ThreadStream {
    conversation: ConversationId,
    /// Stored events that have not been sent yet.
    stored: VecDeque<Bytes>,
    /// Number of the last event that was sent, skipped or stored.
    seen: u64,
    watcher: Watcher,
}

impl ThreadStream {
    /// Opens the stream of a conversation after event `seen`.
    ///
    /// # Errors
    /// If the conversation cannot be read.
    pub async fn open(handle: &ConversationHandle, seen: u64) -> Result<ThreadStream, RequestError> {
        // Events that occur between these two calls arrive twice and are sent once.
        let watcher = handle.watch();
        let _reader = handle.wait_to_read().await;
        let trace = handle.trace().await.map_err(host_error)?;
        let mut stream =
            ThreadStream { conversation: handle.id().clone(), stored: VecDeque::new(), seen, watcher };
        // A trace is much larger than what clients see of it.
        stream.stored = trace.all().iter().filter_map(|record| stream.event(record)).collect();
        Ok(stream)
    }

    /// Returns the next event, or `None` if the conversation cannot continue.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.stored.pop_front() {
                return Some(event);
            }
            let event = match self.watcher.next().await? {
                Signal::Event(record) => self.event(&record),
                Signal::Delta { conversation, at, delta: ReplyDelta::Text { text } }
                    if conversation == self.conversation =>
                {
                    let members = json!({"turnId": at.turn, "callNo": at.call, "text": text});
                    Some(sse_event(None, "message.delta", &members))
                }
                Signal::Delta { .. } => None,
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// Formats an event, unless the client has seen it or it is not public.
    fn event(&mut self, record: &EventRecord) -> Option<Bytes> {
        if record.sequence <= self.seen {
            return None;
        }
        self.seen = record.sequence;
        let is_here = record.execution.as_ref().is_some_and(|part| part.id == self.conversation.0);
        if !is_here || !is_public(&record.payload) {
            return None;
        }
        let line = serde_json::to_value(&record.event).ok()?;
        Some(sse_event(Some(record.sequence), record.payload.type_name(), &line))
    }
}

/// Returns true if clients see events of this kind: messages, tool calls and the progress of turns, but not
/// how requests are built or executed.
fn is_public(payload: &Payload) -> bool {
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

fn sse_event(id: Option<u64>, name: &str, data: &Value) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    format!("{id}event: {name}\ndata: {data}\n\n").into()
}
