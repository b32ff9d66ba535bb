//! The moves are as described.

use super::{Mismatch, differs};
use crate::View;

/// What is expected of moves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovesSpec {
    /// Those of this turn; all if there is none.
    pub for_turn: Option<String>,
    /// At least so many.
    pub min_count: Option<usize>,
    /// At most so many.
    pub max_count: Option<usize>,
    /// Exactly so many.
    pub exact_count: Option<usize>,
    /// One of them calls this tool.
    pub has_tool_call: Option<String>,
    /// Of those that have a result, whether it is a success, in order.
    pub results: Option<Vec<bool>>,
}

pub(super) fn find(view: &View<'_>, spec: &MovesSpec) -> Vec<Mismatch> {
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
    found.extend(spec.exact_count.and_then(|exact| differs("number of moves", exact, count)));
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
            moves.iter().filter_map(|entry| entry.tool_result.as_ref().map(|result| result.success()));
        found.extend(differs("results of moves", results.clone(), actual.collect()));
    }
    found
}
