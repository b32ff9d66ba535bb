//! The rules of order hold.

use super::{Found, InvariantOptions};
use crate::View;
use crate::order::{RULES, order_violations};

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    found.all.extend(order_violations(view, RULES));
}
