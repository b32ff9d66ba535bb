//! State of a conversation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_model::{ModelMessage, ModelRequest, ModelTool, ModelToolResult};
use hotseat_trace::{InvocationMode, MoveRecorded, ParentCall, Participant, ToolOutcome, TurnIssues};
use serde_json::{Value, json};

use super::{
    ContextEntry, ConversationEffect, ConversationOrigin, EffectKey, HookAddress, HookKind, OperationAddress,
    ReplyTo, TurnCaller,
};
use crate::definition::{Definitions, ToolDefinition};
use crate::ids::{AgentId, CallId, ConversationId, MessageId, RunId, TaskId, TurnId, WorkflowId, numbered};

/// Time in milliseconds since an origin that the driver chooses.
pub type Millis = u64;

/// State of a conversation, determined completely by its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationState {
    /// The id of the conversation.
    pub conversation: ConversationId,
    /// The agent that answers.
    pub agent: AgentId,
    /// The call that the conversation was opened for.
    pub parent: Option<ParentCall>,
    /// Status for external observers.
    pub status: ConversationStatus,
    /// Participants, in order of joining.
    pub participants: Vec<Participant>,
    /// Turns, in order of start. Copies of a state share the turns that have not changed since.
    pub turns: Vec<Arc<TurnState>>,
    /// Messages, in order.
    pub messages: Vec<TurnMessage>,
    /// Latest offer of the client.
    pub offer: ClientOffer,
    /// State shared between agent and client; null until it is set.
    pub shared: Value,
    /// Due times of timers.
    pub timers: BTreeMap<TimerKey, Millis>,
    /// Requested effects without an answer.
    pub outstanding: BTreeMap<EffectKey, ConversationEffect>,
}

/// Tools and context of a client, valid until its next offer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientOffer {
    /// Tools that the client executes for the agent of the conversation.
    pub tools: Vec<ToolDefinition>,
    /// Context of the client.
    pub context: Vec<ContextEntry>,
}

impl ClientOffer {
    /// Returns true if the offer consists of these tools and this context.
    pub fn contains_exactly(&self, tools: &[ModelTool], context: &[ContextEntry]) -> bool {
        let same = |(known, offered): (&ToolDefinition, &ModelTool)| {
            known.name == offered.name
                && known.description == offered.description
                && known.input_schema == offered.input_schema
        };
        self.context == context && self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(same)
    }
}

/// Status of a conversation for external observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationStatus {
    /// The conversation accepts turns.
    Active,
    /// The conversation waits. This runtime never sets the status itself.
    Waiting,
    /// The user has closed the conversation.
    Completed,
    /// The conversation cannot continue.
    Failed,
}

/// Role of the author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeakerRole {
    /// The caller of the turn.
    User,
    /// The agent of the turn.
    Agent,
}

/// Message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnMessage {
    /// The id of the message.
    pub id: MessageId,
    /// The turn that contains the message.
    pub turn: TurnId,
    /// Role of the author.
    pub role: SpeakerRole,
    /// The agent that wrote the message.
    pub agent: Option<AgentId>,
    /// Text of the message.
    pub content: String,
}

/// State of one turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnState {
    /// The id of the turn.
    pub id: TurnId,
    /// The agent that answers.
    pub agent: AgentId,
    /// Number of the turn among those of its agent in the conversation, from 1.
    pub number: u32,
    /// The caller that started the turn.
    pub caller: TurnCaller,
    /// Input of the turn.
    pub input: Value,
    /// Input of the turn as text.
    pub user_text: String,
    /// The earlier message that the turn answers.
    pub answers: Option<MessageId>,
    /// Recipient of the answer.
    pub reply_to: Option<ReplyTo>,
    /// Number of nested agent calls that lead to this turn.
    pub depth: u32,
    /// Current phase.
    pub phase: TurnPhase,
    /// Messages of the turn, as the model sees them.
    pub transcript: Vec<ModelMessage>,
    /// Notices that the model has not received yet.
    pub notices: Vec<String>,
    /// Moves of the turn.
    pub moves: Vec<MoveRecorded>,
    /// Number of model calls.
    pub calls: u32,
    /// Number of model replies.
    pub replies: u32,
    /// Number of hook workflow runs.
    pub runs: u32,
    /// Number of tool calls.
    pub tool_calls: u32,
    /// Calls of the last reply, in order, until their results are passed to the model.
    pub slots: Vec<ReplySlot>,
    /// Operations of the turn.
    pub operations: Vec<ToolOperation>,
    /// Request of the first model call; kept if requests are built once per turn.
    pub prefix: Option<Arc<ModelRequest>>,
    /// Issues to report when the turn ends.
    pub issues: TurnIssues,
    /// Last text of the agent.
    pub last_text: Option<String>,
    /// Time at which the turn ended.
    pub ended_at: Option<Millis>,
}

