//! Coverage of the turn state table.

use crate::conversation::{
    ApprovalVerdict, ConversationInput, ConversationState, HookKind, Millis, TimerKey, TimerKind, TurnPhase,
};

/// Adds the rows of the turn state table (phase and event) that an input covers.
pub(super) fn add_covered_rows(
    before: &ConversationState,
    input: &ConversationInput,
    now: Millis,
    rows: &mut Vec<(&'static str, &'static str)>,
) {
    let (turn, word) = match input {
        ConversationInput::HookDone { at, result } => {
            let word = match (at.kind, result) {
                (HookKind::ContextAssembly, Ok(_)) => "assembled",
                (HookKind::ContextAssembly, Err(failure)) if failure.can_retry() => {
                    "assembly infrastructure failure"
                }
                (HookKind::ContextAssembly, Err(_)) => "assembly business failure",
                (HookKind::MemoryExtraction, Ok(_)) => "extracted",
                (HookKind::MemoryExtraction, Err(failure)) if failure.can_retry() => {
                    "extraction infrastructure failure"
                }
                (HookKind::MemoryExtraction, Err(_)) => "extraction business failure",
            };
            (Some(&at.turn), word)
        }
        ConversationInput::ModelDone { at, result: Ok(reply) } => {
            (Some(&at.turn), if reply.tool_calls.is_empty() { "text reply" } else { "calls" })
        }
        ConversationInput::ModelDone { at, result: Err(error) } => {
            (Some(&at.turn), if error.can_retry() { "model infrastructure failure" } else { "model failure" })
        }
        ConversationInput::OperationDone { at, .. } => {
            let operation = before.turn(&at.turn).and_then(|turn| turn.operation(&at.call));
            let word = match operation.map(|operation| operation.is_async) {
                Some(true) => "async result",
                Some(false) => "sync result",
                None => "unknown result",
            };
            (Some(&at.turn), word)
        }
        ConversationInput::Wake => {
            let due = before.timers.iter().filter(|(_, at)| **at <= now);
            let row = |key: &TimerKey| {
                (before.turn(&key.turn).map_or("none", |turn| phase_name(&turn.phase)), timer_name(key))
            };
            rows.extend(due.map(|(key, _)| row(key)));
            return;
        }
        ConversationInput::Approval { at, verdict } => {
            let word = match verdict {
                ApprovalVerdict::Approved { .. } => "approval",
                ApprovalVerdict::Declined { .. } | ApprovalVerdict::Unavailable { .. } => "refusal",
            };
            (Some(&at.turn), word)
        }
        ConversationInput::CancelTurn { turn, .. } => (Some(turn), "cancel"),
        ConversationInput::UserMessage { .. } => (None, "user message"),
        ConversationInput::AgentCall { .. } => (None, "agent call"),
        ConversationInput::Open
        | ConversationInput::ClientOffer { .. }
        | ConversationInput::RemoveParticipant { .. }
        | ConversationInput::DefinitionChanged { .. }
        | ConversationInput::Close => return,
    };
    let phase = turn.and_then(|turn| before.turn(turn)).map_or("none", |turn| phase_name(&turn.phase));
    rows.push((phase, word));
}

fn phase_name(phase: &TurnPhase) -> &'static str {
    match phase {
        TurnPhase::Ready => "ready",
        TurnPhase::Assembling { run: Some(_), .. } => "assembling",
        TurnPhase::Assembling { run: None, .. } => "assembly backoff",
        TurnPhase::Assembled { .. } => "assembled",
        TurnPhase::Calling { open: true, .. } => "calling",
        TurnPhase::Calling { open: false, .. } => "call backoff",
        TurnPhase::Waiting { .. } => "waiting",
        TurnPhase::Idle => "idle",
        TurnPhase::Extracting { run: Some(_), .. } => "extracting",
        TurnPhase::Extracting { run: None, .. } => "extraction backoff",
        TurnPhase::Closing => "closing",
        TurnPhase::Ended(_) => "ended",
    }
}

/// Returns the name of a timer in the coverage table.
fn timer_name(key: &TimerKey) -> &'static str {
    match key.kind {
        TimerKind::ContextRetry => "context retry",
        TimerKind::ContextDeadline => "context deadline",
        TimerKind::ModelRetry => "model retry",
        TimerKind::ModelDeadline => "model deadline",
        TimerKind::ExtractionRetry => "extraction retry",
        TimerKind::ExtractionDeadline => "extraction deadline",
        TimerKind::OperationRetry(_) => "operation retry",
        TimerKind::OperationDeadline(_) => "operation deadline",
    }
}
