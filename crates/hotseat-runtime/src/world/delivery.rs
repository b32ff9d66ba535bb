//! What a world is told, and what it asks for.

use std::sync::Arc;

use hotseat_model::Request;
use hotseat_trace::{Offset, Record};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::{Input, Millis, ModelAddress, Opening, OperationAddress};
use crate::failure::Failure;
use crate::ids::{AgentId, ConversationId, RunId};
use crate::memory::{MemoryUse, Recalled};
use crate::work::{TokenId, WorkInput};

/// When something happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Since the world began.
    pub offset: Offset,
    /// On the wall clock, for people.
    pub timestamp: hotseat_trace::Millis,
}

impl Stamp {
    /// A time of virtual clocks, which is the same on both.
    pub fn simulated(now: Millis) -> Self {
        Stamp { offset: Offset::from_millis(now), timestamp: i64::try_from(now).unwrap_or(i64::MAX) }
    }

    /// The time that machines are given.
    pub fn now(self) -> Millis {
        self.offset.0 / 1000
    }
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delivery {
    /// A conversation begins, by itself or for a call of an agent.
    Open {
        /// How.
        opening: Opening,
        /// The call.
        call: Option<Input>,
    },
    /// Something happened to a conversation.
    Input {
        /// Which.
        conversation: ConversationId,
        /// What.
        input: Input,
    },
    /// The time a conversation wanted to be woken at has come.
    Wake {
        /// Which.
        conversation: ConversationId,
    },
    /// Something happened to a run of a task or workflow.
    Run {
        /// Which.
        run: RunId,
        /// What.
        input: WorkInput,
    },
    /// The memory answered.
    Remembered {
        /// The run that asked.
        run: RunId,
        /// Its token.
        token: TokenId,
        /// What it said.
        result: Result<Recalled, Failure>,
    },
}

/// What a world asks of its driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// To deliver something.
    Deliver {
        /// In so many milliseconds; with 0, before anything else is waited for.
        after: Millis,
        /// What.
        delivery: Delivery,
    },
    /// To ask a model; the answer is [`Input::ModelDone`].
    CallModel {
        /// The conversation that asks.
        conversation: ConversationId,
        /// Where the answer goes.
        at: ModelAddress,
        /// Which model.
        profile: Arc<str>,
        /// What.
        request: Box<Request>,
    },
    /// To stop asking a model.
    CancelModel {
        /// What.
        at: ModelAddress,
    },
    /// To have the client carry out a call; the answer is [`Input::OperationDone`].
    AskClient {
        /// The conversation that asks.
        conversation: ConversationId,
        /// The call.
        call: ClientCall,
    },
    /// To ask a person whether a call may be made; the answer is [`Input::Approval`].
    AskApproval {
        /// The conversation that asks.
        conversation: ConversationId,
        /// The question.
        question: ApprovalQuestion,
    },
    /// To use an agent's memory; the answer is [`Delivery::Remembered`].
    Remember {
        /// The run that asks.
        run: RunId,
        /// Its token.
        token: TokenId,
        /// Whose memory.
        agent: AgentId,
        /// How.
        usage: MemoryUse,
    },
}

/// A call that the client is to carry out.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCall {
    /// Which call.
    pub at: OperationAddress,
    /// The tool.
    pub tool: String,
    /// What it is given.
    pub input: Value,
}

/// A call that a person is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalQuestion {
    /// Which call.
    pub at: OperationAddress,
    /// The tool.
    pub tool: String,
    /// What the model gave.
    pub input: Value,
    /// The question.
    pub message: String,
}

/// What came of one delivery.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// What the trace gets, in order.
    pub records: Vec<Record>,
    /// What the driver is asked once the records are kept, in order.
    pub asks: Vec<Ask>,
    /// The conversations that something happened to.
    pub touched: Vec<ConversationId>,
}
