//! Visits of topics, with their turns.

use std::ops::Range;
use std::sync::Arc;

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
    /// Returns the visits of consecutive turns with these topics, in order.
    pub(crate) fn from_topics<'t>(topics: impl Iterator<Item = Option<&'t Arc<str>>>) -> Vec<Visit> {
        let mut visits: Vec<Visit> = Vec::new();
        for (place, topic) in topics.enumerate() {
            let Some(topic) = topic else { continue };
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
