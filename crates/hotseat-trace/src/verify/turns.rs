//! The turns are as described.

use super::{Mismatch, differs};
use crate::{TurnStatus, View};

/// What is expected of turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnsSpec {
    /// So many.
    pub count: Option<usize>,
    /// All of them completed.
    pub all_completed: bool,
    /// Of this turn these statuses, one after the other.
    pub statuses: Vec<(String, Vec<TurnStatus>)>,
    /// The first of each pair completed before the second.
    pub completed_before: Vec<(String, String)>,
}

pub(super) fn find(view: &View<'_>, spec: &TurnsSpec) -> Vec<Mismatch> {
    let turns = view.turns();
    let mut found: Vec<Mismatch> = spec
        .count
        .and_then(|count| differs("number of turns", count, turns.starts().len()))
        .into_iter()
        .collect();
    if spec.all_completed {
        for start in turns.starts().iter().filter(|start| turns.completion(&start.turn_id).is_none()) {
            found.push(
                Mismatch::new(format!("turn {} completed", start.turn_id), "it did not").at(start.sequence),
            );
        }
    }
    for (turn, statuses) in &spec.statuses {
        found.extend(differs(
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
