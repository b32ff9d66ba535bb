//! Runs a conversation from its first input to its verdict.

use super::{
    ConversationResult, RecordedConversation, ScriptedAnswers, Session, SessionRoles, SessionTimeouts,
    TraceRecorder,
};
use crate::cases::TestCase;
use crate::targets::AgentSession;

/// Runs a whole conversation and evaluates it. `script` holds the answers of client-side tools.
pub async fn run_conversation(
    case: &TestCase,
    agent: &mut dyn AgentSession,
    script: ScriptedAnswers,
    timeouts: SessionTimeouts,
    partners: SessionRoles,
    recorder: TraceRecorder,
) -> ConversationResult {
    drive(Session::open(case, agent, script, timeouts, partners, recorder)).await
}

/// Re-evaluates a recorded conversation. The agent is not contacted.
pub async fn reevaluate(
    case: &TestCase,
    kept: &mut RecordedConversation,
    timeouts: SessionTimeouts,
    partners: SessionRoles,
    recorder: TraceRecorder,
) -> ConversationResult {
    drive(Session::reevaluate(case, kept, ScriptedAnswers::default(), timeouts, partners, recorder)).await
}

async fn drive(mut session: Session<'_>) -> ConversationResult {
    let case = session.case;
    if session.ensure_open().is_ok() {
        match &case.body {
            Some(body) => {
                let outcome = body.drive(&mut session).await;
                if let Err(failure) = outcome.and_then(|()| session.ensure_all_turns_sent()) {
                    session.fail(failure);
                }
            }
            None => session.run_written_turns().await,
        }
    }
    session.finish().await
}
