//! There are no error events, unless failed turns are allowed.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, options: &InvariantOptions, found: &mut Found) {
    if options.allow_failed_turns {
        return;
    }
    for record in view.errors().all() {
        found.add(format!("there is an error event: {}", record.payload.type_name()), [record.sequence]);
    }
}
