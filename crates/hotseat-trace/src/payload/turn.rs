//! Members of turn and move events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::members::members;
use super::{ErrorInfo, ToolOutcome};
use crate::Spent;

/// What a completed turn has to tell besides that it is complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Issues {
    /// Memory extraction failed for good; what was said stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_extraction_failed: bool,
    /// How many tool calls failed, refused ones included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_failures: u32,
    /// The turn used up its moves and was told to answer without tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub move_limit_reached: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Issues {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Issues::default()
    }
}

/// The call of a move. The two older names are those of the stored move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveCall {
    /// Name of the tool.
    pub tool_id: Arc<str>,
    /// The arguments as the model gave them.
    pub input: Value,
    /// Id of the call.
    pub tool_call_id: Arc<str>,
}

members! {
    turn {
        /// `turn.started`
        TurnStart {
            /// The conversation; for AG-UI its thread id.
            conversation_id: Arc<str>,
            /// Who spoke: the id of a user, a run or an agent.
            caller_id: Arc<str>,
            /// What `caller_id` names: `user`, `workflow` or `agent`.
            caller_type: Arc<str>,
            /// The turn that called, where an agent did.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            caller_turn_id: Option<Arc<str>>,
            /// The agent that answers, where the runtime knows it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            agent_id: Option<Arc<str>>,
        }
        /// `turn.completed`
        TurnCompletion {
            /// What else there is to tell; absent when nothing is.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            issues: Option<Issues>,
        }
        /// `turn.failed`
        TurnFailed {
            /// Why.
            error: ErrorInfo,
        }
        /// `turn.spent`
        TurnSpent {
            /// What it has spent, as the agent or its models say.
            spent: Spent,
        }
        /// `turn.waiting`, `turn.resumed`, `turn.async_tracked`
        TurnOperation {
            /// The operation, which has the id of its tool call.
            operation_id: Arc<str>,
        }
        /// `turn.async_completed`
        AsyncCompleted {
            /// The operation, which has the id of its tool call.
            operation_id: Arc<str>,
            /// What it came to, also when it failed.
            result: ToolOutcome,
        }
        /// `turn.async_cancelled`
        AsyncCancelled {
            /// The operation, which has the id of its tool call.
            operation_id: Arc<str>,
            /// Why it was given up.
            reason: String,
        }
    }
}

/// `move.recorded`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveRecorded {
    /// The turn it belongs to.
    #[serde(rename = "turnId")]
    pub turn_id: Arc<str>,
    /// Id of the move.
    #[serde(rename = "moveId")]
    pub move_id: Arc<str>,
    /// Its place in the turn, from 0.
    pub sequence: u32,
    /// Moves of one model reply share this number, from 0.
    pub iteration: u32,
    /// What the model wrote; only on the first move of a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The call it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<MoveCall>,
    /// What the call came to; for an asynchronous one `move.result_recorded` brings it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<ToolOutcome>,
}

/// `move.result_recorded`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveResult {
    /// The turn it belongs to.
    #[serde(rename = "turnId")]
    pub turn_id: Arc<str>,
    /// The move whose call has answered.
    #[serde(rename = "moveId")]
    pub move_id: Arc<str>,
    /// What the call came to.
    pub tool_result: ToolOutcome,
}

impl super::members::Members for MoveRecorded {
    fn turn_id(&self) -> Option<&Arc<str>> {
        Some(&self.turn_id)
    }

    fn turn_id_mut(&mut self) -> Option<&mut Arc<str>> {
        Some(&mut self.turn_id)
    }
}

impl super::members::Members for MoveResult {
    fn turn_id(&self) -> Option<&Arc<str>> {
        Some(&self.turn_id)
    }

    fn turn_id_mut(&mut self) -> Option<&mut Arc<str>> {
        Some(&mut self.turn_id)
    }
}
