//! Visits of topics, with their turns.

use std::ops::Range;
use std::sync::Arc;

use crate::{ConversationTurn, TracedConversation};

/// Consecutive turns in one topic. Returning to a topic is another visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// The topic.
    pub topic: Arc<str>,
    /// Number of the visit of this topic, from 1.
    pub number: usize,
    /// Indices of the turns.
    pub turns: Range<usize>,
}

impl Visit {
    /// Returns the visits of the given turns, in order.
    pub fn from_turns(turns: &[ConversationTurn]) -> Vec<Visit> {
        let mut visits: Vec<Visit> = Vec::new();
        for (place, turn) in turns.iter().enumerate() {
            let Some(topic) = &turn.topic else { continue };
            if let Some(last) =
                visits.last_mut().filter(|last| last.topic == *topic && last.turns.end == place)
            {
                last.turns.end += 1;
                continue;
            }
            let number = visits.iter().filter(|visit| visit.topic == *topic).count() + 1;
            visits.push(Visit { topic: topic.clone(), number, turns: place..place + 1 });
        }
        visits
    }

    /// Returns the turn numbers as text: `turn 3`, `turns 1–2`.
    pub fn turns_label(&self) -> String {
        match self.turns.len() {
            1 => format!("turn {}", self.turns.end),
            _ => format!("turns {}–{}", self.turns.start + 1, self.turns.end),
        }
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
