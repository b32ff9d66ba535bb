//! Turns that the program of a case runs by calling an agent directly. They count as turns of the case.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotseat_trace::{ErrorInfo, ExecutionInfo, ExecutionKind, Note, TurnCompletion, TurnFailed};

use crate::session::Session;
use hotseat_targets::message::unique_id;
use hotseat_targets::recorder::TraceRecorder;

/// Direct turns that are not recorded yet. Clones share the same list.
#[derive(Debug, Clone, Default)]
pub struct DirectTurns(Arc<Mutex<PendingDirectTurns>>);

#[derive(Debug, Default)]
struct PendingDirectTurns {
    /// Number of turns of the case, including running ones.
    count: usize,
    turns: Vec<DirectTurn>,
}

/// A turn that the program ran by calling an agent directly.
#[derive(Debug)]
pub struct DirectTurn {
    /// Its id.
    pub turn_id: Arc<str>,
    /// The recorder of its events.
    pub recorder: TraceRecorder,
    /// The history sent to the agent, one line per message.
    pub history: Vec<String>,
    /// The error, if the turn failed.
    pub error: Option<ErrorInfo>,
    /// The agent, if it is not the agent under test; its turn is then not a turn of the case.
    pub other_agent: Option<String>,
}

impl DirectTurns {
    /// Returns the id of a turn that starts now.
    pub fn begin(&self) -> Arc<str> {
        let mut pending = self.lock();
        pending.count += 1;
        format!("turn-{}", pending.count).into()
    }

    /// Adds a completed turn.
    pub fn push(&self, turn: DirectTurn) {
        self.lock().turns.push(turn);
    }

    fn lock(&self) -> MutexGuard<'_, PendingDirectTurns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session<'_> {
    /// Starts collecting direct turns; they follow the existing turns.
    pub fn begin_direct_turns(&self) {
        self.evaluator.roles.direct_turns.lock().count = self.turns().len();
    }

    /// Records the collected direct turns.
    pub fn record_direct_turns(&mut self) {
        let turns = std::mem::take(&mut self.evaluator.roles.direct_turns.lock().turns);
        for DirectTurn { turn_id, mut recorder, history, error, other_agent } in turns {
            let message = |message: String| Note { turn_id: turn_id.clone(), message, event: None };
            history.into_iter().for_each(|line| recorder.emit(message(format!("history: {line}"))));
            match error {
                None => recorder.emit(TurnCompletion { turn_id: turn_id.clone(), issues: None }),
                Some(error) => recorder.emit(TurnFailed { turn_id: turn_id.clone(), error }),
            }
            let within = other_agent.map(|agent| ExecutionInfo {
                id: format!("{agent}-{}", unique_id()).into(),
                kind: ExecutionKind::Conversation,
                parent: None,
            });
            self.recorder.merge(recorder, within.as_ref());
        }
    }
}
