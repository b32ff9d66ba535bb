//! Every asynchronous operation that was tracked completes, unless its turn ended before it.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    for track in view.turns().async_operations(None) {
        let id = &*track.operation_id;
        let completed = view.turns().async_completions(None).iter().any(|end| &*end.operation_id == id);
        if !completed && !found.cancelled(view, id) {
            found.add(format!("asynchronous operation {id} never completed"), [track.sequence]);
        }
    }
}
