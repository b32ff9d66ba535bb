//! Memory of the rules that have answered.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::CallPosition;

/// The state of a script between requests.
///
/// Each conversation has its own state. It can be stored and loaded, so that a conversation continues after a
/// restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptMemory {
    /// Indices of the rules that have answered in any conversation.
    rules: BTreeSet<usize>,
    conversations: BTreeMap<String, ConversationMemory>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ConversationMemory {
    rules: BTreeSet<usize>,
    /// Rule that answered at each position.
    positions: BTreeMap<String, usize>,
}

impl ScriptMemory {
    /// Creates an empty memory.
    pub fn new() -> Self {
        ScriptMemory::default()
    }

    /// Returns true if a rule has answered in any conversation.
    pub(super) fn was_used(&self, rule: usize) -> bool {
        self.rules.contains(&rule)
    }

    /// Returns true if a rule has answered in this conversation.
    pub(super) fn was_used_in(&self, conversation: &str, rule: usize) -> bool {
        self.conversations.get(conversation).is_some_and(|conversation| conversation.rules.contains(&rule))
    }

    /// Returns the rule that answered at this position before: a repeated call, for instance after a restart,
    /// gets the same answer.
    pub(super) fn rule_at(&self, position: &CallPosition) -> Option<usize> {
        let conversation = self.conversations.get(&position.conversation)?;
        conversation.positions.get(&position_key(position)?).copied()
    }

    pub(super) fn record(&mut self, position: &CallPosition, rule: usize) {
        self.rules.insert(rule);
        let conversation = self.conversations.entry(position.conversation.clone()).or_default();
        conversation.rules.insert(rule);
        if let Some(key) = position_key(position) {
            conversation.positions.insert(key, rule);
        }
    }
}

/// Returns the key of a position within its conversation. None if the turn is unknown.
fn position_key(position: &CallPosition) -> Option<String> {
    let CallPosition { conversation: _, agent, turn, call, attempt } = position;
    (*turn > 0).then(|| format!("{turn}.{call}.{attempt} {agent}"))
}
