//! Runs a conversation from its first input to its verdict.

use std::future::Future;

use hotseat_trace::Verdict;

use super::{CaseBody, ConversationResult, RecordedConversation, Session, SessionRoles, SessionTimeouts};
use crate::cases::TestCase;
use hotseat_targets::message::ScriptedAnswers;
use hotseat_targets::recorder::TraceRecorder;

/// Runs a whole conversation and evaluates it. `body` runs it if the turns are not written. Once `cancelled` resolves, the
/// conversation ends at once; the result has what was recorded until then.
pub async fn run_conversation(
    mut session: Session<'_>,
    body: Option<&dyn CaseBody>,
    cancelled: impl Future<Output = ()>,
) -> ConversationResult {
    let verdict = tokio::select! {
        biased;
        () = cancelled => None,
        verdict = drive(&mut session, body) => Some(verdict),
    };
    let verdict = verdict.unwrap_or_else(|| session.cancel());
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
