//! What is known of a conversation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_model::{Message as ModelMessage, Request};
use hotseat_trace::{InvocationMode, Issues, MoveRecorded, ParentCall, Participant, ToolOutcome};
use serde_json::Value;

use super::{Caller, ContextEntry, Effect, EffectKey, Millis, Opening, OperationAddress, ReplyTo};
use crate::definition::{Definitions, Tool};
use crate::ids::{AgentId, CallId, ConversationId, MessageId, RunId, TaskId, TurnId, WorkflowId};

/// What is known of a conversation. All of it follows from its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Its id.
    pub conversation: ConversationId,
    /// The agent that answers in it.
    pub agent: AgentId,
    /// The call it was opened for.
    pub parent: Option<ParentCall>,
    /// What it is seen to be from outside.
    pub status: ConversationStatus,
    /// Who takes part, in the order of joining.
    pub participants: Vec<Participant>,
    /// The turns, in the order in which they began.
    pub turns: Vec<Turn>,
    /// What was said, in order.
    pub messages: Vec<Message>,
    /// What the client has offered last.
    pub offer: Offer,
    /// What the agent and the client share; null until somebody sets it.
    pub shared: Value,
    /// When the conversation wants to be woken, and why.
    pub timers: BTreeMap<TimerKey, Millis>,
    /// What it has asked of the world and has no answer to.
    pub outstanding: BTreeMap<EffectKey, Effect>,
}

/// What a client offers; it holds until the next offer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offer {
    /// The tools that the client carries out for the agent of the conversation.
    pub tools: Vec<Tool>,
    /// What it knows of its situation.
    pub context: Vec<ContextEntry>,
}

/// What a conversation is seen to be from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationStatus {
    /// It takes turns.
    Active,
    /// It waits for somebody. Nothing in this runtime sets it by itself.
    Waiting,
    /// Its user has ended it.
    Completed,
    /// It cannot go on.
    Failed,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whoever started the turn.
    User,
    /// The agent of the turn.
    Agent,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// The turn it was said in.
    pub turn: TurnId,
    /// Who spoke.
    pub role: Role,
    /// Which agent spoke.
    pub agent: Option<AgentId>,
    /// What was said.
    pub content: String,
}

/// One turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The agent that answers.
    pub agent: AgentId,
    /// Its place among the turns of its agent in the conversation, from 1.
    pub number: u32,
    /// Who started it.
    pub caller: Caller,
    /// What it was started with.
    pub input: Value,
    /// The same as text.
    pub user_text: String,
    /// The earlier message it answers.
    pub answers: Option<MessageId>,
    /// Where its answer goes.
    pub reply_to: Option<ReplyTo>,
    /// How many agents have called each other on the way here.
    pub depth: u32,
    /// Where it stands.
    pub phase: Phase,
    /// What happened in it, as the model sees it.
    pub transcript: Vec<ModelMessage>,
    /// What the model must still be told.
    pub notices: Vec<String>,
    /// Its moves.
    pub moves: Vec<MoveRecorded>,
    /// How many model calls it has made.
    pub calls: u32,
    /// How many replies it has had.
    pub replies: u32,
    /// How many runs of hook workflows it has started.
    pub runs: u32,
    /// How many tool calls it has seen.
    pub tool_calls: u32,
    /// The calls of the last reply, in the order of the reply, until the model is told what came of them.
    pub slots: Vec<Slot>,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// The request that was built for its first call; kept where requests are built once a turn.
    pub prefix: Option<Box<Request>>,
    /// What must be told at its end.
    pub issues: Issues,
    /// The last thing its agent said.
    pub last_text: Option<String>,
    /// When it ended.
    pub ended_at: Option<Millis>,
}