/// Phase of a turn.
///
/// Attempts count from 1.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the documentation of the variants names the members")]
pub enum TurnPhase {
    /// The next model call can be prepared.
    Ready,
    /// The request is being built; `run` is `None` while a retry is pending.
    Assembling { attempt: u32, run: Option<RunId> },
    /// The request has been built.
    Assembled { request: Arc<ModelRequest> },
    /// The model is being called; `open` is false while a retry is pending, and `last` is true if tools are no longer
    /// offered.
    Calling { attempt: u32, request: Arc<ModelRequest>, open: bool, last: bool },
    /// The turn waits for the `open` calls.
    Waiting { open: BTreeSet<CallId> },
    /// The agent has finished its answer; asynchronous operations may still be running.
    Idle,
    /// Memories are being extracted; `run` is `None` while a retry is pending.
    Extracting { attempt: u32, run: Option<RunId> },
    /// The turn is about to complete.
    Closing,
    /// The turn has ended.
    Ended(TurnEnd),
}

/// Result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// The agent completed its answer.
    Completed,
    /// The turn failed.
    Failed,
}

/// Tool call of the last reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplySlot {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Answer for the model. For an asynchronous call: that it was started.
    pub answer: Option<CallAnswer>,
}

/// Answer to a call, as the model receives it.
#[derive(Debug, Clone, PartialEq)]
pub enum CallAnswer {
    /// The call has ended.
    Ended(ToolOutcome),
    /// The call was started asynchronously.
    Started,
}

/// Tool call that is or was executed.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOperation {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// Target that executes the call.
    pub work: OperationTarget,
    /// Input from the model.
    pub input: Value,
    /// Input passed to the target.
    pub target_input: Value,
    /// True if the turn continues before the call has ended.
    pub is_async: bool,
    /// Text that the model wrote beside the call; kept until the move is recorded.
    pub reasoning: Option<String>,
    /// Number of the reply that contains the call.
    pub iteration: u32,
    /// Current status.
    pub status: OperationStatus,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Result of the call.
    pub outcome: Option<ToolOutcome>,
    /// Start time.
    pub created_at: Millis,
    /// End time.
    pub completed_at: Option<Millis>,
}

/// Target that executes a call.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationTarget {
    /// A task.
    Task(TaskId),
    /// A workflow.
    Workflow(WorkflowId),
    /// An agent.
    Agent(AgentId, InvocationMode),
    /// The client.
    Client,
}

/// Status of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationStatus {
    /// Running; the turn continues.
    Pending,
    /// Running; the turn waits for it.
    Waiting,
    /// Waiting for a human to approve the call.
    AwaitingApproval,
    /// Completed successfully.
    Completed,
    /// Failed.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl OperationStatus {
    /// Returns true if the operation has not ended.
    pub fn is_open(self) -> bool {
        match self {
            OperationStatus::Pending | OperationStatus::Waiting | OperationStatus::AwaitingApproval => true,
            OperationStatus::Completed | OperationStatus::Failed | OperationStatus::Cancelled => false,
        }
    }
}

/// Key of a timer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct TimerKey {
    /// The turn.
    pub turn: TurnId,
    /// Purpose of the timer.
    pub kind: TimerKind,
}

/// Purpose of a timer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// Build the request again.
    ContextRetry,
    /// Time limit for building the request.
    ContextDeadline,
    /// Call the model again.
    ModelRetry,
    /// Time limit of the model call.
    ModelDeadline,
    /// Extract memories again.
    ExtractionRetry,
    /// Time limit of memory extraction.
    ExtractionDeadline,
    /// Run an operation again.
    OperationRetry(CallId),
    /// Time limit of an operation.
    OperationDeadline(CallId),
}

