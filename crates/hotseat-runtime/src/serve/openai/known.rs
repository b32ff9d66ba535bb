//! Which conversation a request goes on with: the protocol sends what was said, and no name for it.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::request::Said;
use crate::ids::ConversationId;

/// How many conversations are known; the one that was used least recently is forgotten for a new one.
const MOST: usize = 10_000;

/// What was said so far, as a number that no client can foresee.
type Print = (u64, u64);

/// The conversations that can be gone on with, by what was said in them.
#[derive(Default)]
pub struct Known {
    keys: (RandomState, RandomState),
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    conversations: HashMap<Print, ConversationId>,
    /// The oldest first; some may have been taken since.
    order: VecDeque<Print>,
}

impl Known {
    /// Takes the conversation in which this was said. Nobody else gets it until it is put back.
    pub fn take(&self, said: &[Said]) -> Option<ConversationId> {
        let print = self.print(said);
        self.inner().conversations.remove(&print)
    }

    /// In this conversation, this was said.
    pub fn put(&self, said: &[Said], conversation: ConversationId) {
        let print = self.print(said);
        let mut inner = self.inner();
        inner.conversations.insert(print, conversation);
        inner.order.push_back(print);
        while inner.order.len() > MOST {
            if let Some(oldest) = inner.order.pop_front() {
                inner.conversations.remove(&oldest);
            }
        }
    }

    fn print(&self, said: &[Said]) -> Print {
        (self.keys.0.hash_one(said), self.keys.1.hash_one(said))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
