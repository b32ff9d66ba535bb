//! Topics that a conversation visited.

use std::sync::Arc;

use crate::{ConversationTurn, TracedConversation, Visit};

impl Visit {
    /// Returns the visits of the given turns, in order.
    pub fn from_turns(turns: &[ConversationTurn]) -> Vec<Visit> {
        Visit::from_topics(turns.iter().map(|turn| turn.topic.as_ref()))
    }
}

impl TracedConversation {
    /// Returns the topic visits so far, in order; empty if topics are not tracked.
    pub fn topic_visits(&self) -> Vec<Visit> {
        Visit::from_turns(&self.turns)
    }

    /// Returns the visited topics in order; a topic that was visited again occurs again.
    pub fn topic_history(&self) -> Vec<Arc<str>> {
        self.topic_visits().into_iter().map(|visit| visit.topic).collect()
    }

    /// Returns the number of turns in a topic, over all visits.
    pub fn turns_in_topic(&self, name: &str) -> usize {
        self.turns.iter().filter(|turn| turn.topic.as_deref() == Some(name)).count()
    }
}