impl ConversationState {
    pub(super) fn new(opening: ConversationOrigin) -> Self {
        let participants = vec![Participant::Agent { agent_id: opening.agent.0.clone() }];
        ConversationState {
            conversation: opening.conversation,
            agent: opening.agent,
            parent: opening.parent,
            status: ConversationStatus::Active,
            participants,
            turns: Vec::new(),
            messages: Vec::new(),
            offer: ClientOffer::default(),
            shared: Value::Null,
            timers: BTreeMap::new(),
            outstanding: BTreeMap::new(),
        }
    }

    /// Returns the tools of an agent: its own, plus the client's for the main agent of the conversation.
    pub fn tools<'s>(
        &'s self,
        definitions: &'s Definitions,
        agent: &AgentId,
    ) -> impl Iterator<Item = &'s ToolDefinition> {
        let own = definitions.agent(agent).map_or(&[][..], |agent| &agent.persona.tools);
        let offered = if *agent == self.agent { &self.offer.tools[..] } else { &[] };
        own.iter().chain(offered)
    }

    /// Returns a tool of an agent by name.
    pub fn tool<'s>(
        &'s self,
        definitions: &'s Definitions,
        agent: &AgentId,
        name: &str,
    ) -> Option<&'s ToolDefinition> {
        self.tools(definitions, agent).find(|tool| tool.name == name)
    }

    /// Returns a turn by id.
    pub fn turn(&self, id: &TurnId) -> Option<&TurnState> {
        self.turns.iter().rfind(|turn| turn.id == *id).map(|turn| &**turn)
    }

    pub(super) fn turn_mut(&mut self, id: &TurnId) -> Option<&mut TurnState> {
        self.turns.iter_mut().rfind(|turn| turn.id == *id).map(Arc::make_mut)
    }

    pub(super) fn next_turn(&self) -> TurnId {
        TurnId(numbered(self.conversation.as_str(), "t", self.turns.len() + 1))
    }

    /// Returns the timer that is due first.
    pub(super) fn next_due_timer(&self, now: Millis) -> Option<TimerKey> {
        let due = self.timers.iter().filter(|(_, at)| **at <= now);
        due.min_by_key(|(key, at)| (**at, (*key).clone())).map(|(key, _)| key.clone())
    }

    /// Returns true if the participant is in the conversation.
    pub fn has_participant(&self, participant: &Participant) -> bool {
        self.participants.contains(participant)
    }

    /// Returns the turns that have not ended.
    pub fn active_turns(&self) -> impl Iterator<Item = &TurnState> {
        self.turns.iter().map(|turn| &**turn).filter(|turn| turn.is_active())
    }

    /// Returns true if a turn has ended or waits only for the client.
    pub fn is_waiting_for_client(&self, turn: &TurnId) -> bool {
        let Some(turn) = self.turn(turn).filter(|turn| turn.is_active()) else { return true };
        let at_rest = matches!(turn.phase, TurnPhase::Waiting { .. } | TurnPhase::Idle);
        let mut open = turn.open_operations().peekable();
        at_rest
            && open.peek().is_some()
            && open.all(|operation| match &operation.work {
                OperationTarget::Client => true,
                _ if operation.status == OperationStatus::AwaitingApproval => true,
                OperationTarget::Agent(..) => {
                    // A joined agent waits in a turn of this conversation.
                    let mut called = self.active_turns().filter(|called| {
                        matches!(&called.reply_to, Some(ReplyTo::Call { conversation, at })
                            if *conversation == self.conversation && at.call == operation.call)
                    });
                    called.next().is_some_and(|called| self.is_waiting_for_client(&called.id))
                }
                OperationTarget::Task(_) | OperationTarget::Workflow(_) => false,
            })
    }
}

impl TurnState {
    /// Creates a turn that is about to start.
    pub(super) fn new(state: &ConversationState, id: TurnId, agent: AgentId, caller: TurnCaller) -> Self {
        let number = state.turns.iter().filter(|other| other.agent == agent).count() + 1;
        TurnState {
            id,
            agent,
            number: u32::try_from(number).unwrap_or(u32::MAX),
            caller,
            input: Value::Null,
            user_text: String::new(),
            answers: None,
            reply_to: None,
            depth: 0,
            phase: TurnPhase::Ready,
            transcript: Vec::new(),
            notices: Vec::new(),
            moves: Vec::new(),
            calls: 0,
            replies: 0,
            runs: 0,
            tool_calls: 0,
            slots: Vec::new(),
            operations: Vec::new(),
            prefix: None,
            issues: TurnIssues::default(),
            last_text: None,
            ended_at: None,
        }
    }

