//! Streams of proxied servers that ended before their answers, and that their clients may resume.

use std::sync::Mutex;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::lock;

/// Maximum number of streams of a server that wait for their clients.
const MAX_SUSPENDED: usize = 256;
/// Number of messages that wait for the observer of an exchange.
const MAX_WAITING_MESSAGES: usize = 16;

/// Streams that ended before their answers.
#[derive(Default)]
pub(super) struct SuspendedStreams(Mutex<Vec<SuspendedStream>>);

struct SuspendedStream {
    /// Session of the client.
    session: Option<String>,
    /// Identifier of the request.
    id: Value,
    /// Receives the messages of the resumed stream.
    messages: mpsc::Sender<Vec<u8>>,
}

impl SuspendedStreams {
    /// Adds a stream. Returns the receiver of its further messages, or `None` if too many streams wait.
    pub(super) fn insert(&self, session: Option<String>, id: Value) -> Option<mpsc::Receiver<Vec<u8>>> {
        let mut all = lock(&self.0);
        all.retain(|stream| !stream.messages.is_closed());
        if all.len() >= MAX_SUSPENDED {
            return None;
        }
        let (messages, receiver) = mpsc::channel(MAX_WAITING_MESSAGES);
        all.push(SuspendedStream { session, id, messages });
        Some(receiver)
    }

    /// Returns the stream of a session that a message belongs to: an answer by its identifier, another message if only one waits.
    pub(super) fn receiver_of(
        &self,
        session: Option<&str>,
        answered: Option<&Value>,
    ) -> Option<mpsc::Sender<Vec<u8>>> {
        let all = lock(&self.0);
        let mut meant = all.iter().filter(|stream| {
            stream.session.as_deref() == session
                && !stream.messages.is_closed()
                && answered.is_none_or(|id| stream.id == *id)
        });
        let (first, is_only) = (meant.next()?, meant.next().is_none());
        (is_only || answered.is_some()).then(|| first.messages.clone())
    }

    /// Gives all streams up.
    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }
}
