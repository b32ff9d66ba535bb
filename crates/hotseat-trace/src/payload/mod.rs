//! Event types and their payloads.

mod adapter;
mod agent;
mod hook;
mod llm;
mod mcp;
mod members;
mod memory;
mod message;
mod runtime;
mod tool;
mod topic;
mod turn;
mod work;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use adapter::*;
pub use agent::*;
pub use hook::*;
pub use llm::*;
pub use mcp::*;
use members::Members as _;
pub use memory::*;
pub use message::*;
pub use runtime::*;
pub use tool::*;
pub use topic::*;
pub use turn::*;
pub use work::*;

/// Declares [`Payload`]: its variants, their type names, and the conversion to and from JSON.
macro_rules! payloads {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $name:literal),+ $(,)?) => {
        /// Type and payload of an event.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Payload {
            $($(#[$doc])* $variant($body),)+
            /// A type unknown to this version, kept so that foreign traces can be loaded and saved unchanged.
            Other(String, Value),
        }

        impl Payload {
            /// The type names known to this version.
            pub const TYPES: &'static [&'static str] = &[$($name),+];

            /// Returns the type name, for instance `tool.invoked`.
            pub fn type_name(&self) -> &str {
                match self {
                    $(Payload::$variant(_) => $name,)+
                    Payload::Other(name, _) => name,
                }
            }

            /// Returns the payload as JSON.
            ///
            /// # Errors
            /// If a field cannot be written as JSON, which no payload built here causes.
            pub fn to_json(&self) -> serde_json::Result<Value> {
                serde_json::to_value(self)
            }

            /// Reads the payload of the event type `name`.
            ///
            /// # Errors
            /// If a known type lacks a field or has a field of the wrong type.
            pub fn from_json(name: &str, value: Value) -> serde_json::Result<Payload> {
                Payload::deserialize_as(name, value)
            }

            pub(crate) fn deserialize_as<'de, D: Deserializer<'de>>(name: &str, from: D) -> Result<Payload, D::Error> {
                match name {
                    $($name => <$body>::deserialize(from).map(Payload::$variant),)+
                    _ => Ok(Payload::Other(name.to_string(), Value::deserialize(from)?)),
                }
            }

            /// Returns the turn of the event. None for unknown types and for types without a turn.
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
        }

        /// The members, without the type name.
        impl Serialize for Payload {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Payload::$variant(body) => body.serialize(serializer),)+
                    Payload::Other(_, value) => value.serialize(serializer),
                }
            }
        }
    };
}

