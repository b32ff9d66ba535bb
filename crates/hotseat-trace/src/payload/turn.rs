//! Payloads of turn and move events.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::members::members;
use super::{ErrorInfo, ToolOutcome};
use crate::UsageTotals;

optional_members! {
    /// Problems of a completed turn.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub struct TurnIssues {
        /// Memory extraction failed for good; the turn itself is valid.
        pub memory_extraction_failed?: bool,
        /// Number of failed tool calls, including rejected ones.
        pub tool_failures?: u32,
        /// The turn reached its move limit and was forced to answer without tools.
        pub move_limit_reached?: bool,
    }
}

impl TurnIssues {
    /// Returns true if there are no issues.
    pub fn is_empty(&self) -> bool {
        *self == TurnIssues::default()
    }
}

/// Tool call of a move. Two field names keep the snake case of the stored format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveCall {
    /// Name of the tool.
    pub tool_id: Arc<str>,
    /// Arguments as sent by the model.
    pub input: Value,
    /// Id of the call.
    pub tool_call_id: Arc<str>,
}

members! {
    turn {
        /// `turn.started`
        #[derive(Default)]
        TurnStart {
            /// The conversation; for AG-UI its thread id.
            conversation_id: Arc<str>,
            /// Id of the caller: a user, a run or an agent.
            caller_id: Arc<str>,
            /// Kind of `caller_id`: `user`, `workflow` or `agent`.
            caller_type: Arc<str>,
            /// Calling turn, if the caller is an agent.
            caller_turn_id?: Option<Arc<str>>,
            /// Agent that answers, if the runtime knows it.
            agent_id?: Option<Arc<str>>,
        }
        /// `turn.completed`
        TurnCompletion {
            /// Issues of the turn; absent if there are none.
            issues?: Option<TurnIssues>,
        }
        /// `turn.failed`
        TurnFailed {
            /// Error of the turn.
            error: ErrorInfo,
        }
        /// `turn.spent`
        TurnSpent {
            /// Usage reported by the agent or its models.
            spent: UsageTotals,
        }
        /// `turn.waiting`, `turn.resumed`, `turn.async_tracked`
        TurnOperation {
            /// Operation id, equal to the id of its tool call.
            operation_id: Arc<str>,
        }
        /// `turn.async_completed`
        AsyncCompleted {
            /// Operation id, equal to the id of its tool call.
            operation_id: Arc<str>,
            /// Outcome of the operation, including failures.
            result: ToolOutcome,
        }
        /// `turn.async_cancelled`
        AsyncCancelled {
            /// Operation id, equal to the id of its tool call.
            operation_id: Arc<str>,
            /// Reason for the cancellation.
            reason: String,
        }
        /// `move.recorded`
        MoveRecorded {
            /// Id of the move.
            move_id: Arc<str>,
            /// Number of the move in the turn, from 0.
            sequence: u32,
            /// Moves of one model reply share this number, from 0.
            iteration: u32,
            /// Text of the model; only on the first move of a reply.
            reasoning?: Option<String>,
            /// Tool call of the move.
            #[serde(rename = "tool_call")]
            tool_call?: Option<MoveCall>,
            /// Outcome of the call; for an asynchronous call, `move.result_recorded` follows later.
            #[serde(rename = "tool_result")]
            tool_result?: Option<ToolOutcome>,
        }
        /// `move.result_recorded`
        MoveResult {
            /// Move whose call returned.
            move_id: Arc<str>,
            /// Outcome of the call.
            #[serde(rename = "tool_result")]
            tool_result: ToolOutcome,
        }
    }
}

impl TurnStart {
    /// Creates the start of a turn with an input of a user.
    pub fn by_user(turn_id: Arc<str>, conversation_id: Arc<str>, caller_id: impl Into<Arc<str>>) -> Self {
        let (caller_id, caller_type) = (caller_id.into(), "user".into());
        TurnStart { turn_id, conversation_id, caller_id, caller_type, ..TurnStart::default() }
    }
}
