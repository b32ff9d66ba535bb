//! Every call of an agent has one outcome, unless its turn ended before it.

use super::{Found, InvariantOptions};
use crate::View;

pub(super) fn check(view: &View<'_>, _options: &InvariantOptions, found: &mut Found) {
    let (completions, failures) = (view.agents().completions(), view.agents().failures());
    for call in view.agents().calls() {
        let id = &call.call_id;
        let completed = completions.iter().filter(|end| end.call_id == *id).count();
        let failed = failures.iter().filter(|end| end.call_id == *id).count();
        let outcomes = completed + failed;
        if outcomes > 1 || (outcomes == 0 && !found.cancelled(view, id)) {
            found.add(format!("agent call {id} has {outcomes} outcomes"), [call.sequence]);
        }
    }
}
