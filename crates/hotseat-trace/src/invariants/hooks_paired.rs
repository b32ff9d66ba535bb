//! Every run of context assembly and memory extraction has one outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::violation::ViolationCollector;
use crate::{ConversationView, Payload};

pub(super) fn check(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut open: BTreeMap<Arc<str>, (Arc<str>, u64)> = BTreeMap::new();
    for record in view.records() {
        let run = match &record.payload {
            Payload::ContextAssemblyStarted(p) | Payload::MemoryExtractionStarted(p) => {
                open.insert(p.run_id.clone(), (p.turn_id.clone(), record.sequence));
                continue;
            }
            // A cancelled turn ends while its hook workflow is running.
            Payload::TurnFailed(p) => {
                open.retain(|_, (turn, _)| *turn != p.turn_id);
                continue;
            }
            Payload::ContextAssemblyCompleted(p) => &p.run_id,
            Payload::MemoryExtractionCompleted(p) => &p.run_id,
            Payload::ContextAssemblyFailed(p) | Payload::MemoryExtractionFailed(p) => &p.run_id,
            _ => continue,
        };
        if open.remove(run).is_none() {
            found.add(format!("run {run} ended without having started"), [record.sequence]);
        }
    }
    for (run, (_, sequence)) in open {
        found.add(format!("run {run} has no outcome"), [sequence]);
    }
}
