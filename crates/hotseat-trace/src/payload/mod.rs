//! What an event says: one enum over all event types, with their members.

mod adapter;
mod agent;
mod fault;
mod hook;
mod llm;
mod members;
mod memory;
mod message;
mod tool;
mod topic;
mod turn;
mod work;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use adapter::*;
pub use agent::*;
pub use fault::*;
pub use hook::*;
pub use llm::*;
use members::Members as _;
pub use memory::*;
pub use message::*;
pub use tool::*;
pub use topic::*;
pub use turn::*;
pub use work::*;

/// Declares [`Payload`]: its variants, their dotted type names, and the way to and from JSON.
macro_rules! payloads {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $name:literal),+ $(,)?) => {
        /// What happened: the type of an event with its members.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Payload {
            $($(#[$doc])* $variant($body),)+
            /// A type that this version does not know; kept so that foreign traces load and are saved whole.
            Other(String, Value),
        }

        impl Payload {
            /// The type names that this version knows.
            pub const TYPES: &'static [&'static str] = &[$($name),+];

            /// The dotted type name, for instance `tool.invoked`.
            pub fn type_name(&self) -> &str {
                match self {
                    $(Payload::$variant(_) => $name,)+
                    Payload::Other(name, _) => name,
                }
            }

            /// The members as JSON.
            ///
            /// # Errors
            /// When a member cannot be written as JSON, which no payload built here can cause.
            pub fn to_json(&self) -> serde_json::Result<Value> {
                match self {
                    $(Payload::$variant(body) => serde_json::to_value(body),)+
                    Payload::Other(_, value) => Ok(value.clone()),
                }
            }

            /// Reads the members of the event type `name`.
            ///
            /// # Errors
            /// When a known type lacks a member or has one of the wrong type.
            pub fn from_json(name: &str, value: Value) -> serde_json::Result<Payload> {
                match name {
                    $($name => serde_json::from_value(value).map(Payload::$variant),)+
                    _ => Ok(Payload::Other(name.to_string(), value)),
                }
            }

            /// The turn an event belongs to; none for types this version does not know and for those of no turn.
            pub fn turn_id(&self) -> Option<&Arc<str>> {
                match self {
                    $(Payload::$variant(body) => body.turn_id(),)+
                    Payload::Other(..) => None,
                }
            }

            fn turn_id_mut(&mut self) -> Option<&mut Arc<str>> {
                match self {
                    $(Payload::$variant(body) => body.turn_id_mut(),)+
                    Payload::Other(..) => None,
                }
            }

            pub(crate) fn serialize_members<S: serde::ser::SerializeStruct>(&self, out: &mut S) -> Result<(), S::Error> {
                match self {
                    $(Payload::$variant(body) => out.serialize_field("payload", body),)+
                    Payload::Other(_, value) => out.serialize_field("payload", value),
                }
            }
        }
    };
}

