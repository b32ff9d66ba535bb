//! Turns that the program of a case holds beside its session, by calling an agent itself. They are turns of the case all
//! the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotseat_trace::{ErrorInfo, Execution, ExecutionKind, Note, TurnCompleted, TurnFailed};

use super::{Recorder, Session};

/// The turns that a program has held beside its session and that are not recorded yet. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct OverheardTurns(Arc<Mutex<Pending>>);

#[derive(Debug, Default)]
struct Pending {
    /// How many turns the case has, with those that are held at the moment.
    count: usize,
    turns: Vec<OverheardTurn>,
}

/// A turn that was held beside the session.
#[derive(Debug)]
pub struct OverheardTurn {
    /// Its id.
    pub turn_id: Arc<str>,
    /// What happened in it.
    pub recorder: Recorder,
    /// What the agent was told that was said before, a line a message.
    pub history: Vec<String>,
    /// How it failed, if it did.
    pub error: Option<ErrorInfo>,
    /// The agent, where it is not the one that the case tests: then its turn is none of the case.
    pub other_agent: Option<String>,
}

impl OverheardTurns {
    /// The id of a turn that begins now.
    pub fn begin(&self) -> Arc<str> {
        let mut pending = self.lock();
        pending.count += 1;
        format!("turn-{}", pending.count).into()
    }

    /// A turn has ended.
    pub fn push(&self, turn: OverheardTurn) {
        self.lock().turns.push(turn);
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session<'_> {
    /// The program is about to do something by itself: the turns that it holds stand behind those that there are.
    pub fn begin_overhearing(&self) {
        self.deciding.partners.overheard.lock().count = self.turns().len();
    }

    /// Records the turns that the program has held by itself.
    pub fn record_overheard(&mut self) {
        let turns = std::mem::take(&mut self.deciding.partners.overheard.lock().turns);
        for OverheardTurn { turn_id, mut recorder, history, error, other_agent } in turns {
            let message = |message: String| Note { turn_id: turn_id.clone(), message, event: None };
            history.into_iter().for_each(|line| recorder.emit(message(format!("said before: {line}"))));
            match error {
                None => recorder.emit(TurnCompleted { turn_id: turn_id.clone() }),
                Some(error) => recorder.emit(TurnFailed { turn_id: turn_id.clone(), error }),
            }
            let within = other_agent.map(|agent| Execution {
                id: format!("{agent}-{}", uuid::Uuid::new_v4()).into(),
                kind: ExecutionKind::Conversation,
                parent: None,
            });
            self.recorder.emit_beside(recorder, within.as_ref());
        }
    }
}
