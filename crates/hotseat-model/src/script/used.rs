//! Which rules have answered what.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Position;

/// What a script must remember between requests.
///
/// Conversations do not share it: each has all rules to itself. It can be stored and loaded, so that a
/// conversation goes on after a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// The rules, from 0, that have answered anywhere.
    rules: BTreeSet<usize>,
    conversations: BTreeMap<String, Conversation>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Conversation {
    rules: BTreeSet<usize>,
    /// Which rule answered at which position.
    positions: BTreeMap<String, usize>,
}

impl Used {
    /// Nothing has been used.
    pub fn new() -> Self {
        Used::default()
    }

    /// Forgets a conversation that has ended. Its rules still count as used.
    pub fn forget(&mut self, conversation: &str) {
        self.conversations.remove(conversation);
    }

    /// Whether a rule has answered in any conversation.
    pub(super) fn ever(&self, rule: usize) -> bool {
        self.rules.contains(&rule)
    }

    /// Whether a rule has answered in this conversation.
    pub(super) fn in_conversation(&self, conversation: &str, rule: usize) -> bool {
        self.conversations.get(conversation).is_some_and(|conversation| conversation.rules.contains(&rule))
    }

    /// The rule that answered at this very position before: a call that is made again, for instance after a
    /// restart, gets the same answer.
    pub(super) fn at(&self, position: &Position) -> Option<usize> {
        let key = key(position)?;
        self.conversations.get(&position.conversation)?.positions.get(&key).copied()
    }

    pub(super) fn add(&mut self, position: &Position, rule: usize) {
        self.rules.insert(rule);
        let conversation = self.conversations.entry(position.conversation.clone()).or_default();
        conversation.rules.insert(rule);
        if let Some(key) = key(position) {
            conversation.positions.insert(key, rule);
        }
    }
}

/// A position within its conversation; none if the turn is not known.
fn key(position: &Position) -> Option<String> {
    let Position { conversation: _, agent, turn, call, attempt } = position;
    (*turn > 0).then(|| format!("{turn}.{call}.{attempt} {agent}"))
}
