//! Turn events.

use serde::{Deserialize, Serialize};

use super::view::{pick, picks};
use super::{ConversationView, TypedRecord};
use crate::{AsyncCancelled, AsyncCompleted, Payload, TurnCompletion, TurnFailed, TurnOperation, TurnStart};

/// Turn events.
#[derive(Debug, Clone)]
pub struct TurnEvents<'a>(pub(super) ConversationView<'a>);

named! {
    /// Status of a turn.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TurnStatus {
        /// The turn started and has not ended.
        Active = "active",
        /// The agent completed the turn.
        Completed = "completed",
        /// The turn could not be completed.
        Failed = "failed",
    }
}

impl<'a> TurnEvents<'a> {
    picks! {
        /// Returns the started turns.
        starts: TurnStart = TurnStarted;
        /// Returns the completed turns.
        completions: TurnCompletion = TurnCompleted;
        /// Returns the failed turns.
        failures: TurnFailed = TurnFailed;
        /// Returns the calls that were cancelled because their turn ended.
        cancellations: AsyncCancelled = AsyncCancelled;
    }

    /// Returns the ids of all turns, in start order.
    pub fn ids(&self) -> Vec<&'a str> {
        self.starts().iter().map(|start| &*start.payload.turn_id).collect()
    }

    /// Returns the start of a turn.
    pub fn start(&self, turn_id: &str) -> Option<TypedRecord<'a, TurnStart>> {
        self.starts().into_iter().find(|start| &*start.turn_id == turn_id)
    }

    /// Returns the turns started by users.
    pub fn user_initiated(&self) -> Vec<TypedRecord<'a, TurnStart>> {
        self.starts().into_iter().filter(|start| &*start.caller_type == "user").collect()
    }

    /// Returns the completion of a turn.
    pub fn completion(&self, turn_id: &str) -> Option<TypedRecord<'a, TurnCompletion>> {
        self.completions().into_iter().find(|end| &*end.turn_id == turn_id)
    }

    /// Returns the failure of a turn.
    pub fn failure(&self, turn_id: &str) -> Option<TypedRecord<'a, TurnFailed>> {
        self.failures().into_iter().find(|end| &*end.turn_id == turn_id)
    }

    /// Returns the statuses of a turn in order; empty if it never started.
    pub fn status_transitions(&self, turn_id: &str) -> Vec<TurnStatus> {
        let status = |payload: &Payload| match payload {
            Payload::TurnStarted(_) => Some(TurnStatus::Active),
            Payload::TurnCompleted(_) => Some(TurnStatus::Completed),
            Payload::TurnFailed(_) => Some(TurnStatus::Failed),
            _ => None,
        };
        self.0.by_turn(turn_id).filter_map(|record| status(&record.payload)).collect()
    }

    /// Returns the waits of a turn for synchronous calls.
    pub fn waits(&self, turn_id: &str) -> Vec<TypedRecord<'a, TurnOperation>> {
        for_turn(pick!(self.0, TurnWaiting), turn_id)
    }

    /// Returns the resumptions of a turn after synchronous calls.
    pub fn resumes(&self, turn_id: &str) -> Vec<TypedRecord<'a, TurnOperation>> {
        for_turn(pick!(self.0, TurnResumed), turn_id)
    }

    /// Returns the tracked asynchronous calls, of one turn or of all.
    pub fn async_operations<'t>(
        &self,
        turn_id: impl Into<Option<&'t str>>,
    ) -> Vec<TypedRecord<'a, TurnOperation>> {
        let turn_id = turn_id.into();
        let all = pick!(self.0, AsyncTracked).into_iter();
        all.filter(|p| turn_id.is_none_or(|id| &*p.turn_id == id)).collect()
    }

    /// Returns the completed asynchronous calls, of one turn or of all.
    pub fn async_completions<'t>(
        &self,
        turn_id: impl Into<Option<&'t str>>,
    ) -> Vec<TypedRecord<'a, AsyncCompleted>> {
        let turn_id = turn_id.into();
        let all = pick!(self.0, AsyncCompleted).into_iter();
        all.filter(|p| turn_id.is_none_or(|id| &*p.turn_id == id)).collect()
    }
}

fn for_turn<'a>(
    all: Vec<TypedRecord<'a, TurnOperation>>,
    turn_id: &str,
) -> Vec<TypedRecord<'a, TurnOperation>> {
    all.into_iter().filter(|p| &*p.turn_id == turn_id).collect()
}
