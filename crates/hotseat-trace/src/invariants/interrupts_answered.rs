//! Every question to a person is answered or taken back, once.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    let answered = view.interrupts().answered();
    for asked in view.interrupts().raised() {
        let id = &asked.interrupt_id;
        let count = answered.iter().filter(|answer| answer.interrupt_id == *id).count();
        if count != 1 {
            found.add(format!("question {id} was answered {count} times"), [asked.sequence]);
        }
    }
}
