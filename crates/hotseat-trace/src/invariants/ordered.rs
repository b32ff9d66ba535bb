//! The ordering rules are satisfied.

use super::order::{RULES, order_violations};
use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    found.violations.extend(order_violations(view, RULES));
}
