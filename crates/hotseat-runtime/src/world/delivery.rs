//! Deliveries to a world and its requests to the driver.

use std::sync::Arc;

use hotseat_model::ModelRequest;
use hotseat_trace::{EventRecord, TimeOffset};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::{ConversationInput, ConversationOrigin, Millis, ModelAddress, OperationAddress};
use crate::failure::WorkFailure;
use crate::ids::{AgentId, ConversationId, RunId, TokenId};
use crate::memory::{MemoryResult, MemoryUse};
use crate::work::WorkInput;

/// Time of a delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryTime {
    /// Time since the start of the world.
    pub offset: TimeOffset,
    /// Wall-clock time, for display.
    pub timestamp: hotseat_trace::Millis,
}

impl DeliveryTime {
    /// Creates a virtual time, which is identical on both clocks.
    pub fn simulated(now: Millis) -> Self {
        DeliveryTime {
            offset: TimeOffset::from_millis(now),
            timestamp: i64::try_from(now).unwrap_or(i64::MAX),
        }
    }

    /// Returns the time for state machines.
    pub fn now(self) -> Millis {
        self.offset.0 / 1000
    }
}

/// Event that is delivered to a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "members are named as their types")]
pub enum WorldDelivery {
    /// A conversation starts, either independently or for a call of an agent.
    Open { opening: ConversationOrigin, call: Option<ConversationInput> },
    /// An input for a conversation.
    Input { conversation: ConversationId, input: ConversationInput },
    /// A timer of a conversation is due.
    Wake { conversation: ConversationId },
    /// An input for a run of a task or workflow.
    Run { run: RunId, input: WorkInput },
    /// The memory answered the token of a run.
    Remembered { run: RunId, token: TokenId, result: Result<MemoryResult, WorkFailure> },
}

/// Request of a world to its driver.
///
/// `conversation` or `run` makes the request; `at` is the address for the answer.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum DriverRequest {
    /// Deliver an event after so many milliseconds; 0 means before any waiting.
    Deliver { after: Millis, delivery: WorldDelivery },
    /// Call a model; the answer is [`ConversationInput::ModelDone`].
    CallModel {
        conversation: ConversationId,
        at: ModelAddress,
        profile: Arc<str>,
        request: Arc<ModelRequest>,
    },
    /// Cancel a model call.
    CancelModel { at: ModelAddress },
    /// Let the client execute a call; the answer is [`ConversationInput::OperationDone`].
    AskClient { conversation: ConversationId, call: ClientToolCall },
    /// Ask a human to approve a call; the answer is [`ConversationInput::Approval`].
    AskApproval { conversation: ConversationId, question: ApprovalQuestion },
    /// Access the memory of an agent for the token of a run; the answer is [`WorldDelivery::Remembered`].
    Remember { run: RunId, token: TokenId, agent: AgentId, usage: MemoryUse },
}

/// Tool call that the client executes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientToolCall {
    /// Address of the call.
    pub at: OperationAddress,
    /// The tool.
    pub tool: String,
    /// Input of the tool.
    pub input: Value,
}

/// Tool call that a human must approve.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalQuestion {
    /// Address of the call.
    pub at: OperationAddress,
    /// The tool.
    pub tool: String,
    /// Input from the model.
    pub input: Value,
    /// The question.
    pub message: String,
}

/// Result of one delivery.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeliveryOutcome {
    /// Records for the trace, in order.
    pub records: Vec<EventRecord>,
    /// Requests for the driver, in order, to be handled once the records are stored.
    pub requests: Vec<DriverRequest>,
    /// Conversations that the delivery affected.
    pub touched: Vec<ConversationId>,
}
