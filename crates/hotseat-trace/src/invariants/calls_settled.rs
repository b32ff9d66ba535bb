//! Every tool call has exactly one outcome and exactly one move.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
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
        // A synchronous call is recorded as a move together with its result, so a cancelled call may have no
        // move.
        if count > 1 || (count == 0 && cancelled == 0) {
            found.add(format!("tool call {id} has {count} moves"), [call.sequence]);
        }
    }
}
