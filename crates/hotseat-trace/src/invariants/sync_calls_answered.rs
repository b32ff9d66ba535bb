//! Every synchronous tool call has a result, unless it was cancelled.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for call in view.tools().synchronous() {
        let run = view.tools().call(&call.tool_call_id);
        let is_open = run.is_none_or(|run| run.outcome.is_none());
        if is_open && !found.is_cancelled(view, &call.tool_call_id) {
            found.add(format!("synchronous tool call {} has no result", call.tool_call_id), [call.sequence]);
        }
    }
}