/// Where a turn stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// The model is to be asked.
    Ready,
    /// Its request is being built; no run while the next attempt is waited for.
    Assembling {
        /// The attempt, from 1.
        attempt: u32,
        /// The run.
        run: Option<RunId>,
    },
    /// Its request is there.
    Assembled {
        /// The request.
        request: Box<Request>,
    },
    /// The model is being asked; `open` is false while the next attempt is waited for.
    Calling {
        /// The attempt, from 1.
        attempt: u32,
        /// The request.
        request: Box<Request>,
        /// Whether a call is on its way.
        open: bool,
        /// Whether tools are no longer offered.
        last: bool,
    },
    /// It waits for these calls.
    Waiting {
        /// The calls.
        open: BTreeSet<CallId>,
    },
    /// The agent has said what it had to say; operations may still run.
    Idle,
    /// What it has brought is being kept; no run while the next attempt is waited for.
    Extracting {
        /// The attempt, from 1.
        attempt: u32,
        /// The run.
        run: Option<RunId>,
    },
    /// Nothing is left but to say so.
    Closing,
    /// It has ended.
    Ended(TurnEnd),
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// The agent was done.
    Completed,
    /// It could not be held to its end.
    Failed,
}

/// A call of the last reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// What it came to; for an asynchronous call that it was started.
    pub answer: Option<Answer>,
}

/// What the model is told of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It has ended.
    Ended(ToolOutcome),
    /// It was started.
    Started,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// What runs.
    pub work: Work,
    /// What the model gave.
    pub input: Value,
    /// What the target was given.
    pub given: Value,
    /// Whether the turn goes on before it has ended.
    pub is_async: bool,
    /// What the model wrote beside the call; kept until the move is recorded.
    pub reasoning: Option<String>,
    /// Which reply it belongs to.
    pub iteration: u32,
    /// Where it stands.
    pub status: OperationStatus,
    /// The attempt, from 1.
    pub attempt: u32,
    /// What came of it.
    pub outcome: Option<ToolOutcome>,
    /// When it was started.
    pub created_at: Millis,
    /// When it ended.
    pub completed_at: Option<Millis>,
}

/// What runs for a call.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A task.
    Task(TaskId),
    /// A workflow.
    Workflow(WorkflowId),
    /// An agent.
    Agent(AgentId, InvocationMode),
    /// The client.
    Client,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationStatus {
    /// The turn goes on while it runs.
    Pending,
    /// The turn waits for it.
    Waiting,
    /// The turn waits for a person to say whether it may begin.
    AwaitingApproval,
    /// It has ended in order.
    Completed,
    /// It has failed.
    Failed,
    /// It was given up.
    Cancelled,
}

impl OperationStatus {
    /// Whether something may still come of it.
    pub fn is_open(self) -> bool {
        match self {
            OperationStatus::Pending | OperationStatus::Waiting | OperationStatus::AwaitingApproval => true,
            OperationStatus::Completed | OperationStatus::Failed | OperationStatus::Cancelled => false,
        }
    }
}

/// What a timer is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct TimerKey {
    /// The turn.
    pub turn: TurnId,
    /// What of it.
    pub kind: TimerKind,
}

/// What a timer is for, within a turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// The request is built anew.
    ContextRetry,
    /// Building the request takes too long.
    ContextDeadline,
    /// The model is asked again.
    ModelRetry,
    /// The model takes too long.
    ModelDeadline,
    /// Keeping is tried again.
    ExtractionRetry,
    /// Keeping takes too long.
    ExtractionDeadline,
    /// An operation is tried again.
    OperationRetry(CallId),
    /// An operation takes too long.
    OperationDeadline(CallId),
}

impl State {
    pub(super) fn new(opening: Opening) -> Self {
        let participants = vec![Participant::Agent { agent_id: opening.agent.0.clone() }];
        State {
            conversation: opening.conversation,
            agent: opening.agent,
            parent: opening.parent,
            status: ConversationStatus::Active,
            participants,
            turns: Vec::new(),
            messages: Vec::new(),
            offer: Offer::default(),
            shared: Value::Null,
            timers: BTreeMap::new(),
            outstanding: BTreeMap::new(),
        }
    }

