//! A conversation from its first input to its verdict.

use super::{Held, Kept, Partners, Recorder, Session, Timeouts, TurnScript};
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
    drive(Session::open(case, agent, script, timeouts, partners, recorder)).await
}

/// Decides a conversation again that was held before. Nobody is spoken to.
pub async fn decide_again(
    case: &Case,
    kept: &mut Kept,
    timeouts: Timeouts,
    partners: Partners,
    recorder: Recorder,
) -> Held {
    drive(Session::again(case, kept, TurnScript::default(), timeouts, partners, recorder)).await
}

async fn drive(mut session: Session<'_>) -> Held {
    let case = session.case;
    if session.goes_on().is_ok() {
        match &case.body {
            Some(body) => {
                let held = body.hold(&mut session).await;
                if let Err(failure) = held.and_then(|()| session.has_said_all()) {
                    session.fail(failure);
                }
            }
            None => session.hold_written().await,
        }
    }
    session.finish().await
}
