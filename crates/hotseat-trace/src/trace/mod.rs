//! A trace: records in order, and views of its events.

mod events;
mod jsonl;
mod messages;
mod tools;
mod turns;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use events::{
    AgentCallEvents, AllTaskEvents, ContextAssemblyEvents, ConversationEvents, ErrorEvents, InterruptEvents,
    LlmCallEvents, MemoryEvents, MemoryExtractionEvents, MoveEvents, ParticipantEvents, ToolTaskEvents,
    WorkflowEvents,
};
pub use jsonl::TraceError;
pub use messages::{MessageEvent, MessageEvents};
pub use tools::{ToolCallEvents, ToolCallRun, ToolEvent, ToolRunOutcome};
pub use turns::{TurnEvents, TurnStatus};
pub use view::{ConversationView, TypedRecord};

use crate::{EventRecord, ExecutionKind, Payload, TracedConversation};

/// The events of a conversation and of everything it started, in the order in which they were decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    records: Vec<EventRecord>,
    /// Conversation of each execution; a conversation maps to itself.
    owners: BTreeMap<Arc<str>, Arc<str>>,
    /// Root conversation. None for a trace written by an adapter.
    root: Option<Arc<str>>,
}

impl Trace {
    /// Creates a trace from records and sorts them by sequence number.
    pub fn new(records: impl IntoIterator<Item = EventRecord>) -> Self {
        let mut trace = Trace { records: records.into_iter().collect(), ..Trace::default() };
        trace.records.sort_by_key(|record| record.sequence);
        let mut last: Option<&Arc<str>> = None;
        for record in &trace.records {
            let Some(execution) = &record.execution else { continue };
            // Most records belong to the same execution as the one before.
            let is_known = last.is_some_and(|last| Arc::ptr_eq(last, &execution.id))
                || trace.owners.contains_key(&execution.id);
            last = Some(&execution.id);
            if is_known {
                continue;
            }
            let owner = match (execution.kind, &execution.parent) {
                (ExecutionKind::Workflow, Some(parent)) => trace.owners.get(parent).unwrap_or(parent).clone(),
                (ExecutionKind::Conversation, _) | (ExecutionKind::Workflow, None) => execution.id.clone(),
            };
            trace.root.get_or_insert_with(|| owner.clone());
            trace.owners.insert(execution.id.clone(), owner);
        }
        trace
    }

    /// Returns all records, of all executions.
    pub fn all(&self) -> &[EventRecord] {
        &self.records
    }

    /// Returns the record with this sequence number.
    pub fn record(&self, sequence: u64) -> Option<&EventRecord> {
        let place = self.records.binary_search_by_key(&sequence, |record| record.sequence).ok()?;
        self.records.get(place)
    }

    /// Returns the root conversation, with its workflow runs.
    pub fn root(&self) -> ConversationView<'_> {
        ConversationView::new(self, self.root.clone())
    }

    /// Returns a conversation by id, with its workflow runs; for the id of a workflow run, its conversation.
    pub fn execution(&self, id: &str) -> Option<ConversationView<'_>> {
        self.owners.get(id).map(|owner| ConversationView::new(self, Some(owner.clone())))
    }

    /// Returns the conversation opened for an agent call; for a repeated call, the last one.
    pub fn child(&self, call_id: &str) -> Option<ConversationView<'_>> {
        self.records.iter().rev().find_map(|record| match &record.payload {
            Payload::ConversationCreated(p)
                if p.parent.as_ref().is_some_and(|parent| &*parent.call_id == call_id) =>
            {
                Some(ConversationView::new(self, Some(p.conversation_id.clone())))
            }
            _ => None,
        })
    }

    /// Returns all conversations of the trace, the root first.
    pub fn all_conversations(&self) -> Vec<ConversationView<'_>> {
        let mut found: Vec<Option<Arc<str>>> = vec![self.root.clone()];
        for record in &self.records {
            let owner = self.owner(record).cloned();
            if !found.contains(&owner) {
                found.push(owner);
            }
        }
        found.into_iter().map(|owner| ConversationView::new(self, owner)).collect()
    }

    /// Returns the root conversation, folded for checks.
    pub fn conversation(&self) -> TracedConversation {
        TracedConversation::from_events(self.root().records().map(|record| &record.event))
    }

    fn owner(&self, record: &EventRecord) -> Option<&Arc<str>> {
        record.execution.as_ref().and_then(|execution| self.owners.get(&execution.id))
    }
}

/// Declares the event views of a conversation, also as shortcuts for the root of a trace.
macro_rules! root_views {
    ($($(#[$doc:meta])* $name:ident -> $view:ident),+ $(,)?) => {
        impl Trace {
            $($(#[$doc])* pub fn $name(&self) -> $view<'_> { self.root().$name() })+
        }

        impl<'a> ConversationView<'a> {
            $($(#[$doc])* pub fn $name(&self) -> $view<'a> { $view(self.clone()) })+
        }
    };
}

root_views! {
    /// Returns the turn events.
    turns -> TurnEvents,
    /// Returns the move events: the model steps within turns.
    moves -> MoveEvents,
    /// Returns the message events.
    messages -> MessageEvents,
    /// Returns the tool events.
    tools -> ToolCallEvents,
    /// Returns the events of the workflows that built model requests.
    context_assembly -> ContextAssemblyEvents,
    /// Returns the events of the workflows that saved memories.
    memory_extraction -> MemoryExtractionEvents,
    /// Returns the language model events.
    llm -> LlmCallEvents,
    /// Returns the interrupt events.
    interrupts -> InterruptEvents,
    /// Returns the events of agent calls.
    agents -> AgentCallEvents,
    /// Returns the participant events.
    participants -> ParticipantEvents,
    /// Returns the events of created and closed conversations.
    conversations -> ConversationEvents,
    /// Returns the task events.
    executor -> ToolTaskEvents,
    /// Returns the workflow events.
    workflows -> WorkflowEvents,
    /// Returns the memory events.
    memory -> MemoryEvents,
    /// Returns the error events.
    errors -> ErrorEvents,
}
