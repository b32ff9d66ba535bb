//! Decisions that fail a turn.

use super::{ConversationState, Decision, ReplyTo, TurnState};
use crate::failure::{ErrorCode, InfrastructureKind, WorkFailure};
use crate::ids::CallId;

/// Fails a turn: cancels its operations and replies to its caller.
pub(super) fn fail(
    state: &ConversationState,
    turn: &TurnState,
    code: &str,
    failure: &WorkFailure,
) -> Vec<Decision> {
    let message = failure.message();
    let mut decisions = fail_without_reply(state, turn, code, message);
    if let Some(to) = &turn.reply_to {
        let told = || format!("the turn of the agent failed: {message}");
        // Permanent failures stay permanent; otherwise agents that call each other would multiply retries.
        let outcome = Err(match failure {
            WorkFailure::Business { code: ErrorCode::AgentDeclined, .. } => failure.clone(),
            WorkFailure::Business { .. } => WorkFailure::execution(told()),
            WorkFailure::Infrastructure { kind: InfrastructureKind::Timeout, .. } => {
                WorkFailure::infrastructure(InfrastructureKind::Server, told())
            }
            WorkFailure::Infrastructure { kind, .. } => WorkFailure::infrastructure(*kind, told()),
        });
        decisions.push(Decision::ReplyToCaller { turn: turn.id.clone(), to: to.clone(), outcome });
    }
    decisions
}

/// Fails a turn without a reply, for turns whose caller no longer waits.
pub(super) fn fail_without_reply(
    state: &ConversationState,
    turn: &TurnState,
    code: &str,
    message: &str,
) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for operation in turn.open_operations() {
        for called in called_turns(state, &operation.call) {
            decisions.extend(fail_without_reply(
                state,
                called,
                "CANCELLED",
                "the turn that called has ended",
            ));
        }
        let reason = format!("the turn has failed: {code}");
        decisions.push(Decision::CancelOperation {
            turn: turn.id.clone(),
            call: operation.call.clone(),
            reason,
        });
    }
    let (code, message) = (code.to_string(), message.to_string());
    decisions.push(Decision::FailTurn { turn: turn.id.clone(), code, message });
    decisions
}

/// Returns the turns of this conversation that a call started.
pub(super) fn called_turns<'s>(
    state: &'s ConversationState,
    call: &CallId,
) -> impl Iterator<Item = &'s TurnState> {
    let call = call.clone();
    state.active_turns().filter(move |turn| {
        turn.reply_to.as_ref().is_some_and(|to| match to {
            ReplyTo::Call { conversation, at } => *conversation == state.conversation && at.call == call,
            ReplyTo::Run { .. } => false,
        })
    })
}
