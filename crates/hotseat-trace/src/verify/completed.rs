//! Every user turn completed.

use super::mismatch::Mismatch;
use crate::{ConversationView, TurnStatus};

pub(super) fn find(view: &ConversationView<'_>) -> Vec<Mismatch> {
    let starts = view.turns().user_initiated();
    if starts.is_empty() {
        return vec![Mismatch::new("completed turns", "no turns")];
    }
    let last = |turn: &str| view.turns().status_transitions(turn).last().copied();
    starts
        .iter()
        .filter(|start| last(&start.turn_id) != Some(TurnStatus::Completed))
        .map(|start| {
            let found = last(&start.turn_id).map_or("no status", TurnStatus::name);
            Mismatch::new(format!("turn {} completed", start.turn_id), found).at(start.sequence)
        })
        .collect()
}