// Events are moved several times, so a rare large one is boxed.
payloads! {
    /// A turn started: a user input is about to be sent.
    TurnStarted(TurnStart) = "turn.started",
    /// The agent completed the turn.
    TurnCompleted(TurnCompletion) = "turn.completed",
    /// The turn could not be completed.
    TurnFailed(TurnFailed) = "turn.failed",
    /// The token usage of the turn was reported.
    TurnSpent(TurnSpent) = "turn.spent",
    /// A user message.
    UserMessage(UserMessage) = "message.user",
    /// A complete message of the agent.
    AssistantMessage(AssistantMessage) = "message.assistant",
    /// A complete piece of the agent's reasoning; not part of its messages.
    ReasoningMessage(ReasoningMessage) = "message.reasoning",
    /// A tool call started. Its arguments may follow.
    ToolInvoked(ToolInvocation) = "tool.invoked",
    /// The arguments of a call, or a correction of them.
    ToolArguments(ToolArguments) = "tool.arguments",
    /// A tool returned a result.
    ToolCompleted(ToolCompleted) = "tool.completed",
    /// A tool failed.
    ToolFailed(ToolFailed) = "tool.failed",
    /// The turn waits for a synchronous call.
    TurnWaiting(TurnOperation) = "turn.waiting",
    /// The turn resumed with the result of a synchronous call.
    TurnResumed(TurnOperation) = "turn.resumed",
    /// The turn continued while an asynchronous call runs.
    AsyncTracked(TurnOperation) = "turn.async_tracked",
    /// An asynchronous call ended.
    AsyncCompleted(AsyncCompleted) = "turn.async_completed",
    /// A call was cancelled because its turn ended.
    AsyncCancelled(AsyncCancelled) = "turn.async_cancelled",
    /// One model step of a turn was recorded.
    MoveRecorded(MoveRecorded) = "move.recorded",
    /// The result of an asynchronous call was added to its move.
    MoveResult(MoveResult) = "move.result_recorded",
    /// A tool failed with a retriable error; a retry is scheduled.
    ToolRetry(ToolRetry) = "tool.retry_scheduled",
    /// The workflow that builds the request of a model call started.
    ContextAssemblyStarted(HookStarted) = "context_assembly.started",
    /// The request was built.
    ContextAssemblyCompleted(ContextAssembled) = "context_assembly.completed",
    /// The request could not be built.
    ContextAssemblyFailed(HookFailed) = "context_assembly.failed",
    /// The workflow that saves memories of a turn started.
    MemoryExtractionStarted(HookStarted) = "memory_extraction.started",
    /// The memories were saved.
    MemoryExtractionCompleted(MemoryExtracted) = "memory_extraction.completed",
    /// The memories could not be saved; the turn completes regardless.
    MemoryExtractionFailed(HookFailed) = "memory_extraction.failed",
    /// A model call started.
    LlmCallStarted(LlmCallStarted) = "llm.call.started",
    /// The model replied.
    LlmCallCompleted(LlmCallCompleted) = "llm.call.completed",
    /// The model did not reply.
    LlmCallFailed(LlmCallFailed) = "llm.call.failed",
    /// A model that the test serves injected a fault into a call.
    LlmFaultInjected(LlmFaultInjected) = "llm.fault_injected",
    /// An agent called another agent.
    AgentCallStarted(AgentCallStarted) = "agent.call.started",
    /// Input and history passed to the called agent.
    AgentCallContext(AgentCallContext) = "agent.call.context",
    /// The called agent answered.
    AgentCallCompleted(AgentCallCompleted) = "agent.call.completed",
    /// The called agent failed.
    AgentCallFailed(AgentCallFailed) = "agent.call.failed",
    /// The agent's definition changed since the last turn; the new definition applies from here on.
    DefinitionChanged(DefinitionChanged) = "agent.definition_changed",
    /// A participant joined the conversation.
    ParticipantAdded(ParticipantAdded) = "participant.added",
    /// A participant left the conversation.
    ParticipantRemoved(ParticipantRemoved) = "participant.removed",
    /// A conversation was opened.
    ConversationCreated(ConversationCreated) = "conversation.created",
    /// A conversation was closed and accepts no more turns.
    ConversationClosed(ConversationClosed) = "conversation.closed",
    /// A workflow run started.
    WorkflowStarted(WorkflowStarted) = "workflow.started",
    /// A workflow run completed.
    WorkflowCompleted(WorkflowCompleted) = "workflow.completed",
    /// A workflow run failed.
    WorkflowFailed(WorkflowFailed) = "workflow.failed",
    /// A workflow run created a token: it reached a node, once per branch.
    TokenCreated(TokenCreated) = "operation.tokens.created",
    /// The status of a workflow token changed.
    TokenStatusChanged(TokenStatusChanged) = "operation.tokens.status_changed",
    /// A task started.
    TaskStarted(TaskStarted) = "executor.task.started",
    /// A task completed.
    TaskCompleted(TaskCompleted) = "executor.task.completed",
    /// A task failed.
    TaskFailed(TaskFailed) = "executor.task.failed",
    /// A step of a task started.
    TaskStepStarted(TaskStep) = "executor.step.started",
    /// A step of a task completed.
    TaskStepCompleted(TaskStep) = "executor.step.completed",
    /// An action started.
    ActionStarted(ActionStarted) = "executor.action.started",
    /// An action completed.
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
    /// The runtime detected an internal fault.
    RuntimeError(RuntimeError) = "runtime.error",
    /// An input was ignored because it no longer applies.
    InputIgnored(InputIgnored) = "runtime.input_ignored",
    /// The agent's shared state was replaced.
    StateSnapshot(StateSnapshot) = "state.snapshot",
    /// The agent's shared state was patched.
    StateDelta(StateDelta) = "state.delta",
    /// One request to the agent was accepted; a turn may need several.
    AgentRunStarted(AgentRunStarted) = "agent.run.started",
    /// A run of the agent finished.
    AgentRunFinished(AgentRunFinished) = "agent.run.finished",
    /// The agent reported that its run failed.
    AgentRunFailed(AgentRunFailed) = "agent.run.failed",
    /// The conversation failed after its last turn: the agent sent more output, for instance.
    ConversationFailed(ConversationFailed) = "conversation.failed",
    /// The agent reported whether it waits for user input.
    AwaitingInput(AwaitingInput) = "agent.awaiting_input",
    /// The agent paused until an answer arrives.
    InterruptRaised(InterruptRaised) = "interrupt.raised",
    /// An interrupt was answered.
    InterruptAnswered(InterruptAnswered) = "interrupt.answered",
    /// A named step of the agent started.
    StepStarted(Step) = "step.started",
    /// A named step of the agent finished.
    StepFinished(Step) = "step.finished",
    /// The agent delegated work to a sub-agent.
    SubagentStarted(Subagent) = "subagent.started",
    /// A sub-agent returned its result.
    SubagentFinished(Subagent) = "subagent.finished",
    /// A sub-agent failed.
    SubagentFailed(Subagent) = "subagent.failed",
    /// An activity or another event with a name of its own.
    Custom(Custom) = "custom",
    /// A role (simulator or judge) was asked.
    RoleAnswered(Box<RoleAnswered>) = "role.answered",
    /// Topic tracking starts with this graph; earlier turns are classified as well.
    TopicsDeclared(TopicsDeclared) = "topics.declared",
    /// The conversation moved to another topic.
    TopicChanged(TopicStep) = "topic.changed",
    /// The conversation stayed in its topic, for a stated reason.
    TopicKept(TopicStep) = "topic.kept",
    /// A simulated user took over.
    SimulationStarted(SimulationStarted) = "simulation.started",
    /// The simulated user stopped.
    SimulationEnded(SimulationEnded) = "simulation.ended",
    /// A client connected to an MCP server of the test.
    McpConnected(McpConnected) = "mcp.connected",
    /// The arguments of a call at an MCP server of the test violate the schema of its tool.
    McpArgumentsInvalid(McpArgumentsInvalid) = "mcp.arguments_invalid",
    /// The schema of a tool of an MCP server of the test was not known when the tool was called.
    McpArgumentsUnchecked(McpArgumentsUnchecked) = "mcp.arguments_unchecked",
    /// An MCP server of the test injected a fault into a call.
    McpFaultInjected(McpFaultInjected) = "mcp.fault_injected",
    /// The answer of an MCP server of the test did not reach the agent.
    McpAnswerLost(McpAnswerLost) = "mcp.answer_lost",
    /// An event as received by the adapter, recorded on request.
    Raw(Raw) = "raw",
    /// A note about the protocol for the user; it affects no verdict.
    Note(Note) = "protocol.note",
}

