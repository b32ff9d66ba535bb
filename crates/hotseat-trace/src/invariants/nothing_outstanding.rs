//! A completed turn has no running operations.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for end in view.turns().completions() {
        for call in view.tools().for_turn(&end.turn_id) {
            let settled = view.tools().call(&call.tool_call_id).and_then(|run| run.outcome);
            let before = settled.is_some_and(|outcome| match outcome {
                crate::ToolRunOutcome::Completed(p) => p.sequence < end.sequence,
                crate::ToolRunOutcome::Failed(p) => p.sequence < end.sequence,
            });
            if !before {
                let message =
                    format!("turn {} completed while {} was running", end.turn_id, call.tool_call_id);
                found.add(message, [call.sequence, end.sequence]);
            }
        }
    }
}