    /// Moves pending answers and notices into the transcript.
    pub(super) fn update_transcript(&mut self) {
        let told = self.pending_messages();
        self.transcript.extend(told);
        self.slots.clear();
        self.notices.clear();
    }

    /// Returns the messages that the model receives next: answers to the calls of its last reply, then notices.
    pub(super) fn pending_messages(&self) -> Vec<ModelMessage> {
        let answers = self.slots.iter().filter_map(|slot| {
            let (content, is_error) = match slot.answer.as_ref()? {
                CallAnswer::Started => (json!({"status": "started", "operationId": slot.call}), false),
                CallAnswer::Ended(outcome) => match &outcome.result {
                    Ok(value) => (value.clone(), false),
                    Err(error) => (json!({"code": error.code, "message": error.message}), true),
                },
            };
            let call_id = slot.call.to_string();
            Some(ModelMessage::Tool(ModelToolResult { call_id, name: slot.tool.clone(), content, is_error }))
        });
        let notices = self.notices.iter().map(ModelMessage::notice);
        answers.chain(notices).collect()
    }

    /// Sets the answer to a call of the last reply.
    pub(super) fn set_answer(&mut self, call: &CallId, answer: CallAnswer) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == *call) {
            slot.answer = Some(answer);
        }
    }

    /// Returns true if an asynchronous operation is running.
    pub fn has_async_operations(&self) -> bool {
        self.open_operations()
            .any(|operation| operation.is_async && operation.status == OperationStatus::Pending)
    }

    /// Returns true if the turn waits only for the client or for approvals.
    pub fn waits_only_for_client(&self) -> bool {
        let mut open = self.open_operations().peekable();
        matches!(self.phase, TurnPhase::Waiting { .. } | TurnPhase::Idle)
            && open.peek().is_some()
            && open.all(|operation| {
                operation.work == OperationTarget::Client
                    || operation.status == OperationStatus::AwaitingApproval
            })
    }

    /// Returns true if the turn has not ended.
    pub fn is_active(&self) -> bool {
        !matches!(self.phase, TurnPhase::Ended(_))
    }

    /// Returns an operation by call id.
    pub fn operation(&self, call: &CallId) -> Option<&ToolOperation> {
        self.operations.iter().find(|operation| operation.call == *call)
    }

    pub(super) fn operation_mut(&mut self, call: &CallId) -> Option<&mut ToolOperation> {
        self.operations.iter_mut().find(|operation| operation.call == *call)
    }

    /// Returns the operations that have not ended.
    pub fn open_operations(&self) -> impl Iterator<Item = &ToolOperation> {
        self.operations.iter().filter(|operation| operation.status.is_open())
    }

    /// Returns the id of the next hook workflow run.
    pub(super) fn next_run(&self, hook: &str) -> RunId {
        RunId(numbered(self.id.as_str(), hook, self.runs as usize + 1))
    }

    /// Returns the address of an attempt at a hook.
    pub(super) fn hook_address(&self, kind: HookKind, run: RunId, attempt: u32) -> HookAddress {
        HookAddress { turn: self.id.clone(), kind, run, attempt }
    }

    /// Returns the address of the current attempt at an operation.
    pub(crate) fn address(&self, operation: &ToolOperation) -> OperationAddress {
        OperationAddress { turn: self.id.clone(), call: operation.call.clone(), attempt: operation.attempt }
    }

    /// Returns the id and type of the caller, for events.
    pub(super) fn caller_info(&self) -> (Arc<str>, &'static str) {
        match &self.caller {
            TurnCaller::User { user_id, .. } => (user_id.clone(), "user"),
            TurnCaller::Workflow { run_id } => (run_id.0.clone(), "workflow"),
            TurnCaller::Agent { agent_id, .. } => (agent_id.0.clone(), "agent"),
        }
    }
}
