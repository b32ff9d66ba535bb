//! Every agent call has exactly one outcome, unless it was cancelled.

use super::violation::ViolationCollector;
use crate::ConversationView;

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let (completions, failures) = (view.agents().completions(), view.agents().failures());
    for call in view.agents().calls() {
        let id = &call.call_id;
        let completed = completions.iter().filter(|end| end.call_id == *id).count();
        let failed = failures.iter().filter(|end| end.call_id == *id).count();
        let outcomes = completed + failed;
        if outcomes > 1 || (outcomes == 0 && !found.is_cancelled(view, id)) {
            found.add(format!("agent call {id} has {outcomes} outcomes"), [call.sequence]);
        }
    }
}
