//! Runs a conversation from its first input to its verdict.

use super::{CaseBody, ConversationResult, RecordedConversation, Session, SessionRoles, SessionTimeouts};
use crate::cases::TestCase;
use hotseat_targets::AgentSession;
use hotseat_targets::message::ScriptedAnswers;
use hotseat_targets::recorder::TraceRecorder;

/// Runs a whole conversation and evaluates it. `body` runs it if the turns are not written; `script` holds the
/// answers of client-side tools.
pub async fn run_conversation(
    case: &TestCase,
    body: Option<&dyn CaseBody>,
    agent: &mut dyn AgentSession,
    script: ScriptedAnswers,
    timeouts: SessionTimeouts,
    partners: SessionRoles,
    recorder: TraceRecorder,
) -> ConversationResult {
    drive(Session::open(case, agent, script, timeouts, partners, recorder), body).await
}

/// Re-evaluates a recorded conversation. The agent is not contacted.
pub async fn reevaluate(
    case: &TestCase,
    body: Option<&dyn CaseBody>,
    kept: &mut RecordedConversation,
    timeouts: SessionTimeouts,
    partners: SessionRoles,
    recorder: TraceRecorder,
) -> ConversationResult {
    let session = Session::reevaluate(case, kept, ScriptedAnswers::default(), timeouts, partners, recorder);
    drive(session, body).await
}

async fn drive(mut session: Session<'_>, body: Option<&dyn CaseBody>) -> ConversationResult {
    if session.ensure_open().is_ok() {
        match body {
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
