//! Invariants of calls and questions: each has its outcome, and turns wait for no other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::violation::ViolationCollector;
use crate::{ConversationView, Payload, ToolCallRun, ToolRunOutcome};

/// Every synchronous tool call has a result, unless it was cancelled.
pub(super) fn sync_calls_answered(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for run in view.tools().calls() {
        let (call, is_open) = (run.invocation, run.outcome.is_none());
        if is_open && !call.r#async && !found.is_cancelled(view, &call.tool_call_id) {
            found.add(format!("synchronous tool call {} has no result", call.tool_call_id), [call.sequence]);
        }
    }
}

/// Every tracked asynchronous operation completes, unless it was cancelled.
pub(super) fn async_calls_completed(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for track in view.turns().async_operations(None) {
        let id = &*track.operation_id;
        let completed = view.turns().async_completions(None).iter().any(|end| &*end.operation_id == id);
        if !completed && !found.is_cancelled(view, id) {
            found.add(format!("asynchronous operation {id} never completed"), [track.sequence]);
        }
    }
}

/// Every wait of a turn is followed by one resumption with the same operation id, unless the turn failed.
pub(super) fn waits_resumed(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    for turn in view.turns().ids() {
        let failed = view.turns().failure(turn).is_some();
        for wait in view.turns().waits(turn) {
            let resumes = view.turns().resumes(turn);
            let count = resumes.iter().filter(|resume| resume.operation_id == wait.operation_id).count();
            if count > 1 || (count == 0 && !failed) {
                let message = format!("the wait for {} was resumed {count} times", wait.operation_id);
                found.add(message, [wait.sequence]);
            }
        }
    }
}

/// Every interrupt is answered or cancelled exactly once.
pub(super) fn interrupts_answered(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let answered = view.interrupts().answered();
    for asked in view.interrupts().raised() {
        let id = &asked.interrupt_id;
        let count = answered.iter().filter(|answer| answer.interrupt_id == *id).count();
        if count != 1 {
            found.add(format!("question {id} was answered {count} times"), [asked.sequence]);
        }
    }
}

/// Every tool call has exactly one outcome and exactly one move.
pub(super) fn calls_settled(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let (tools, moves) = (view.tools(), view.moves().all());
    let (completions, failures, cancellations) =
        (tools.completions(), tools.failures(), view.turns().cancellations());
    for call in tools.invocations() {
        let id = &call.tool_call_id;
        let completed = completions.iter().filter(|end| end.tool_call_id == *id).count();
        let failed = failures.iter().filter(|end| end.tool_call_id == *id).count();
        let cancelled = cancellations.iter().filter(|end| end.operation_id == *id).count();
        let outcomes = completed + failed + cancelled;
        if outcomes != 1 {
            found.add(format!("tool call {id} has {outcomes} outcomes"), [call.sequence]);
        }
        let of_call = moves
            .iter()
            .filter(|entry| entry.tool_call.as_ref().is_some_and(|call| call.tool_call_id == *id));
        let count = of_call.count();
        // A synchronous call is recorded as a move together with its result, so a cancelled call may have no
        // move.
        if count > 1 || (count == 0 && cancelled == 0) {
            found.add(format!("tool call {id} has {count} moves"), [call.sequence]);
        }
    }
}

/// Every agent call has exactly one outcome, unless it was cancelled.
pub(super) fn agent_calls_paired(view: &ConversationView<'_>, found: &mut ViolationCollector) {
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

/// Every model call has one outcome, and a turn has at most one open call.
pub(super) fn llm_calls_paired(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let mut open: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for record in view.records() {
        match &record.payload {
            Payload::LlmCallStarted(p) => {
                if let Some(before) = open.insert(p.turn_id.clone(), record.sequence) {
                    found.add(
                        format!("turn {} has two model calls at once", p.turn_id),
                        [before, record.sequence],
                    );
                }
            }
            Payload::LlmCallCompleted(_) | Payload::LlmCallFailed(_) => {
                let turn = record.payload.turn_id();
                if turn.and_then(|turn| open.remove(turn)).is_none() {
                    found.add("a model call has an outcome but no start".to_string(), [record.sequence]);
                }
            }
            // A cancelled turn ends while its model call is running.
            Payload::TurnFailed(p) => drop(open.remove(&p.turn_id)),
            _ => {}
        }
    }
    for (turn, sequence) in open {
        found.add(format!("a model call of turn {turn} has no outcome"), [sequence]);
    }
}

/// Every run of context assembly and memory extraction has one outcome.
pub(super) fn hooks_paired(view: &ConversationView<'_>, found: &mut ViolationCollector) {
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

/// A completed turn has no running operations.
pub(super) fn nothing_outstanding(view: &ConversationView<'_>, found: &mut ViolationCollector) {
    let calls = view.tools().calls();
    for end in view.turns().completions() {
        for ToolCallRun { invocation: call, outcome } in &calls {
            let before = outcome.is_some_and(|outcome| match outcome {
                ToolRunOutcome::Completed(p) => p.sequence < end.sequence,
                ToolRunOutcome::Failed(p) => p.sequence < end.sequence,
            });
            if call.turn_id == end.turn_id && !before {
                let message =
                    format!("turn {} completed while {} was running", end.turn_id, call.tool_call_id);
                found.add(message, [call.sequence, end.sequence]);
            }
        }
    }
}
