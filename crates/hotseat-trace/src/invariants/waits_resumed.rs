//! Every wait of a turn is followed by one resumption with the same operation id, unless the turn failed.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for turn in view.turns().ids() {
        let failed = view.turns().failure(turn).is_some();
        for wait in view.turns().waits(turn) {
            let resumes = view.turns().resumes(turn);
            let count = resumes.iter().filter(|resume| resume.operation_id == wait.operation_id).count();
            if count > 1 || (count == 0 && !failed) {
                let message = format!("the wait for {} was resumed {count} times", wait.operation_id);
                found.add(message, [wait.sequence]);
            }
        }
    }
}
