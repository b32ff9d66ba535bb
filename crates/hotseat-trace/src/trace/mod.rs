//! A whole trace: its records in order, and the views that answer what happened.

mod agents;
mod errors;
mod executor;
mod hooks;
mod interrupts;
mod lines;
mod llm;
mod memory;
mod messages;
mod moves;
mod tools;
mod turns;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use agents::{Agents, Conversations, Participants};
pub use errors::Errors;
pub use executor::{AllOrigins, Executor, Workflows};
pub use hooks::{ContextAssembly, MemoryExtraction};
pub use interrupts::Interrupts;
pub use lines::TraceError;
pub use llm::Llm;
pub use memory::MemoryEvents;
pub use messages::{Messages, Said};
pub use moves::Moves;
pub use tools::{Outcome, ToolEvent, ToolRun, Tools};
pub use turns::{TurnStatus, Turns};
pub use view::{Typed, View};

use crate::{Conversation, ExecutionKind, Payload, Record};

/// The events of a conversation and of everything that it started, in the order in which they were decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    records: Vec<Record>,
    /// For every execution the conversation it works for; a conversation works for itself.
    owners: BTreeMap<Arc<str>, Arc<str>>,
    /// The conversation the trace is of; none where an adapter wrote it.
    root: Option<Arc<str>>,
}

impl Trace {
    /// A trace of these records, sorted by their sequence numbers.
    pub fn new(records: impl IntoIterator<Item = Record>) -> Self {
        let mut trace = Trace { records: records.into_iter().collect(), ..Trace::default() };
        trace.records.sort_by_key(|record| record.sequence);
        for record in &trace.records {
            let Some(execution) = &record.execution else { continue };
            if trace.owners.contains_key(&execution.id) {
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

    /// Every record, of all executions.
    pub fn all(&self) -> &[Record] {
        &self.records
    }

    /// The record with this sequence number.
    pub fn record(&self, sequence: u64) -> Option<&Record> {
        let place = self.records.binary_search_by_key(&sequence, |record| record.sequence).ok()?;
        self.records.get(place)
    }

    /// The conversation that the trace is of, with the workflows that ran for it.
    pub fn root(&self) -> View<'_> {
        View::new(self, self.root.clone())
    }

    /// One conversation, with the workflows that ran for it; of a run of a workflow, the conversation it worked for.
    pub fn execution(&self, id: &str) -> Option<View<'_>> {
        self.owners.get(id).map(|owner| View::new(self, Some(owner.clone())))
    }

    /// The conversation that was opened for a call of an agent; of a call that was repeated, the last.
    pub fn child(&self, call_id: &str) -> Option<View<'_>> {
        self.records.iter().rev().find_map(|record| match &record.payload {
            Payload::ConversationCreated(p)
                if p.parent.as_ref().is_some_and(|parent| &*parent.call_id == call_id) =>
            {
                Some(View::new(self, Some(p.conversation_id.clone())))
            }
            _ => None,
        })
    }

    /// Every conversation of the trace, the root first.
    pub fn conversations_all(&self) -> Vec<View<'_>> {
        let mut found: Vec<Option<Arc<str>>> = vec![self.root.clone()];
        for record in &self.records {
            let owner = self.owner(record).cloned();
            if !found.contains(&owner) {
                found.push(owner);
            }
        }
        found.into_iter().map(|owner| View::new(self, owner)).collect()
    }

    /// The root conversation, folded for checks.
    pub fn conversation(&self) -> Conversation {
        Conversation::of(self.root().records().map(|record| &record.event))
    }

    fn owner(&self, record: &Record) -> Option<&Arc<str>> {
        record.execution.as_ref().and_then(|execution| self.owners.get(&execution.id))
    }
}

/// The views of the root conversation, so that they need not be asked of [`Trace::root`].
macro_rules! root_views {
    ($($(#[$doc:meta])* $name:ident -> $view:ident),+ $(,)?) => {
        impl Trace {
            $($(#[$doc])* pub fn $name(&self) -> $view<'_> { self.root().$name() })+
        }

        impl<'a> View<'a> {
            $($(#[$doc])* pub fn $name(&self) -> $view<'a> { $view(self.clone()) })+
        }
    };
}

root_views! {
    /// The turns.
    turns -> Turns,
    /// The moves: model steps within turns.
    moves -> Moves,
    /// What was said.
    messages -> Messages,
    /// The tool calls.
    tools -> Tools,
    /// The workflows that built requests.
    context_assembly -> ContextAssembly,
    /// The workflows that kept what turns have brought.
    memory_extraction -> MemoryExtraction,
    /// The language model calls.
    llm -> Llm,
    /// The questions to people.
    interrupts -> Interrupts,
    /// The calls of other agents.
    agents -> Agents,
    /// Who joined and left.
    participants -> Participants,
    /// The conversations that were opened and closed.
    conversations -> Conversations,
    /// The tasks that ran.
    executor -> Executor,
    /// The workflows that ran.
    workflows -> Workflows,
    /// What was done with the agents' memories.
    memory -> MemoryEvents,
    /// What went wrong for good.
    errors -> Errors,
}
