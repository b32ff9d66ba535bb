//! What can happen to a conversation.

use std::sync::Arc;

use hotseat_model::{ModelError, Reply, Tool};
use hotseat_trace::{ParentCall, Participant};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::ids::{AgentId, CallId, ConversationId, MessageId, RunId, TurnId};
use crate::work::TokenId;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Input {
    /// The conversation begins.
    Open,
    /// A user said something.
    UserMessage {
        /// Who.
        user: Arc<str>,
        /// What.
        content: String,
        /// The earlier message it answers.
        reply_to: Option<MessageId>,
    },
    /// Another agent, or a workflow, asks something of an agent of this conversation.
    AgentCall {
        /// Who asks.
        caller: Caller,
        /// Who is asked.
        agent: AgentId,
        /// What.
        input: Value,
        /// Where the answer goes.
        reply_to: ReplyTo,
        /// How many agents have called each other on the way here.
        depth: u32,
    },
    /// A hook workflow has ended.
    HookDone {
        /// Which.
        at: HookAddress,
        /// What it returned.
        result: Result<Value, Failure>,
    },
    /// A model has replied, or failed to.
    ModelDone {
        /// To what.
        at: ModelAddress,
        /// What.
        result: Result<Reply, ModelError>,
    },
    /// An operation has ended.
    OperationDone {
        /// Which.
        at: OperationAddress,
        /// What it returned.
        result: Result<Value, Failure>,
    },
    /// A client says what it can do and what it knows. It holds until the next offer.
    ClientOffer {
        /// The tools that it carries out.
        tools: Vec<Tool>,
        /// What it knows of its situation.
        context: Vec<ContextEntry>,
        /// The new shared state; it stays as it is if there is none.
        state: Option<Value>,
    },
    /// A person has answered whether a tool may be called.
    Approval {
        /// Which call.
        at: OperationAddress,
        /// What the person said.
        verdict: ApprovalVerdict,
    },
    /// Time has passed.
    Wake,
    /// A turn is no longer wanted.
    CancelTurn {
        /// Which.
        turn: TurnId,
        /// Why.
        reason: String,
    },
    /// Somebody leaves.
    RemoveParticipant {
        /// Who.
        participant: Participant,
    },
    /// The definitions of its agents are others than those that it was held with so far. Turns that wait for nobody
    /// but the client go on under the new ones; others fail.
    DefinitionChanged {
        /// The number of the first record that the new definitions would have led to differently.
        first_difference: u64,
    },
    /// The user ends the conversation.
    Close,
}

/// Something a client knows of its situation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextEntry {
    /// What it is.
    pub description: String,
    /// What it says.
    pub value: String,
}

impl ContextEntry {
    /// How messages that were not said in a conversation are called where its model is told of them.
    pub const EARLIER: &str = "What was said earlier in this conversation, before it came here";
    /// How instructions of a client are called where the model is told of them.
    pub const INSTRUCTIONS: &str = "Instructions of the application that holds this conversation";

    /// What was said before the conversation began here: messages with `role` and `content`.
    pub fn earlier(messages: Vec<Value>) -> ContextEntry {
        let value = Value::Array(messages).to_string();
        ContextEntry { description: Self::EARLIER.to_string(), value }
    }

    /// What the application wants of the agent, beside what the agent's own file says.
    pub fn instructions(value: String) -> ContextEntry {
        ContextEntry { description: Self::INSTRUCTIONS.to_string(), value }
    }
}

/// What a person says to the question whether a tool may be called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// It may.
    Approved {
        /// What it is called with instead of what the model gave.
        input: Option<Value>,
    },
    /// It may not.
    Declined {
        /// Why, for the model; may be empty.
        reason: String,
    },
}

impl ApprovalVerdict {
    /// What a person has answered: `{"approved": true}`, with `editedArgs` if the call is to be made with other
    /// arguments, or `{"approved": false, "reason": "…"}`.
    ///
    /// # Errors
    /// Says what is wrong with another answer.
    pub fn read(answer: &Value) -> Result<ApprovalVerdict, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        struct Written {
            approved: bool,
            #[serde(default)]
            edited_args: Option<Value>,
            #[serde(default)]
            reason: Option<String>,
        }
        let Written { approved, edited_args, reason } = Written::deserialize(answer).map_err(|error| {
            format!(
                "an approval is {{\"approved\": true}}, with `editedArgs` if the call is to be made with other \
                 arguments, or {{\"approved\": false, \"reason\": \"…\"}}: {error}"
            )
        })?;
        Ok(match approved {
            true => ApprovalVerdict::Approved { input: edited_args },
            false => ApprovalVerdict::Declined { reason: reason.unwrap_or_default() },
        })
    }
}

/// How a conversation begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// Its id.
    pub conversation: ConversationId,
    /// The agent that answers in it.
    pub agent: AgentId,
    /// The call it is opened for.
    pub parent: Option<ParentCall>,
}

/// Who started a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Caller {
    /// A person.
    User {
        /// Who.
        user_id: Arc<str>,
    },
    /// A workflow.
    Workflow {
        /// Which run.
        run_id: RunId,
    },
    /// Another agent.
    Agent {
        /// Which.
        agent_id: AgentId,
        /// In which of its turns.
        turn_id: TurnId,
    },
}

/// Where the answer of a turn goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyTo {
    /// To a call of an agent.
    Call {
        /// The conversation that waits.
        conversation: ConversationId,
        /// What in it waits.
        at: OperationAddress,
    },
    /// To a task or workflow.
    Run {
        /// The run that waits.
        run: RunId,
        /// Its token.
        token: TokenId,
    },
}

/// One attempt at a hook workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HookAddress {
    /// The turn it is for.
    pub turn: TurnId,
    /// Which hook.
    pub kind: HookKind,
    /// This run.
    pub run: RunId,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// The two hooks of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Before a model call.
    ContextAssembly,
    /// At the end.
    MemoryExtraction,
}

/// One attempt at a model call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ModelAddress {
    /// The turn it is for.
    pub turn: TurnId,
    /// The call within the turn, from 1.
    pub call: u32,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// One attempt at an operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperationAddress {
    /// The turn it is for.
    pub turn: TurnId,
    /// The tool call that started it.
    pub call: CallId,
    /// The attempt, from 1.
    pub attempt: u32,
}
