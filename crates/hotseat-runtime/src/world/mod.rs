//! Conversations with their nested conversations, tasks and workflows as one state machine without I/O.
//!
//! A [`ConversationWorld`] accepts one [`WorldDelivery`] at a time and returns trace records and requests to its driver. It
//! has two drivers above it: `sim` in virtual time and `live` on tokio. A world can be rebuilt from its
//! stamped deliveries with [`replay`].

mod delivery;
mod effects;
mod execution;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_trace::{Event, EventRecord, ExecutionInfo, Payload};

pub use delivery::{
    ApprovalQuestion, ClientToolCall, DeliveryOutcome, DeliveryTime, DriverRequest, WorldDelivery,
};
use execution::WorkExecution;

use crate::conversation::{
    ConversationInput, ConversationMachine, ConversationOrigin, Millis, ReceivedInputs, ReplyTo,
};
use crate::definition::{Definitions, RuntimeLimits};
use crate::ids::{AgentId, ConversationId, RunId};

/// Conversations with their nested conversations and runs.
#[derive(Debug, Clone)]
pub struct ConversationWorld {
    definitions: Arc<Definitions>,
    limits: RuntimeLimits,
    conversations: BTreeMap<ConversationId, ConversationMachine>,
    runs: BTreeMap<RunId, WorkExecution>,
    /// Cancelled runs and nested conversations.
    cancelled: BTreeSet<RunId>,
    /// Number of records so far.
    records: u64,
}

impl ConversationWorld {
    /// Creates an empty world.
    pub fn new(definitions: Arc<Definitions>, limits: RuntimeLimits) -> Self {
        ConversationWorld {
            definitions,
            limits,
            conversations: BTreeMap::new(),
            runs: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            records: 0,
        }
    }

    /// Restores a world from its records. Pending work is not resumed; each conversation must receive
    /// [`ConversationInput::DefinitionChanged`] next.
    pub fn from_records(
        definitions: Arc<Definitions>,
        limits: RuntimeLimits,
        received: &ReceivedInputs,
        records: &[EventRecord],
    ) -> Self {
        let mut world = ConversationWorld::new(definitions, limits);
        world.records = records.last().map_or(0, |record| record.sequence);
        for record in records {
            let Payload::ConversationCreated(created) = &record.payload else { continue };
            let opening = ConversationOrigin {
                conversation: ConversationId(created.conversation_id.clone()),
                agent: AgentId(created.agent_id.clone()),
                parent: created.parent.clone(),
            };
            let id = opening.conversation.clone();
            let own =
                records.iter().filter(|record| record.execution.as_ref().is_some_and(|part| part.id == id.0));
            let machine =
                ConversationMachine::from_records(world.definitions.clone(), limits, opening, received, own);
            world.conversations.insert(id, machine);
        }
        world
    }

    /// Returns the definitions of the conversations.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// Returns the number of records so far.
    pub fn recorded_events(&self) -> u64 {
        self.records
    }

    /// Returns a conversation by id.
    pub fn conversation(&self, id: &ConversationId) -> Option<&ConversationMachine> {
        self.conversations.get(id)
    }

    /// Returns all conversations, ordered by id.
    pub fn conversations(&self) -> impl Iterator<Item = (&ConversationId, &ConversationMachine)> {
        self.conversations.iter()
    }

    /// Returns the time at which [`WorldDelivery::Wake`] is due for a conversation, unless another delivery
    /// arrives first.
    pub fn deadline(&self, id: &ConversationId) -> Option<Millis> {
        self.conversations.get(id).and_then(ConversationMachine::deadline)
    }

    /// Returns true if a delivery is obsolete because its receiver no longer waits for it.
    pub fn is_stale(&self, now: Millis, delivery: &WorldDelivery) -> bool {
        match delivery {
            WorldDelivery::Wake { conversation } => {
                self.deadline(conversation).is_none_or(|deadline| deadline > now)
            }
            WorldDelivery::Run { run, .. } | WorldDelivery::Remembered { run, .. } => {
                !self.runs.contains_key(run)
            }
            WorldDelivery::Open { call: None, .. } => false,
            WorldDelivery::Open { opening, call: Some(call) } => {
                self.cancelled.contains(&RunId(opening.conversation.0.clone()))
                    || self.is_cancelled_call(call)
            }
            WorldDelivery::Input { input, .. } => self.is_cancelled_call(input),
        }
    }

