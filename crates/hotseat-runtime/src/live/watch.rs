//! Watching a conversation without slowing it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hotseat_model::Delta;
use hotseat_trace::Record;
use tokio::sync::Notify;

use super::Handle;
use crate::conversation::ModelAddress;
use crate::ids::ConversationId;

/// How many signals may wait before pieces of text are put together.
const MOST_PIECES: usize = 64;

/// Something to be seen of a live conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// Something was decided and is kept.
    Event(Arc<Record>),
    /// A piece of a model's reply that is on its way. The events that follow hold the whole.
    Delta {
        /// The conversation: the one that is watched, or one that was opened for one of its calls.
        conversation: ConversationId,
        /// The model call.
        at: ModelAddress,
        /// The piece.
        delta: Delta,
    },
}

/// Sees everything that happens from the moment it was made. A watcher that is slow gets text in larger pieces and
/// loses nothing; what waits for it is never more than the conversation holds.
pub struct Watcher {
    queue: Arc<Queue>,
    // A conversation that is watched stays loaded.
    _handle: Handle,
}

impl Watcher {
    /// The next signal; none when the conversation cannot go on, because its store failed.
    pub async fn next(&mut self) -> Option<Signal> {
        loop {
            {
                let mut waiting = self.queue.waiting();
                if let Some(signal) = waiting.signals.pop_front() {
                    return Some(signal);
                }
                if waiting.closed {
                    return None;
                }
            }
            self.queue.news.notified().await;
        }
    }
}

/// All watchers of a conversation.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    queues: Mutex<Vec<Weak<Queue>>>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    signals: VecDeque<Signal>,
    closed: bool,
}

impl Watchers {
    pub(super) fn watch(&self, handle: Handle) -> Watcher {
        let queue = Arc::new(Queue::default());
        self.queues().push(Arc::downgrade(&queue));
        Watcher { queue, _handle: handle }
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

    /// Nothing will be published any more.
    pub(super) fn close(&self) {
        for queue in self.queues().drain(..).filter_map(|queue| queue.upgrade()) {
            queue.waiting().closed = true;
            queue.news.notify_one();
        }
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Weak<Queue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, signal: Signal) {
        let mut waiting = self.waiting();
        if waiting.signals.len() < MOST_PIECES || !waiting.join(&signal) {
            waiting.signals.push_back(signal);
        }
        drop(waiting);
        self.news.notify_one();
    }
}

impl Waiting {
    /// Puts a piece of text behind the one that waits last, if they belong together.
    fn join(&mut self, signal: &Signal) -> bool {
        let (Some(Signal::Delta { at, delta, .. }), Signal::Delta { at: more_at, delta: more, .. }) =
            (self.signals.back_mut(), signal)
        else {
            return false;
        };
        if at != more_at {
            return false;
        }
        match (delta, more) {
            (Delta::Text { text }, Delta::Text { text: more })
            | (Delta::Reasoning { text }, Delta::Reasoning { text: more }) => {
                text.push_str(more);
                true
            }
            (
                Delta::ToolCallArguments { index, text },
                Delta::ToolCallArguments { index: more_index, text: more },
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
        Signal::Delta { conversation: "c1".into(), at, delta: Delta::Text { text: text.to_string() } }
    }

    #[test]
    fn a_watcher_that_never_looks_holds_no_more_than_was_said() {
        let queue = Queue::default();
        for number in 0..10_000 {
            queue.push(piece(&format!("{number} ")));
        }
        let waiting = queue.waiting();
        assert_eq!(waiting.signals.len(), MOST_PIECES);
        let said: String = waiting
            .signals
            .iter()
            .map(|signal| match signal {
                Signal::Delta { delta: Delta::Text { text }, .. } => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(said, (0..10_000).map(|number| format!("{number} ")).collect::<String>());
    }
}