    /// The tools of an agent: its own, and for the agent of the conversation those of the client.
    pub fn tools<'s>(
        &'s self,
        definitions: &'s Definitions,
        agent: &AgentId,
    ) -> impl Iterator<Item = &'s Tool> {
        let own = definitions.agent(agent).map_or(&[][..], |agent| &agent.persona.tools);
        let offered = if *agent == self.agent { &self.offer.tools[..] } else { &[] };
        own.iter().chain(offered)
    }

    /// A tool of an agent.
    pub fn tool<'s>(&'s self, definitions: &'s Definitions, agent: &AgentId, name: &str) -> Option<&'s Tool> {
        self.tools(definitions, agent).find(|tool| tool.name == name)
    }

    /// A turn.
    pub fn turn(&self, id: &TurnId) -> Option<&Turn> {
        self.turns.iter().rfind(|turn| turn.id == *id)
    }

    pub(super) fn turn_mut(&mut self, id: &TurnId) -> Option<&mut Turn> {
        self.turns.iter_mut().rfind(|turn| turn.id == *id)
    }

    /// The id that the next turn gets.
    pub(super) fn next_turn(&self) -> TurnId {
        TurnId(format!("{}-t{}", self.conversation, self.turns.len() + 1).into())
    }

    /// The timer that is due first.
    pub(super) fn due(&self, now: Millis) -> Option<TimerKey> {
        let due = self.timers.iter().filter(|(_, at)| **at <= now);
        due.min_by_key(|(key, at)| (**at, (*key).clone())).map(|(key, _)| key.clone())
    }

    /// Whether somebody takes part.
    pub fn takes_part(&self, participant: &Participant) -> bool {
        self.participants.contains(participant)
    }

    /// The turns that have not ended.
    pub fn active_turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(|turn| turn.is_active())
    }
}

impl Turn {
    /// A turn of this conversation that begins.
    pub(super) fn new(state: &State, id: TurnId, agent: AgentId, caller: Caller) -> Self {
        let number = state.turns.iter().filter(|other| other.agent == agent).count() + 1;
        Turn {
            id,
            agent,
            number: u32::try_from(number).unwrap_or(u32::MAX),
            caller,
            input: Value::Null,
            user_text: String::new(),
            answers: None,
            reply_to: None,
            depth: 0,
            phase: Phase::Ready,
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
            issues: Issues::default(),
            last_text: None,
            ended_at: None,
        }
    }

    /// What the model has not been told yet becomes a part of what it has seen.
    pub(super) fn tell_the_model(&mut self) {
        let told = super::context::untold(self);
        self.transcript.extend(told);
        self.slots.clear();
        self.notices.clear();
    }

    /// What the model is told of a call of its last reply.
    pub(super) fn answer(&mut self, call: &CallId, answer: Answer) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.call == *call) {
            slot.answer = Some(answer);
        }
    }

    /// Whether an asynchronous operation runs for it.
    pub fn is_asynchronous(&self) -> bool {
        self.open_operations()
            .any(|operation| operation.is_async && operation.status == OperationStatus::Pending)
    }

    /// Whether it waits for nobody but the client or a person.
    pub fn awaits_only_the_client(&self) -> bool {
        let mut open = self.open_operations().peekable();
        matches!(self.phase, Phase::Waiting { .. } | Phase::Idle)
            && open.peek().is_some()
            && open.all(|operation| {
                operation.work == Work::Client || operation.status == OperationStatus::AwaitingApproval
            })
    }

    /// Whether it has not ended.
    pub fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Ended(_))
    }

    /// An operation.
    pub fn operation(&self, call: &CallId) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.call == *call)
    }

    pub(super) fn operation_mut(&mut self, call: &CallId) -> Option<&mut Operation> {
        self.operations.iter_mut().find(|operation| operation.call == *call)
    }

    /// The operations that something may still come of.
    pub fn open_operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| operation.status.is_open())
    }

    /// The id of a run of a hook workflow.
    pub(super) fn next_run(&self, hook: &str) -> RunId {
        RunId(format!("{}-{hook}{}", self.id, self.runs + 1).into())
    }

    pub(super) fn address(&self, operation: &Operation) -> OperationAddress {
        OperationAddress { turn: self.id.clone(), call: operation.call.clone(), attempt: operation.attempt }
    }

    /// The id of the caller, for events.
    pub(super) fn caller_words(&self) -> (Arc<str>, &'static str) {
        match &self.caller {
            Caller::User { user_id } => (user_id.clone(), "user"),
            Caller::Workflow { run_id } => (run_id.0.clone(), "workflow"),
            Caller::Agent { agent_id, .. } => (agent_id.0.clone(), "agent"),
        }
    }
}
