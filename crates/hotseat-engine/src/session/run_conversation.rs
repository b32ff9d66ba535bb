//! Runs a conversation from its first input to its verdict.

use hotseat_trace::Verdict;

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
    let mut session = Session::open(case, agent, script, timeouts, partners, recorder);
    let verdict = drive(&mut session, body).await;
    session.into_result(verdict)
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
    let script = ScriptedAnswers::default();
    let mut session = Session::reevaluate(case, kept, script, timeouts, partners, recorder);
    let verdict = drive(&mut session, body).await;
    session.into_result(verdict)
}

/// Runs a session to its end and returns the verdict.
async fn drive(session: &mut Session<'_>, body: Option<&dyn CaseBody>) -> Verdict {
    if session.ensure_open().is_ok() {
        match body {
            Some(body) => {
                let outcome = body.drive(session).await;
                if let Err(failure) = outcome.and_then(|()| session.ensure_all_turns_sent()) {
                    session.fail(failure);
                }
            }
            None => session.run_written_turns().await,
        }
    }
    session.conclude().await
}
