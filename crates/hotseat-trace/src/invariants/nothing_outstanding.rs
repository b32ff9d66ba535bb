//! A completed turn has no running operations.

use super::violation::ViolationCollector;
use crate::{ConversationView, ToolCallRun, ToolRunOutcome};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let calls = view.tools().calls();
    for end in view.turns().completions() {
        for ToolCallRun { invocation: call, outcome } in &calls {
            let before = outcome.is_some_and(|outcome| match outcome {
                ToolRunOutcome::Completed(p) => p.sequence < end.sequence,
                ToolRunOutcome::Failed(p) => p.sequence < end.sequence,
            });
            if call.turn_id == end.turn_id && !before {
                let message =
                    format!("turn {} completed while {} was running", end.turn_id, call.tool_call_id);
                found.add(message, [call.sequence, end.sequence]);
            }
        }
    }
}
