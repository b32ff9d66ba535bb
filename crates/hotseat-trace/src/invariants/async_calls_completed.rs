//! Every tracked asynchronous operation completes, unless it was cancelled.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for track in view.turns().async_operations(None) {
        let id = &*track.operation_id;
        let completed = view.turns().async_completions(None).iter().any(|end| &*end.operation_id == id);
        if !completed && !found.is_cancelled(view, id) {
            found.add(format!("asynchronous operation {id} never completed"), [track.sequence]);
        }
    }
}
