//! The turns of a conversation.

use serde::{Deserialize, Serialize};

use super::view::pick;
use super::{Typed, View};
use crate::{AsyncCancelled, AsyncCompleted, Payload, TurnCompletion, TurnFailed, TurnOperation, TurnStart};

/// Turn events.
#[derive(Debug, Clone)]
pub struct Turns<'a>(pub(super) View<'a>);

/// What a turn is seen to be from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// It began and has not ended.
    Active,
    /// The agent is done.
    Completed,
    /// It could not be held to its end.
    Failed,
}

impl TurnStatus {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            TurnStatus::Active => "active",
            TurnStatus::Completed => "completed",
            TurnStatus::Failed => "failed",
        }
    }
}

impl<'a> Turns<'a> {
    /// Where turns began.
    pub fn starts(&self) -> Vec<Typed<'a, TurnStart>> {
        pick!(self.0, TurnStarted)
    }

    /// The ids of all turns, in the order in which they began.
    pub fn ids(&self) -> Vec<&'a str> {
        self.starts().iter().map(|start| &*start.payload.turn_id).collect()
    }

    /// Where one turn began.
    pub fn start(&self, turn_id: &str) -> Option<Typed<'a, TurnStart>> {
        self.starts().into_iter().find(|start| &*start.turn_id == turn_id)
    }

    /// Where turns of users began.
    pub fn user_initiated(&self) -> Vec<Typed<'a, TurnStart>> {
        self.starts().into_iter().filter(|start| &*start.caller_type == "user").collect()
    }

    /// Where turns completed.
    pub fn completions(&self) -> Vec<Typed<'a, TurnCompletion>> {
        pick!(self.0, TurnCompleted)
    }

    /// Where turns failed.
    pub fn failures(&self) -> Vec<Typed<'a, TurnFailed>> {
        pick!(self.0, TurnFailed)
    }

    /// Where one turn completed.
    pub fn completion(&self, turn_id: &str) -> Option<Typed<'a, TurnCompletion>> {
        self.completions().into_iter().find(|end| &*end.turn_id == turn_id)
    }

    /// Where one turn failed.
    pub fn failure(&self, turn_id: &str) -> Option<Typed<'a, TurnFailed>> {
        self.failures().into_iter().find(|end| &*end.turn_id == turn_id)
    }

    /// What a turn was, one after the other; nothing for a turn that never began.
    pub fn status_transitions(&self, turn_id: &str) -> Vec<TurnStatus> {
        let status = |payload: &Payload| match payload {
            Payload::TurnStarted(_) => Some(TurnStatus::Active),
            Payload::TurnCompleted(_) => Some(TurnStatus::Completed),
            Payload::TurnFailed(_) => Some(TurnStatus::Failed),
            _ => None,
        };
        self.0.by_turn(turn_id).filter_map(|record| status(&record.payload)).collect()
    }

    /// Where a turn began to wait for a synchronous call.
    pub fn waits(&self, turn_id: &str) -> Vec<Typed<'a, TurnOperation>> {
        of(pick!(self.0, TurnWaiting), turn_id)
    }

    /// Where a turn went on with the result of a synchronous call.
    pub fn resumes(&self, turn_id: &str) -> Vec<Typed<'a, TurnOperation>> {
        of(pick!(self.0, TurnResumed), turn_id)
    }

    /// Where turns began asynchronous calls; of one turn, or of all.
    pub fn async_operations<'t>(&self, turn_id: impl Into<Option<&'t str>>) -> Vec<Typed<'a, TurnOperation>> {
        let turn_id = turn_id.into();
        let all = pick!(self.0, AsyncTracked).into_iter();
        all.filter(|p| turn_id.is_none_or(|id| &*p.turn_id == id)).collect()
    }

    /// Where asynchronous calls ended; of one turn, or of all.
    pub fn async_completions<'t>(
        &self,
        turn_id: impl Into<Option<&'t str>>,
    ) -> Vec<Typed<'a, AsyncCompleted>> {
        let turn_id = turn_id.into();
        let all = pick!(self.0, AsyncCompleted).into_iter();
        all.filter(|p| turn_id.is_none_or(|id| &*p.turn_id == id)).collect()
    }

    /// Where calls were given up because their turn ended.
    pub fn cancellations(&self) -> Vec<Typed<'a, AsyncCancelled>> {
        pick!(self.0, AsyncCancelled)
    }
}

fn of<'a>(all: Vec<Typed<'a, TurnOperation>>, turn_id: &str) -> Vec<Typed<'a, TurnOperation>> {
    all.into_iter().filter(|p| &*p.turn_id == turn_id).collect()
}