/// Implements `From` for payload structs that belong to exactly one event type, which may have another name.
macro_rules! from_members {
    ($($name:ident $(=> $variant:ident)?),+ $(,)?) => {
        $(impl From<$name> for Payload {
            fn from(members: $name) -> Payload {
                from_members!(@variant members, $($variant,)? $name)
            }
        })+
    };
    (@variant $members:ident, $variant:ident $(, $name:ident)?) => {
        Payload::$variant($members)
    };
}

from_members! {
    TurnStart => TurnStarted, TurnCompletion => TurnCompleted, ToolInvocation => ToolInvoked,
    TurnFailed, TurnSpent, UserMessage, AssistantMessage, ReasoningMessage, ToolArguments, ToolCompleted, ToolFailed,
    AsyncCompleted, AsyncCancelled, MoveRecorded, MoveResult, ToolRetry, LlmCallStarted, LlmCallCompleted,
    LlmCallFailed, LlmFaultInjected, AgentCallStarted, AgentCallContext, AgentCallCompleted, AgentCallFailed, ParticipantAdded,
    ParticipantRemoved, DefinitionChanged, ConversationCreated, ConversationClosed, WorkflowStarted, WorkflowCompleted, WorkflowFailed,
    TokenCreated, TokenStatusChanged, TaskStarted, TaskCompleted, TaskFailed, ActionStarted, ActionCompleted,
    ActionFailed, MemoryWritten, MemorySearched, RuntimeError, InputIgnored, StateSnapshot, StateDelta,
    AgentRunStarted, AgentRunFinished, AgentRunFailed, ConversationFailed, AwaitingInput, InterruptRaised, InterruptAnswered, Custom, Raw, Note,
    TopicsDeclared, SimulationStarted, SimulationEnded, McpConnected, McpArgumentsInvalid, McpArgumentsUnchecked,
    McpFaultInjected, McpAnswerLost,
}

impl Payload {
    /// Returns the first part of the type name, for instance `tool`.
    pub fn category(&self) -> &str {
        self.type_name().split('.').next().unwrap_or_default()
    }

    /// Returns the text of a message of the agent, which may be very long.
    pub fn agent_text(&self) -> Option<&Arc<str>> {
        match self {
            Payload::AssistantMessage(message) => Some(&message.content),
            Payload::ReasoningMessage(reasoning) => Some(&reasoning.content),
            _ => None,
        }
    }

    /// Like [`Payload::agent_text`], for modification.
    pub fn agent_text_mut(&mut self) -> Option<&mut Arc<str>> {
        match self {
            Payload::AssistantMessage(message) => Some(&mut message.content),
            Payload::ReasoningMessage(reasoning) => Some(&mut reasoning.content),
            _ => None,
        }
    }
}

/// Source of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The agent's event stream, live.
    #[default]
    Stream,
    /// After the fact: a snapshot of the messages, or an answer that arrived as a whole.
    Snapshot,
    /// The client: the answer of a client-side tool.
    Client,
    /// A served model: a call in its reply, for an agent whose protocol shows no calls.
    Model,
    /// An MCP server of the test: the result of a call that it received.
    Server,
}

impl crate::OptionalContent for Origin {
    fn is_absent(&self) -> bool {
        *self == Origin::Stream
    }
}

/// An error reported by an agent or a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// Machine-readable code, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Message for humans.
    pub message: String,
    /// True if the same call may succeed later; None if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriable: Option<bool>,
}

impl Payload {
    /// Replaces a turn id wherever the event contains it. Adapters use their own ids for turns of agents that
    /// keep a trace themselves.
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
