//! Every synchronous tool call has a result, unless it was cancelled.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for run in view.tools().calls() {
        let (call, is_open) = (run.invocation, run.outcome.is_none());
        if is_open && !call.r#async && !found.is_cancelled(view, &call.tool_call_id) {
            found.add(format!("synchronous tool call {} has no result", call.tool_call_id), [call.sequence]);
        }
    }
}
