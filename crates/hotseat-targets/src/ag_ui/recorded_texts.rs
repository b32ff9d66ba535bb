//! Texts of the agent that are in the trace.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hotseat_trace::TimeOffset;

use super::id_map::IdMap;

/// Maximum number of bytes searched in one run for texts repeated as parts of others.
pub(super) const MAX_SEARCHED_BYTES: usize = 64 * 1024 * 1024;

/// Maximum number of bytes of texts in a turn that continue an earlier text of their message, each counted whole: reading them takes
/// the time. Later ones are recorded whole, so that the limits of the turn count them.
pub(super) const MAX_CONTINUED_BYTES: usize = 64 * 1024 * 1024;

/// Recorded texts of the agent, indexed for lookup. A text may be large: the trace and the index share it, and it is hashed only
/// once.
#[derive(Debug, Default)]
pub struct RecordedTexts {
    hasher: RandomState,
    /// All texts, with the first message that has them.
    all: HashMap<TrimmedKey, FirstMessage>,
    by_id: IdMap<MessageTexts>,
}

/// The first message with a text.
#[derive(Debug)]
struct FirstMessage {
    started: TimeOffset,
    /// Its id, if no other message has the text.
    only_id: Option<Arc<str>>,
}

/// Recorded texts of one message.
#[derive(Debug)]
struct MessageTexts {
    started: TimeOffset,
    /// All texts, with the hash of the white space around them.
    keys: HashSet<(TrimmedKey, u64)>,
    /// The texts, without those that the next one continues.
    texts: Vec<Arc<str>>,
}

/// Stands for a text without the white space around it: its hash, with keys that no agent knows, and its length.
type TrimmedKey = (u64, usize);

impl RecordedTexts {
    fn keys(&self, text: &str) -> (TrimmedKey, u64) {
        let trimmed = text.trim();
        let around = (text.len() - text.trim_start().len(), text.len() - text.trim_end().len());
        let around = (&text[..around.0], &text[text.len() - around.1..]);
        ((self.hasher.hash_one(trimmed), trimmed.len()), self.hasher.hash_one(around))
    }

    /// Adds a text of a message. Returns true if it is new.
    pub fn add(&mut self, id: &Arc<str>, text: &Arc<str>, started: TimeOffset) -> bool {
        let keys = self.keys(text);
        let first =
            self.all.entry(keys.0).or_insert_with(|| FirstMessage { started, only_id: Some(id.clone()) });
        first.only_id.take_if(|first| *first != *id);
        let none = || MessageTexts { started, keys: HashSet::new(), texts: Vec::new() };
        let of_message = self.by_id.get_or_insert_with(id, none);
        let is_new = of_message.keys.insert(keys);
        if is_new {
            of_message.texts.pop_if(|last| text.starts_with(&**last));
            of_message.texts.push(text.clone());
        }
        is_new
    }

    /// Returns the start of the message with this id, or of the first one with this text.
    pub fn start_of(&self, id: &str, text: &str) -> Option<TimeOffset> {
        if text.trim().is_empty() {
            return None;
        }
        let of_message = self.by_id.get(id).filter(|_| !id.is_empty());
        of_message
            .map(|known| known.started)
            .or_else(|| self.all.get(&self.keys(text).0).map(|first| first.started))
    }

    /// Returns true if no text is recorded.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the id of the message that a snapshot lists with this id and text: its own, or that of the only message with the text.
    pub fn message_of(&self, id: &str, text: &str) -> Option<Arc<str>> {
        if !id.is_empty() && (text.trim().is_empty() || self.by_id.get(id).is_some()) {
            return Some(id.into());
        }
        self.all.get(&self.keys(text).0)?.only_id.clone()
    }

    /// Returns true if the message with this id has this text.
    pub fn has_text_of(&self, id: &str, text: &str) -> bool {
        self.by_id.get(id).is_some_and(|known| known.keys.contains(&self.keys(text)))
    }

    /// Returns true if any message has this text, or the message with this id contains it. `searched` counts the searched
    /// bytes: beyond the limit a text is not found inside others.
    pub fn contains(&self, id: &str, text: &str, searched: &mut usize) -> bool {
        if self.all.contains_key(&self.keys(text).0) {
            return true;
        }
        let of_message = self.by_id.get(id).filter(|_| !id.is_empty());
        for known in of_message.into_iter().flat_map(|known| &known.texts) {
            if *searched >= MAX_SEARCHED_BYTES {
                break;
            }
            *searched += known.len() + 64;
            if known.contains(text.trim()) {
                return true;
            }
        }
        false
    }
}
