//! There are no error events, unless failed turns are allowed.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    if found.options.allow_failed_turns {
        return;
    }
    for record in view.errors().all() {
        found.add(format!("there is an error event: {}", record.payload.type_name()), [record.sequence]);
    }
}
