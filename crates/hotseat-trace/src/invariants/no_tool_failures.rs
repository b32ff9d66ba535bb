//! No tool failed, if the options require that.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    if !found.options.deny_tool_failures {
        return;
    }
    for failure in view.tools().failures() {
        let message = format!("tool call {} failed: {}", failure.tool_call_id, failure.error.message);
        found.add(message, [failure.sequence]);
    }
}
