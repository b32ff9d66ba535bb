//! Every synchronous tool call has a result, unless its turn ended before it.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    for call in view.tools().synchronous() {
        if !found.answered(view, &call.tool_call_id) && !found.cancelled(view, &call.tool_call_id) {
            found.add(format!("synchronous tool call {} has no result", call.tool_call_id), [call.sequence]);
        }
    }
}
