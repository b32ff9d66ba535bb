//! Comparisons of expected calls with the most similar calls that were made.

use hotseat_trace::{
    AgentToolCall, CallComparison, ComparisonLine, MissingCall, NearestCall, TurnScope, format_count,
};

use super::call_text::format_call;

/// Maximum number of listed calls.
const MAX_LISTED_CALLS: usize = 50;

/// Similarity of a call to an expected one. More matching arguments count first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Similarity {
    /// Number of expected arguments that match.
    pub matching: usize,
    /// Number of expected arguments that are present.
    pub present: usize,
}

/// Returns the most similar call, and the first one of several.
pub(super) fn nearest_call<'a>(
    calls: impl Iterator<Item = (usize, &'a AgentToolCall)>,
    similarity: impl Fn(&AgentToolCall) -> Similarity,
) -> Option<(usize, &'a AgentToolCall)> {
    let mut nearest: Option<(Similarity, usize, &AgentToolCall)> = None;
    for (turn, call) in calls {
        let similar = similarity(call);
        if nearest.is_none_or(|(best, ..)| similar > best) {
            nearest = Some((similar, turn, call));
        }
    }
    nearest.map(|(_, turn, call)| (turn, call))
}

/// Compares an expected call, of which too few were made, with the calls of its tool. Returns `None` without
/// such calls.
pub(super) fn compare_with_nearest<'a>(
    scope: TurnScope<'a>,
    is_of_tool: impl Fn(&AgentToolCall) -> bool,
    matches: impl Fn(&AgentToolCall) -> bool,
    similarity: impl Fn(&AgentToolCall) -> Similarity,
    differences: impl Fn(usize, &'a AgentToolCall) -> NearestCall,
) -> Option<CallComparison> {
    let made: Vec<(usize, &AgentToolCall)> = scope.calls().filter(|(_, call)| is_of_tool(call)).collect();
    if made.is_empty() {
        return None;
    }
    let others: Vec<(usize, &AgentToolCall)> =
        made.iter().copied().filter(|(_, call)| !matches(call)).collect();
    let summary = format!("{} of {} matching", made.len() - others.len(), format_count(made.len(), "call"));
    let nearest = nearest_call(others.into_iter(), similarity).map(|(turn, call)| differences(turn, call));
    let missing = nearest.map(|nearest| MissingCall { expected: None, nearest: Some(nearest) });
    let (lines, omitted) = list_calls(made.into_iter().map(|(turn, call)| (turn, call, false)));
    Some(CallComparison { summary, missing: missing.into_iter().collect(), lines, omitted })
}

/// Lists calls, and returns the number of those that are left out.
pub(super) fn list_calls<'a>(
    calls: impl Iterator<Item = (usize, &'a AgentToolCall, bool)>,
) -> (Vec<ComparisonLine>, usize) {
    let mut calls = calls;
    let listed = calls.by_ref().take(MAX_LISTED_CALLS);
    let listed = listed
        .map(|(turn, call, unexpected)| ComparisonLine { text: format_call(turn, call), unexpected })
        .collect();
    (listed, calls.count())
}
