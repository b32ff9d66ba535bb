//! Events of a conversation by their subject: calls of agents, work, hooks, models, memories, moves and errors.

use super::view::{pick, picks};
use super::{ConversationView, TypedRecord};
use crate::{
    AgentCallCompleted, AgentCallContext, AgentCallFailed, AgentCallStarted, ContextAssembled,
    ConversationClosed, ConversationCreated, EventRecord, HookFailed, HookStarted, InterruptAnswered,
    InterruptRaised, LlmCallCompleted, LlmCallFailed, LlmCallStarted, MemoryExtracted, MemorySearched,
    MemoryTouched, MemoryWritten, MoveRecorded, MoveResult, ParticipantAdded, ParticipantRemoved, Payload,
    TaskCompleted, TaskFailed, TaskStarted, TokenCreated, TokenStatus, TokenStatusChanged, WorkOrigin,
    WorkflowCompleted, WorkflowFailed, WorkflowStarted,
};

/// Events of agent calls.
#[derive(Debug, Clone)]
pub struct AgentCallEvents<'a>(pub(super) ConversationView<'a>);

/// Participant events.
#[derive(Debug, Clone)]
pub struct ParticipantEvents<'a>(pub(super) ConversationView<'a>);

/// Conversation events.
#[derive(Debug, Clone)]
pub struct ConversationEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> AgentCallEvents<'a> {
    picks! {
        /// Returns the starts of agent calls.
        calls: AgentCallStarted = AgentCallStarted;
        /// Returns the completed agent calls.
        completions: AgentCallCompleted = AgentCallCompleted;
        /// Returns the failed agent calls.
        failures: AgentCallFailed = AgentCallFailed;
    }

    /// Returns the context passed to the agent of a call.
    pub fn context_for(&self, call_id: &str) -> Option<TypedRecord<'a, AgentCallContext>> {
        pick!(self.0, AgentCallContext).into_iter().find(|p| &*p.call_id == call_id)
    }
}

impl<'a> ParticipantEvents<'a> {
    picks! {
        /// Returns the participants that joined.
        added: ParticipantAdded = ParticipantAdded;
        /// Returns the participants that left.
        removed: ParticipantRemoved = ParticipantRemoved;
    }
}

impl<'a> ConversationEvents<'a> {
    picks! {
        /// Returns the creation of the conversation.
        created: ConversationCreated = ConversationCreated;
        /// Returns the closing of the conversation.
        closed: ConversationClosed = ConversationClosed;
    }
}

/// Task events of tool calls. Tasks of hook workflows run in every turn and are excluded; see
/// [`ToolTaskEvents::all_origins`].
#[derive(Debug, Clone)]
pub struct ToolTaskEvents<'a>(pub(super) ConversationView<'a>);

/// Workflow events.
#[derive(Debug, Clone)]
pub struct WorkflowEvents<'a>(pub(super) ConversationView<'a>);

/// Task events of all origins.
#[derive(Debug, Clone)]
pub struct AllTaskEvents<'a>(ConversationView<'a>);

impl<'a> ToolTaskEvents<'a> {
    /// Returns the started tasks of tool calls.
    pub fn task_starts(&self) -> Vec<TypedRecord<'a, TaskStarted>> {
        self.all_origins().task_starts().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// Returns the completed tasks of tool calls.
    pub fn task_completions(&self) -> Vec<TypedRecord<'a, TaskCompleted>> {
        self.all_origins().task_completions().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// Returns the failed tasks of tool calls.
    pub fn task_failures(&self) -> Vec<TypedRecord<'a, TaskFailed>> {
        self.all_origins().task_failures().into_iter().filter(|p| p.origin == WorkOrigin::Tool).collect()
    }

    /// Returns task events of all origins, including hook workflows.
    pub fn all_origins(&self) -> AllTaskEvents<'a> {
        AllTaskEvents(self.0.clone())
    }
}

impl<'a> AllTaskEvents<'a> {
    picks! {
        /// Returns the started tasks.
        task_starts: TaskStarted = TaskStarted;
        /// Returns the completed tasks.
        task_completions: TaskCompleted = TaskCompleted;
        /// Returns the failed tasks.
        task_failures: TaskFailed = TaskFailed;
    }
}

impl<'a> WorkflowEvents<'a> {
    picks! {
        /// Returns the started runs.
        starts: WorkflowStarted = WorkflowStarted;
        /// Returns the completed runs.
        completions: WorkflowCompleted = WorkflowCompleted;
        /// Returns the failed runs.
        failures: WorkflowFailed = WorkflowFailed;
    }

