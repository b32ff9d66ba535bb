//! Which rows of the turn table were used.

use crate::conversation::{ApprovalVerdict, HookKind, Input, Millis, Phase, State, TimerKey, TimerKind};

/// The rows of the turn table that an input uses: phase and what happened in it.
pub(super) fn covered(before: &State, input: &Input, now: Millis) -> Vec<(&'static str, &'static str)> {
    let (turn, word) = match input {
        Input::HookDone { at, result } => {
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
        Input::ModelDone { at, result: Ok(reply) } => {
            (Some(&at.turn), if reply.tool_calls.is_empty() { "text reply" } else { "calls" })
        }
        Input::ModelDone { at, result: Err(error) } => {
            (Some(&at.turn), if error.can_retry() { "model infrastructure failure" } else { "model failure" })
        }
        Input::OperationDone { at, .. } => {
            let operation = before.turn(&at.turn).and_then(|turn| turn.operation(&at.call));
            let word = match operation.map(|operation| operation.is_async) {
                Some(true) => "async result",
                Some(false) => "sync result",
                None => "unknown result",
            };
            (Some(&at.turn), word)
        }
        Input::Wake => {
            let due = before.timers.iter().filter(|(_, at)| **at <= now);
            let row = |key: &TimerKey| {
                (before.turn(&key.turn).map_or("none", |turn| phase_word(&turn.phase)), timer_word(key))
            };
            return due.map(|(key, _)| row(key)).collect();
        }
        Input::Approval { at, verdict } => {
            let word = match verdict {
                ApprovalVerdict::Approved { .. } => "approval",
                ApprovalVerdict::Declined { .. } => "refusal",
            };
            (Some(&at.turn), word)
        }
        Input::CancelTurn { turn, .. } => (Some(turn), "cancel"),
        Input::UserMessage { .. } => (None, "user message"),
        Input::AgentCall { .. } => (None, "agent call"),
        Input::Open
        | Input::ClientOffer { .. }
        | Input::RemoveParticipant { .. }
        | Input::DefinitionChanged { .. }
        | Input::Close => return Vec::new(),
    };
    let phase = turn.and_then(|turn| before.turn(turn)).map_or("none", |turn| phase_word(&turn.phase));
    vec![(phase, word)]
}

fn phase_word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Ready => "ready",
        Phase::Assembling { run: Some(_), .. } => "assembling",
        Phase::Assembling { run: None, .. } => "assembly backoff",
        Phase::Assembled { .. } => "assembled",
        Phase::Calling { open: true, .. } => "calling",
        Phase::Calling { open: false, .. } => "call backoff",
        Phase::Waiting { .. } => "waiting",
        Phase::Idle => "idle",
        Phase::Extracting { run: Some(_), .. } => "extracting",
        Phase::Extracting { run: None, .. } => "extraction backoff",
        Phase::Closing => "closing",
        Phase::Ended(_) => "ended",
    }
}

/// The word for a timer in the table of what was covered.
fn timer_word(key: &TimerKey) -> &'static str {
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
