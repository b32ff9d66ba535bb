//! Inputs of a conversation.

use std::sync::Arc;

use hotseat_model::{ModelError, ModelReply, ModelTool};
use hotseat_trace::{ParentCall, Participant};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::WorkResult;
use crate::ids::{AgentId, CallId, ConversationId, MessageId, RunId, TokenId, TurnId};

/// Input of a conversation.
///
/// `at` is the address that the effect of the same work has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum ConversationInput {
    /// The conversation starts.
    Open,
    /// A user sent a message, which may answer an earlier one. `client_id` is the id that the client gave it.
    UserMessage {
        user: Arc<str>,
        content: String,
        reply_to: Option<MessageId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<Arc<str>>,
    },
    /// An agent or a workflow calls an agent of this conversation. `depth` is the number of nested calls of agents that lead
    /// to this one.
    AgentCall { caller: TurnCaller, agent: AgentId, input: Value, reply_to: ReplyTo, depth: u32 },
    /// A hook workflow ended.
    HookDone { at: HookAddress, result: WorkResult },
    /// A model call ended.
    ModelDone { at: ModelAddress, result: Result<ModelReply, ModelError> },
    /// An operation ended.
    OperationDone { at: OperationAddress, result: WorkResult },
    /// A client offers tools, which it executes, and context, valid until its next offer. Without `state` the shared state stays.
    ClientOffer { tools: Vec<ModelTool>, context: Vec<ContextEntry>, state: Option<Value> },
    /// A human answered an approval.
    Approval { at: OperationAddress, verdict: ApprovalVerdict },
    /// A timer is due.
    Wake,
    /// A turn is cancelled, with a reason for the trace.
    CancelTurn { turn: TurnId, reason: String },
    /// A participant leaves.
    RemoveParticipant { participant: Participant },
    /// The definitions of the agents have changed: the record `first_difference` is the first that differs under the new ones.
    /// Turns that wait only for the client continue under the new ones; others fail.
    DefinitionChanged { first_difference: u64 },
    /// The user closes the conversation.
    Close,
}

/// Piece of context from a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "an object")]
pub struct ContextEntry {
    /// Label of the context.
    pub description: String,
    /// Text of the context.
    pub value: String,
}

impl ContextEntry {
    /// Label of the messages from before the conversation was stored here.
    const EARLIER: &str = "Earlier messages of this conversation, from before it was stored here";
    /// Label of the client's instructions.
    const INSTRUCTIONS: &str = "Instructions of the application that runs this conversation";
    /// Former labels of both kinds, which stored conversations may contain.
    const FORMER_EARLIER: &str = "What was said earlier in this conversation, before it came here";
    const FORMER_INSTRUCTIONS: &str = "Instructions of the application that holds this conversation";

    /// Returns true if the entry contains messages from before the conversation was stored here.
    pub fn is_earlier(&self) -> bool {
        [Self::EARLIER, Self::FORMER_EARLIER].contains(&self.description.as_str())
    }

    /// Returns true if the entry contains instructions of the application.
    pub fn is_instructions(&self) -> bool {
        [Self::INSTRUCTIONS, Self::FORMER_INSTRUCTIONS].contains(&self.description.as_str())
    }

    /// Creates an entry with the messages (`role` and `content`) from before the conversation was stored
    /// here.
    pub fn earlier(messages: Vec<Value>) -> ContextEntry {
        let value = Value::Array(messages).to_string();
        ContextEntry { description: Self::EARLIER.to_string(), value }
    }

    /// Creates an entry with instructions of the application, which supplement the agent's own prompt.
    pub fn instructions(value: String) -> ContextEntry {
        ContextEntry { description: Self::INSTRUCTIONS.to_string(), value }
    }
}

/// Answer of a human to an approval question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// The call is approved.
    Approved {
        /// Replacement for the model's input.
        input: Option<Value>,
    },
    /// The call is declined.
    Declined {
        /// Reason for the model; may be empty.
        reason: String,
    },
    /// No human has decided: none can be asked, or none answered.
    Unavailable {
        /// Reason for the model.
        reason: String,
    },
}

/// An answer that is no verdict.
#[derive(Debug, thiserror::Error)]
#[error(
    "expected {{\"approved\": true}}, with `editedArgs` to change the arguments, or {{\"approved\": false, \"reason\": \"…\"}}: {0}"
)]
pub struct ApprovalError(#[source] serde_json::Error);

impl ApprovalVerdict {
    /// Parses an answer: `{"approved": true}`, with `editedArgs` to change the arguments, or `{"approved":
    /// false, "reason": "…"}`.
    ///
    /// # Errors
    /// If the answer has another form.
    pub fn parse(answer: &Value) -> Result<ApprovalVerdict, ApprovalError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, expecting = "an object", rename_all = "camelCase")]
        struct WireApproval {
            approved: bool,
            edited_args: Option<Value>,
            reason: Option<String>,
        }
        let WireApproval { approved, edited_args, reason } =
            WireApproval::deserialize(answer).map_err(ApprovalError)?;
        Ok(match approved {
            true => ApprovalVerdict::Approved { input: edited_args },
            false => ApprovalVerdict::Declined { reason: reason.unwrap_or_default() },
        })
    }
}

/// Data that a conversation is opened with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationOrigin {
    /// The id of the conversation.
    pub conversation: ConversationId,
    /// The agent that answers.
    pub agent: AgentId,
    /// The call that the conversation is opened for.
    pub parent: Option<ParentCall>,
}

/// Caller that starts a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TurnCaller {
    /// A user.
    User {
        /// The id of the user.
        user_id: Arc<str>,
        /// The id that the client gave to the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<Arc<str>>,
    },
    /// A workflow.
    Workflow {
        /// The run of the workflow.
        run_id: RunId,
    },
    /// Another agent.
    Agent {
        /// The calling agent.
        agent_id: AgentId,
        /// The calling turn.
        turn_id: TurnId,
    },
}

/// Recipient of a turn's answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReplyTo {
    /// A call of an agent.
    Call {
        /// The waiting conversation.
        conversation: ConversationId,
        /// The waiting operation.
        at: OperationAddress,
    },
    /// A task or workflow.
    Run {
        /// The waiting run.
        run: RunId,
        /// The waiting token.
        token: TokenId,
    },
}

/// Address of one attempt at a hook workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HookAddress {
    /// The turn.
    pub turn: TurnId,
    /// The kind of hook.
    pub kind: HookKind,
    /// The run of the workflow.
    pub run: RunId,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// Kind of a turn's hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Builds the request before a model call.
    ContextAssembly,
    /// Extracts memories at the end of the turn.
    MemoryExtraction,
}

/// Address of one attempt at a model call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ModelAddress {
    /// The turn.
    pub turn: TurnId,
    /// Number of the call in the turn, from 1.
    pub call: u32,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// Address of one attempt at an operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperationAddress {
    /// The turn.
    pub turn: TurnId,
    /// The tool call that started it.
    pub call: CallId,
    /// The attempt, from 1.
    pub attempt: u32,
}
