//! The ordering rules are satisfied.

use super::{InvariantOptions, ViolationCollector};
use crate::ConversationView;
use crate::order::{RULES, order_violations};

pub(super) fn check(
    view: &ConversationView<'_>,
    _options: &InvariantOptions,
    found: &mut ViolationCollector,
) {
    found.violations.extend(order_violations(view, RULES));
}
