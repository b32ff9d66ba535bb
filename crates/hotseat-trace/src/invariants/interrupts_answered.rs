//! Every interrupt is answered or cancelled exactly once.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let answered = view.interrupts().answered();
    for asked in view.interrupts().raised() {
        let id = &asked.interrupt_id;
        let count = answered.iter().filter(|answer| answer.interrupt_id == *id).count();
        if count != 1 {
            found.add(format!("question {id} was answered {count} times"), [asked.sequence]);
        }
    }
}