    /// Returns the started runs of one origin.
    pub fn runs(&self, origin: WorkOrigin) -> Vec<TypedRecord<'a, WorkflowStarted>> {
        self.starts().into_iter().filter(|p| p.origin == origin).collect()
    }

    /// Returns the tokens of a run.
    pub fn tokens(&self, run_id: &str) -> Vec<TypedRecord<'a, TokenCreated>> {
        pick!(self.0, TokenCreated).into_iter().filter(|p| &*p.run_id == run_id).collect()
    }

    /// Returns the status changes of all tokens of a run.
    pub fn token_changes(&self, run_id: &str) -> Vec<TypedRecord<'a, TokenStatusChanged>> {
        pick!(self.0, TokenStatusChanged).into_iter().filter(|p| &*p.run_id == run_id).collect()
    }

    /// Returns the statuses of a token in order; empty if it was never created.
    pub fn token_statuses(&self, token_id: &str) -> Vec<TokenStatus> {
        let created = pick!(self.0, TokenCreated).into_iter().any(|p| &*p.token_id == token_id);
        let changes = pick!(self.0, TokenStatusChanged).into_iter().filter(|p| &*p.token_id == token_id);
        created.then_some(TokenStatus::Pending).into_iter().chain(changes.map(|p| p.to)).collect()
    }
}

/// Context assembly events.
#[derive(Debug, Clone)]
pub struct ContextAssemblyEvents<'a>(pub(super) ConversationView<'a>);

/// Memory extraction events.
#[derive(Debug, Clone)]
pub struct MemoryExtractionEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> ContextAssemblyEvents<'a> {
    picks! {
        /// Returns the started runs.
        starts: HookStarted = ContextAssemblyStarted;
        /// Returns the completed runs.
        completions: ContextAssembled = ContextAssemblyCompleted;
        /// Returns the failed attempts.
        failures: HookFailed = ContextAssemblyFailed;
    }

    /// Returns all context assembly events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "context_assembly").collect()
    }
}

impl<'a> MemoryExtractionEvents<'a> {
    picks! {
        /// Returns the started runs.
        starts: HookStarted = MemoryExtractionStarted;
        /// Returns the completed runs.
        completions: MemoryExtracted = MemoryExtractionCompleted;
        /// Returns the failed attempts.
        failures: HookFailed = MemoryExtractionFailed;
    }

    /// Returns all memory extraction events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "memory_extraction").collect()
    }
}

/// Interrupt events.
#[derive(Debug, Clone)]
pub struct InterruptEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> InterruptEvents<'a> {
    picks! {
        /// Returns the interrupts raised.
        raised: InterruptRaised = InterruptRaised;
        /// Returns the interrupts answered or cancelled.
        answered: InterruptAnswered = InterruptAnswered;
    }

    /// Returns the answer to an interrupt.
    pub fn answer(&self, interrupt_id: &str) -> Option<TypedRecord<'a, InterruptAnswered>> {
        self.answered().into_iter().find(|p| &*p.interrupt_id == interrupt_id)
    }
}

/// Language model events.
#[derive(Debug, Clone)]
pub struct LlmCallEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> LlmCallEvents<'a> {
    picks! {
        /// Returns the started calls, including every retry.
        calls: LlmCallStarted = LlmCallStarted;
        /// Returns the completed calls.
        completions: LlmCallCompleted = LlmCallCompleted;
        /// Returns the failed calls.
        failures: LlmCallFailed = LlmCallFailed;
    }

    /// Returns all language model events of a turn.
    pub fn for_turn(&self, turn_id: &str) -> Vec<&'a EventRecord> {
        self.0.by_turn(turn_id).filter(|record| record.payload.category() == "llm").collect()
    }
}

/// Memory events.
#[derive(Debug, Clone)]
pub struct MemoryEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> MemoryEvents<'a> {
    picks! {
        /// Returns the written memories.
        written: MemoryWritten = MemoryWritten;
        /// Returns the memories read.
        read: MemoryTouched = MemoryRead;
        /// Returns the deleted memories.
        deleted: MemoryTouched = MemoryDeleted;
        /// Returns the searches.
        searched: MemorySearched = MemorySearched;
    }
}

/// Move events.
#[derive(Debug, Clone)]
pub struct MoveEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> MoveEvents<'a> {
    picks! {
        /// Returns all moves.
        all: MoveRecorded = MoveRecorded;
        /// Returns the results that were added to moves later.
        results: MoveResult = MoveResult;
    }

    /// Returns the moves of a turn, by their numbers.
    pub fn for_turn(&self, turn_id: &str) -> Vec<TypedRecord<'a, MoveRecorded>> {
        let mut moves: Vec<_> = self.all().into_iter().filter(|p| &*p.turn_id == turn_id).collect();
        moves.sort_by_key(|p| p.payload.sequence);
        moves
    }
}

/// Error events: a fixed list of types. Failed tools are not included, because the agent gets the error and
/// continues.
#[derive(Debug, Clone)]
pub struct ErrorEvents<'a>(pub(super) ConversationView<'a>);

impl<'a> ErrorEvents<'a> {
    /// Returns all error events.
    pub fn all(&self) -> Vec<&'a EventRecord> {
        self.0.records().filter(|record| is_error(&record.payload)).collect()
    }

    /// Returns the number of error events.
    pub fn count(&self) -> usize {
        self.all().len()
    }
}

fn is_error(payload: &Payload) -> bool {
    match payload {
        Payload::TurnFailed(_) | Payload::RuntimeError(_) => true,
        Payload::ContextAssemblyFailed(p) => p.retries_exhausted,
        _ => false,
    }
}
