//! No tool failed, where that is demanded.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, options: &InvariantOptions, found: &mut Found) {
    if !options.deny_tool_failures {
        return;
    }
    for failure in view.tools().failures() {
        let message = format!("tool call {} failed: {}", failure.tool_call_id, failure.error.message);
        found.add(message, [failure.sequence]);
    }
}
