//! Every turn that started ends as completed or failed.

use super::violation::ViolationCollector;
use crate::{ConversationView, TurnStatus};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for start in view.turns().starts() {
        let statuses = view.turns().status_transitions(&start.turn_id);
        if !matches!(statuses.last(), Some(TurnStatus::Completed | TurnStatus::Failed)) {
            let chain: Vec<_> = statuses.into_iter().map(TurnStatus::name).collect();
            let chain = chain.join(" → ");
            found.add(
                format!("turn {} did not reach a terminal state: {chain}", start.turn_id),
                [start.sequence],
            );
        }
    }
}
