//! Every turn of a user completed.

use super::Mismatch;
use crate::{TurnStatus, View};

pub(super) fn find(view: &View<'_>) -> Vec<Mismatch> {
    let starts = view.turns().user_initiated();
    if starts.is_empty() {
        return vec![Mismatch::new("turns that completed", "no turn")];
    }
    let last = |turn: &str| view.turns().status_transitions(turn).last().copied();
    starts
        .iter()
        .filter(|start| last(&start.turn_id) != Some(TurnStatus::Completed))
        .map(|start| {
            let found = last(&start.turn_id).map_or("nothing", TurnStatus::name);
            Mismatch::new(format!("turn {} completed", start.turn_id), found).at(start.sequence)
        })
        .collect()
}