    /// Returns true if an input is a call whose caller no longer waits.
    fn is_cancelled_call(&self, input: &ConversationInput) -> bool {
        match input {
            ConversationInput::AgentCall { reply_to: ReplyTo::Call { at, .. }, .. } => {
                self.cancelled.contains(&at.call.run(at.attempt))
            }
            ConversationInput::AgentCall { reply_to: ReplyTo::Run { run, .. }, .. } => {
                !self.runs.contains_key(run)
            }
            _ => false,
        }
    }

    /// Handles one delivery.
    pub fn deliver(&mut self, stamp: DeliveryTime, delivery: &WorldDelivery) -> DeliveryOutcome {
        let mut outcome = DeliveryOutcome::default();
        match delivery {
            WorldDelivery::Open { opening, call } => {
                let id = opening.conversation.clone();
                self.open(opening.clone());
                self.handle_input(stamp, &id, &ConversationInput::Open, &mut outcome);
                if let Some(call) = call {
                    self.handle_input(stamp, &id, call, &mut outcome);
                }
            }
            WorldDelivery::Input { conversation, input } => {
                self.handle_input(stamp, conversation, input, &mut outcome)
            }
            WorldDelivery::Wake { conversation } => {
                self.handle_input(stamp, conversation, &ConversationInput::Wake, &mut outcome);
            }
            WorldDelivery::Run { run, input } => self.handle_work(stamp, run, input, &mut outcome),
            WorldDelivery::Remembered { run, token, result } => {
                self.handle_memory(stamp, run, *token, result, &mut outcome);
            }
        }
        outcome
    }

    fn open(&mut self, opening: ConversationOrigin) {
        let id = opening.conversation.clone();
        let machine = ConversationMachine::new(self.definitions.clone(), self.limits, opening);
        self.conversations.insert(id, machine);
    }

    /// Passes an input to a conversation.
    fn handle_input(
        &mut self,
        stamp: DeliveryTime,
        id: &ConversationId,
        input: &ConversationInput,
        outcome: &mut DeliveryOutcome,
    ) {
        let Some(machine) = self.conversations.get_mut(id) else { return };
        let step = machine.handle(stamp.now(), input);
        let execution = machine.execution();
        self.record_events(stamp, &execution, step.events, outcome);
        outcome.touched.push(id.clone());
        for effect in step.effects {
            self.start_effect(stamp, id, effect, outcome);
        }
    }

    /// Numbers and records events.
    fn record_events(
        &mut self,
        stamp: DeliveryTime,
        execution: &ExecutionInfo,
        events: Vec<Payload>,
        outcome: &mut DeliveryOutcome,
    ) {
        let DeliveryTime { offset, timestamp } = stamp;
        let numbers = self.records + 1..;
        self.records += events.len() as u64;
        outcome.records.extend(events.into_iter().zip(numbers).map(|(payload, sequence)| EventRecord {
            event: Event { sequence, offset, timestamp, payload },
            execution: Some(execution.clone()),
        }));
    }
}

impl PartialEq for ConversationWorld {
    /// Compares conversations, runs and the number of records.
    fn eq(&self, other: &Self) -> bool {
        let states = |world: &'_ ConversationWorld| -> Vec<_> {
            world.conversations.values().map(|machine| machine.state().clone()).collect()
        };
        self.records == other.records
            && self.cancelled == other.cancelled
            && self.runs.keys().eq(other.runs.keys())
            && states(self) == states(other)
    }
}

/// Replays deliveries. Returns the resulting world and the outcome of the last delivery.
pub fn replay<'d>(
    definitions: &Arc<Definitions>,
    limits: RuntimeLimits,
    journal: impl IntoIterator<Item = &'d (DeliveryTime, WorldDelivery)>,
) -> (ConversationWorld, DeliveryOutcome) {
    let mut world = ConversationWorld::new(definitions.clone(), limits);
    let mut last = DeliveryOutcome::default();
    for (stamp, delivery) in journal {
        last = world.deliver(*stamp, delivery);
    }
    (world, last)
}