payloads! {
    /// A turn began: a user input is about to be sent.
    TurnStarted(TurnStart) = "turn.started",
    /// The agent is done with the turn.
    TurnCompleted(TurnCompletion) = "turn.completed",
    /// The turn could not be held to its end.
    TurnFailed(TurnFailed) = "turn.failed",
    /// What the turn has spent is known.
    TurnSpent(TurnSpent) = "turn.spent",
    /// The user said something.
    UserMessage(UserMessage) = "message.user",
    /// The agent finished a message.
    AssistantMessage(AssistantMessage) = "message.assistant",
    /// The agent finished a piece of reasoning; never part of what it said.
    ReasoningMessage(ReasoningMessage) = "message.reasoning",
    /// A tool call began. Its arguments may follow.
    ToolInvoked(ToolInvocation) = "tool.invoked",
    /// The arguments of a call are known, or known better than before.
    ToolArguments(ToolArguments) = "tool.arguments",
    /// A tool answered.
    ToolCompleted(ToolCompleted) = "tool.completed",
    /// A tool failed.
    ToolFailed(ToolFailed) = "tool.failed",
    /// The turn waits for a synchronous call.
    TurnWaiting(TurnOperation) = "turn.waiting",
    /// The turn goes on with the result of a synchronous call.
    TurnResumed(TurnOperation) = "turn.resumed",
    /// The turn goes on while an asynchronous call runs.
    AsyncTracked(TurnOperation) = "turn.async_tracked",
    /// An asynchronous call has ended.
    AsyncCompleted(AsyncCompleted) = "turn.async_completed",
    /// A call was given up because its turn ended.
    AsyncCancelled(AsyncCancelled) = "turn.async_cancelled",
    /// One model step of a turn is done.
    MoveRecorded(MoveRecorded) = "move.recorded",
    /// The result of an asynchronous call was added to its move.
    MoveResult(MoveResult) = "move.result_recorded",
    /// A tool failed in a way that may pass; it is tried again.
    ToolRetry(ToolRetry) = "tool.retry_scheduled",
    /// The workflow that builds the request for a model call was started.
    ContextAssemblyStarted(HookStarted) = "context_assembly.started",
    /// The request is there.
    ContextAssemblyCompleted(ContextAssembled) = "context_assembly.completed",
    /// The request could not be built.
    ContextAssemblyFailed(HookFailed) = "context_assembly.failed",
    /// The workflow that keeps what a turn has brought was started.
    MemoryExtractionStarted(HookStarted) = "memory_extraction.started",
    /// It is kept.
    MemoryExtractionCompleted(MemoryExtracted) = "memory_extraction.completed",
    /// It could not be kept; the turn completes all the same.
    MemoryExtractionFailed(HookFailed) = "memory_extraction.failed",
    /// A language model was asked.
    LlmCallStarted(LlmCallStarted) = "llm.call.started",
    /// It replied.
    LlmCallCompleted(LlmCallCompleted) = "llm.call.completed",
    /// It did not reply.
    LlmCallFailed(LlmCallFailed) = "llm.call.failed",
    /// An agent called another one.
    AgentCallStarted(AgentCallStarted) = "agent.call.started",
    /// What the called agent gets to see.
    AgentCallContext(AgentCallContext) = "agent.call.context",
    /// The called agent answered.
    AgentCallCompleted(AgentCallCompleted) = "agent.call.completed",
    /// The called agent failed.
    AgentCallFailed(AgentCallFailed) = "agent.call.failed",
    /// The agent was changed since the conversation was held last; from here on the new definition holds.
    DefinitionChanged(DefinitionChanged) = "agent.definition_changed",
    /// Somebody joined the conversation.
    ParticipantAdded(ParticipantAdded) = "participant.added",
    /// Somebody left the conversation.
    ParticipantRemoved(ParticipantRemoved) = "participant.removed",
    /// A conversation was opened.
    ConversationCreated(ConversationCreated) = "conversation.created",
    /// A conversation was closed; it takes no more turns.
    ConversationClosed(ConversationClosed) = "conversation.closed",
    /// A workflow run began.
    WorkflowStarted(WorkflowStarted) = "workflow.started",
    /// A workflow run ended in order.
    WorkflowCompleted(WorkflowCompleted) = "workflow.completed",
    /// A workflow run failed.
    WorkflowFailed(WorkflowFailed) = "workflow.failed",
    /// A workflow run reached a node, once for each branch.
    TokenCreated(TokenCreated) = "operation.tokens.created",
    /// A token of a workflow run changed.
    TokenStatusChanged(TokenStatusChanged) = "operation.tokens.status_changed",
    /// A task began.
    TaskStarted(TaskStarted) = "executor.task.started",
    /// A task ended in order.
    TaskCompleted(TaskCompleted) = "executor.task.completed",
    /// A task failed.
    TaskFailed(TaskFailed) = "executor.task.failed",
    /// A step of a task began.
    TaskStepStarted(TaskStep) = "executor.step.started",
    /// A step of a task ended.
    TaskStepCompleted(TaskStep) = "executor.step.completed",
    /// An action began.
    ActionStarted(ActionStarted) = "executor.action.started",
    /// An action ended in order.
    ActionCompleted(ActionCompleted) = "executor.action.completed",
    /// An action failed.
    ActionFailed(ActionFailed) = "executor.action.failed",
    /// A memory was written.
    MemoryWritten(MemoryWritten) = "memory.written",
    /// A memory was read.
    MemoryRead(MemoryTouched) = "memory.read",
    /// A memory was deleted.
    MemoryDeleted(MemoryTouched) = "memory.deleted",
    /// An agent's memory was searched.
    MemorySearched(MemorySearched) = "memory.searched",
    /// The runtime has a fault.
    RuntimeError(RuntimeError) = "runtime.error",
    /// Something came for which there is no use any more.
    InputIgnored(InputIgnored) = "runtime.input_ignored",
    /// The agent's shared state was replaced.
    StateSnapshot(StateSnapshot) = "state.snapshot",
    /// The agent's shared state was patched.
    StateDelta(StateDelta) = "state.delta",
    /// One request to the agent was accepted; a turn may need several.
    AgentRunStarted(AgentRunStarted) = "agent.run.started",
    /// The agent ended a run in order.
    AgentRunFinished(AgentRunFinished) = "agent.run.finished",
    /// The agent said that its run failed.
    AgentRunFailed(AgentRunFailed) = "agent.run.failed",
    /// The agent said whether it waits for an input of the user.
    AwaitingInput(AwaitingInput) = "agent.awaiting_input",
    /// The agent paused and waits for an answer.
    InterruptRaised(InterruptRaised) = "interrupt.raised",
    /// An interrupt was answered.
    InterruptAnswered(InterruptAnswered) = "interrupt.answered",
    /// A named step of the agent began.
    StepStarted(Step) = "step.started",
    /// A named step of the agent ended.
    StepFinished(Step) = "step.finished",
    /// The agent handed work to another agent.
    SubagentStarted(Subagent) = "subagent.started",
    /// Another agent gave its work back.
    SubagentFinished(Subagent) = "subagent.finished",
    /// Another agent failed.
    SubagentFailed(Subagent) = "subagent.failed",
    /// An activity, or any other event that has a name of its own.
    Custom(Custom) = "custom",
    /// A helper was asked: whoever simulates the user, or a judge.
    RoleAnswered(RoleAnswered) = "role.answered",
    /// From now on topics are followed, through this graph; turns that were held before belong to its topics too.
    TopicsDeclared(TopicsDeclared) = "topics.declared",
    /// The conversation came to another topic.
    TopicChanged(TopicStep) = "topic.changed",
    /// The conversation stayed in its topic, for a reason.
    TopicKept(TopicStep) = "topic.kept",
    /// A user is simulated from now on.
    SimulationStarted(SimulationStarted) = "simulation.started",
    /// No user is simulated any more.
    SimulationEnded(SimulationEnded) = "simulation.ended",
    /// What the adapter received, as received; kept where asked for.
    Raw(Raw) = "raw",
    /// Something about the protocol that a person should know and that decides nothing.
    Note(Note) = "protocol.note",
}

