//! Which topics a conversation has been in, and in which turns.

use std::ops::Range;
use std::sync::Arc;

use crate::{Conversation, Turn};

/// Turns in a row that belong to one topic. Coming back to a topic is another visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// The topic.
    pub topic: Arc<str>,
    /// Which visit of this topic it is, from 1.
    pub number: usize,
    /// Its turns, by their places from 0.
    pub turns: Range<usize>,
}

impl Visit {
    /// The visits that turns amount to, in order. A topic without a turn was not visited.
    pub fn all(turns: &[Turn]) -> Vec<Visit> {
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

    /// The numbers of its turns from 1, in words: `turn 3`, `turns 1–2`.
    pub fn in_words(&self) -> String {
        match self.turns.len() {
            1 => format!("turn {}", self.turns.end),
            _ => format!("turns {}–{}", self.turns.start + 1, self.turns.end),
        }
    }
}

impl Conversation {
    /// The visits of topics so far, in order; none where topics are not followed.
    pub fn topic_visits(&self) -> Vec<Visit> {
        Visit::all(&self.turns)
    }

    /// The topics that were visited, in order: a topic that was come back to stands there again.
    pub fn topic_history(&self) -> Vec<Arc<str>> {
        self.topic_visits().into_iter().map(|visit| visit.topic).collect()
    }

    /// How many turns belong to a topic, all visits together.
    pub fn turns_in_topic(&self, name: &str) -> usize {
        self.turns.iter().filter(|turn| turn.topic.as_deref() == Some(name)).count()
    }
}
