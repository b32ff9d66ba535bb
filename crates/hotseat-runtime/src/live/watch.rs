//! Watches a conversation without slowing it down.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hotseat_model::ReplyDelta;
use hotseat_trace::EventRecord;
use tokio::sync::Notify;

use crate::conversation::ModelAddress;
use crate::ids::ConversationId;

/// Number of queued signals above which pieces of text are merged.
const MAX_UNMERGED_SIGNALS: usize = 64;

/// Observable signal of a live conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// An event was recorded and stored.
    Event(Arc<EventRecord>),
    /// Piece of a streamed model reply. The events that follow contain the complete reply.
    Delta {
        /// The watched conversation or one that was opened for one of its calls.
        conversation: ConversationId,
        /// The model call.
        at: ModelAddress,
        /// The piece.
        delta: ReplyDelta,
    },
}

/// All watchers of a conversation.
#[derive(Debug, Default)]
pub(super) struct WatcherList {
    queues: Mutex<Vec<Weak<SignalQueue>>>,
}

/// Signals that a watcher has not received yet.
#[derive(Debug, Default)]
pub(super) struct SignalQueue {
    pending: Mutex<PendingSignals>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct PendingSignals {
    signals: VecDeque<Signal>,
    closed: bool,
}

impl WatcherList {
    /// Returns a queue for all later signals.
    pub(super) fn subscribe(&self) -> Arc<SignalQueue> {
        let queue = Arc::new(SignalQueue::default());
        self.queues().push(Arc::downgrade(&queue));
        queue
    }

    pub(super) fn publish(&self, signal: &Signal) {
        self.queues().retain(|queue| match queue.upgrade() {
            Some(queue) => {
                queue.push(signal.clone());
                true
            }
            None => false,
        });
    }

    /// Closes all watchers.
    pub(super) fn close(&self) {
        for queue in self.queues().drain(..).filter_map(|queue| queue.upgrade()) {
            queue.pending().closed = true;
            queue.changed.notify_one();
        }
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Weak<SignalQueue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SignalQueue {
    /// Returns the next signal, or `None` once the conversation is closed.
    pub(super) async fn next(&self) -> Option<Signal> {
        loop {
            {
                let mut waiting = self.pending();
                if let Some(signal) = waiting.signals.pop_front() {
                    return Some(signal);
                }
                if waiting.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    fn pending(&self) -> MutexGuard<'_, PendingSignals> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, signal: Signal) {
        let mut waiting = self.pending();
        if waiting.signals.len() < MAX_UNMERGED_SIGNALS || !waiting.merge(&signal) {
            waiting.signals.push_back(signal);
        }
        drop(waiting);
        self.changed.notify_one();
    }
}

impl PendingSignals {
    /// Appends a piece of text to the last queued signal if they belong together.
    fn merge(&mut self, signal: &Signal) -> bool {
        let (Some(Signal::Delta { at, delta, .. }), Signal::Delta { at: more_at, delta: more, .. }) =
            (self.signals.back_mut(), signal)
        else {
            return false;
        };
        if at != more_at {
            return false;
        }
        match (delta, more) {
            (ReplyDelta::Text { text }, ReplyDelta::Text { text: more })
            | (ReplyDelta::Reasoning { text }, ReplyDelta::Reasoning { text: more }) => {
                text.push_str(more);
                true
            }
            (
                ReplyDelta::ToolCallArguments { index, text },
                ReplyDelta::ToolCallArguments { index: more_index, text: more },
            ) if index == more_index => {
                text.push_str(more);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> Signal {
        let at = ModelAddress { turn: "t1".into(), call: 1, attempt: 1 };
        Signal::Delta { conversation: "c1".into(), at, delta: ReplyDelta::Text { text: text.to_string() } }
    }

    #[test]
    fn an_idle_watcher_merges_pieces_without_loss() {
        let queue = SignalQueue::default();
        for number in 0..10_000 {
            queue.push(piece(&format!("{number} ")));
        }
        let waiting = queue.pending();
        assert_eq!(waiting.signals.len(), MAX_UNMERGED_SIGNALS);
        let said: String = waiting
            .signals
            .iter()
            .map(|signal| match signal {
                Signal::Delta { delta: ReplyDelta::Text { text }, .. } => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(said, (0..10_000).map(|number| format!("{number} ")).collect::<String>());
    }
}
