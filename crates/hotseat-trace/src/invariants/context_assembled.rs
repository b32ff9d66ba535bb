//! Context is assembled for every turn.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    for start in view.turns().starts() {
        if view.context_assembly().for_turn(&start.turn_id).is_empty() {
            found.add(format!("no context assembly for turn {}", start.turn_id), [start.sequence]);
        }
    }
}
