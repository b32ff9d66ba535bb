//! A conversation from its first input to its verdict.

use super::{Held, Partners, Recorder, Session, Timeouts, TurnScript};
use crate::adapters::AgentSession;
use crate::cases::Case;

/// Holds a whole conversation and decides. `script` holds the answers of client-side tools.
pub async fn hold(
    case: &Case,
    agent: &mut dyn AgentSession,
    script: TurnScript,
    timeouts: Timeouts,
    partners: Partners,
    recorder: Recorder,
) -> Held {
    let mut session = Session::open(case, agent, script, timeouts, partners, recorder);
    if session.goes_on().is_ok() {
        match &case.body {
            Some(body) => {
                if let Err(failure) = body.hold(&mut session).await {
                    session.fail(failure);
                }
            }
            None => session.hold_written().await,
        }
    }
    session.finish().await
}