/// For each type of members that belongs to one event type only.
macro_rules! from_members {
    ($($name:ident),+ $(,)?) => {
        $(impl From<$name> for Payload {
            fn from(members: $name) -> Payload {
                Payload::$name(members)
            }
        })+
    };
}

from_members! {
    TurnFailed, TurnSpent, UserMessage, AssistantMessage, ReasoningMessage, ToolArguments, ToolCompleted, ToolFailed,
    AsyncCompleted, AsyncCancelled, MoveRecorded, MoveResult, ToolRetry, LlmCallStarted, LlmCallCompleted,
    LlmCallFailed, AgentCallStarted, AgentCallContext, AgentCallCompleted, AgentCallFailed, ParticipantAdded,
    ParticipantRemoved, DefinitionChanged, ConversationCreated, ConversationClosed, WorkflowStarted, WorkflowCompleted, WorkflowFailed,
    TokenCreated, TokenStatusChanged, TaskStarted, TaskCompleted, TaskFailed, ActionStarted, ActionCompleted,
    ActionFailed, MemoryWritten, MemorySearched, RuntimeError, InputIgnored, StateSnapshot, StateDelta,
    AgentRunStarted, AgentRunFinished, AgentRunFailed, AwaitingInput, InterruptRaised, InterruptAnswered, Custom, Raw, Note,
    TopicsDeclared, SimulationStarted, SimulationEnded,
}

impl Payload {
    /// The first part of the type name, for instance `tool`.
    pub fn category(&self) -> &str {
        self.type_name().split('.').next().unwrap_or_default()
    }
}

/// Where a fact was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// In the agent's stream of events, as it happened.
    #[default]
    Stream,
    /// Only in a snapshot of the messages, after it happened.
    Snapshot,
    /// The client did it: an answer of a client-side tool.
    Client,
}

impl Origin {
    fn is_stream(&self) -> bool {
        *self == Origin::Stream
    }
}

/// An error as an agent or a tool words it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// A short name that programs compare, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What people read.
    pub message: String,
    /// Whether the same call may succeed later, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriable: Option<bool>,
}

impl Payload {
    /// Calls a turn by another name, wherever the event names it: who keeps a trace of an agent that keeps one itself
    /// has its own names for turns.
    pub fn rename_turn(&mut self, from: &str, to: &Arc<str>) {
        let also = match self {
            Payload::TurnStarted(members) => members.caller_turn_id.as_mut(),
            Payload::ParticipantAdded(members) => Some(&mut members.added_by_turn_id),
            Payload::ConversationCreated(members) => {
                members.parent.as_mut().map(|parent| &mut parent.turn_id)
            }
            _ => None,
        };
        if let Some(name) = also.filter(|name| ***name == *from) {
            name.clone_from(to);
        }
        if let Some(name) = self.turn_id_mut().filter(|name| ***name == *from) {
            name.clone_from(to);
        }
    }
}
