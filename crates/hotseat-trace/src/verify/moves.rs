//! The moves match the expectations.

use super::mismatch::{Mismatch, find_difference};
use crate::ConversationView;

/// Expectations about moves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovesSpec {
    /// Id of the turn; all turns if None.
    pub for_turn: Option<String>,
    /// Minimum number of moves.
    pub min_count: Option<usize>,
    /// Maximum number of moves.
    pub max_count: Option<usize>,
    /// Exact number of moves.
    pub exact_count: Option<usize>,
    /// Tool that at least one move calls.
    pub has_tool_call: Option<String>,
    /// Success of each move that has a result, in order.
    pub results: Option<Vec<bool>>,
}

pub(super) fn find(view: &ConversationView<'_>, spec: &MovesSpec) -> Vec<Mismatch> {
    let moves = match &spec.for_turn {
        Some(turn) => view.moves().for_turn(turn),
        None => view.moves().all(),
    };
    let (count, mut found) = (moves.len(), Vec::new());
    if let Some(least) = spec.min_count.filter(|least| count < *least) {
        found.push(Mismatch::new(format!("at least {least} moves"), count));
    }
    if let Some(most) = spec.max_count.filter(|most| count > *most) {
        found.push(Mismatch::new(format!("at most {most} moves"), count));
    }
    found.extend(spec.exact_count.and_then(|exact| find_difference("number of moves", exact, count)));
    if let Some(tool) = &spec.has_tool_call {
        let called: Vec<_> = moves
            .iter()
            .filter_map(|entry| entry.tool_call.as_ref().map(|call| call.tool_id.to_string()))
            .collect();
        if !called.contains(tool) {
            found.push(Mismatch::new(format!("a move that calls {tool}"), format!("calls of {called:?}")));
        }
    }
    if let Some(results) = &spec.results {
        let actual =
            moves.iter().filter_map(|entry| entry.tool_result.as_ref().map(|result| result.is_success()));
        found.extend(find_difference("results of moves", results.clone(), actual.collect()));
    }
    found
}
