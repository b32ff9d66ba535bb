//! Every tool call has exactly one outcome and exactly one move.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    let (tools, moves) = (view.tools(), view.moves().all());
    let (completions, failures, cancellations) =
        (tools.completions(), tools.failures(), view.turns().cancellations());
    for call in tools.invocations() {
        let id = &call.tool_call_id;
        let completed = completions.iter().filter(|end| end.tool_call_id == *id).count();
        let failed = failures.iter().filter(|end| end.tool_call_id == *id).count();
        let cancelled = cancellations.iter().filter(|end| end.operation_id == *id).count();
        let outcomes = completed + failed + cancelled;
        if outcomes != 1 {
            found.add(format!("tool call {id} has {outcomes} outcomes"), [call.sequence]);
        }
        let of_call = moves
            .iter()
            .filter(|entry| entry.tool_call.as_ref().is_some_and(|call| call.tool_call_id == *id));
        let count = of_call.count();
        // The move of a call that the turn waits for is recorded with its result, which a cancelled call never has.
        if count > 1 || (count == 0 && cancelled == 0) {
            found.add(format!("tool call {id} has {count} moves"), [call.sequence]);
        }
    }
}
