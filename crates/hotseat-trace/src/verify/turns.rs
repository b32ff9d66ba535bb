//! The turns match the expectations.

use super::mismatch::{Mismatch, find_difference};
use crate::{ConversationView, TurnStatus};

/// Expectations about turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnsSpec {
    /// Number of turns.
    pub count: Option<usize>,
    /// True if all turns must be completed.
    pub all_completed: bool,
    /// Expected statuses of turns, in order.
    pub statuses: Vec<(String, Vec<TurnStatus>)>,
    /// The first of each pair completed before the second.
    pub completed_before: Vec<(String, String)>,
}

pub(super) fn find(view: &ConversationView<'_>, spec: &TurnsSpec) -> Vec<Mismatch> {
    let turns = view.turns();
    let mut found: Vec<Mismatch> = spec
        .count
        .and_then(|count| find_difference("number of turns", count, turns.starts().len()))
        .into_iter()
        .collect();
    if spec.all_completed {
        for start in turns.starts().iter().filter(|start| turns.completion(&start.turn_id).is_none()) {
            found.push(
                Mismatch::new(format!("turn {} completed", start.turn_id), "it did not complete")
                    .at(start.sequence),
            );
        }
    }
    for (turn, statuses) in &spec.statuses {
        found.extend(find_difference(
            &format!("statuses of turn {turn}"),
            statuses.clone(),
            turns.status_transitions(turn),
        ));
    }
    for (first, second) in &spec.completed_before {
        let (a, b) = (turns.completion(first), turns.completion(second));
        let fits = a.zip(b).is_some_and(|(a, b)| a.sequence < b.sequence);
        if !fits {
            let words =
                |end: Option<u64>| end.map_or("never".to_string(), |sequence| format!("at event {sequence}"));
            let actual = format!("{} and {}", words(a.map(|a| a.sequence)), words(b.map(|b| b.sequence)));
            found.push(Mismatch::new(format!("turn {first} completed before turn {second}"), actual));
        }
    }
    found
}
