//! Conversations with everything that belongs to them (the conversations that their calls open, the tasks and
//! workflows that run for them) as one machine without I/O.
//!
//! A [`World`] takes one [`Delivery`] at a time and answers with the records that the trace gets and with what it
//! asks of its driver. Two drivers hold one: [`sim`](crate::sim) in virtual time, [`live`](crate::live) on tokio.
//! What happened can be kept as a list of stamped deliveries, and [`replay`] makes the same world from it.

mod delivery;
mod issue;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_trace::{Event, Execution, Payload, Record};

pub use delivery::{ApprovalQuestion, Ask, ClientCall, Delivery, Outcome, Stamp};
use run::Running;

use crate::conversation::{Conversation, Input, Millis, Opening, ReceivedInputs, ReplyTo};
use crate::definition::{Definitions, Limits};
use crate::ids::{AgentId, ConversationId, RunId};

/// Conversations with everything that belongs to them.
#[derive(Debug, Clone)]
pub struct World {
    definitions: Arc<Definitions>,
    limits: Limits,
    conversations: BTreeMap<ConversationId, Conversation>,
    runs: BTreeMap<RunId, Running>,
    /// Runs, and conversations opened for a call, that are no longer wanted.
    cancelled: BTreeSet<RunId>,
    /// How many records there are so far.
    records: u64,
}

impl World {
    /// A world in which nothing has happened.
    pub fn new(definitions: Arc<Definitions>, limits: Limits) -> Self {
        World {
            definitions,
            limits,
            conversations: BTreeMap::new(),
            runs: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            records: 0,
        }
    }

    /// A world in which everything stands as these records of its conversations tell. Nothing that was under way when
    /// they end is taken up; each conversation is to be given [`Input::DefinitionChanged`] next.
    pub fn recorded(
        definitions: Arc<Definitions>,
        limits: Limits,
        received: &ReceivedInputs,
        records: &[Record],
    ) -> Self {
        let mut world = World::new(definitions, limits);
        world.records = records.last().map_or(0, |record| record.sequence);
        for record in records {
            let Payload::ConversationCreated(created) = &record.payload else { continue };
            let opening = Opening {
                conversation: ConversationId(created.conversation_id.clone()),
                agent: AgentId(created.agent_id.clone()),
                parent: created.parent.clone(),
            };
            let id = opening.conversation.clone();
            let own =
                records.iter().filter(|record| record.execution.as_ref().is_some_and(|part| part.id == id.0));
            let machine = Conversation::recorded(world.definitions.clone(), limits, opening, received, own);
            world.conversations.insert(id, machine);
        }
        world
    }

    /// What its conversations are made from.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// How many records there are so far.
    pub fn recorded_events(&self) -> u64 {
        self.records
    }

    /// A conversation.
    pub fn conversation(&self, id: &ConversationId) -> Option<&Conversation> {
        self.conversations.get(id)
    }

    /// All conversations, in the order of their ids.
    pub fn conversations(&self) -> impl Iterator<Item = (&ConversationId, &Conversation)> {
        self.conversations.iter()
    }

    /// When a conversation wants to be woken by [`Delivery::Wake`], if nothing happens before.
    pub fn deadline(&self, id: &ConversationId) -> Option<Millis> {
        self.conversations.get(id).and_then(Conversation::deadline)
    }

    /// Whether a delivery has become pointless: whoever waited for it is gone.
    pub fn is_stale(&self, now: Millis, delivery: &Delivery) -> bool {
        match delivery {
            Delivery::Wake { conversation } => {
                self.deadline(conversation).is_none_or(|deadline| deadline > now)
            }
            Delivery::Run { run, .. } | Delivery::Remembered { run, .. } => !self.runs.contains_key(run),
            Delivery::Open { call: None, .. } => false,
            Delivery::Open { opening, call: Some(call) } => {
                self.cancelled.contains(&RunId(opening.conversation.0.clone())) || self.is_unwanted(call)
            }
            Delivery::Input { input, .. } => self.is_unwanted(input),
        }
    }

    /// Whether an input is a call that its caller is no longer interested in.
    fn is_unwanted(&self, input: &Input) -> bool {
        match input {
            Input::AgentCall { reply_to: ReplyTo::Call { at, .. }, .. } => {
                self.cancelled.contains(&at.call.run(at.attempt))
            }
            Input::AgentCall { reply_to: ReplyTo::Run { run, .. }, .. } => !self.runs.contains_key(run),
            _ => false,
        }
    }

    /// Takes what has happened.
    pub fn take(&mut self, stamp: Stamp, delivery: &Delivery) -> Outcome {
        let mut outcome = Outcome::default();
        match delivery {
            Delivery::Open { opening, call } => {
                let id = opening.conversation.clone();
                self.open(opening.clone());
                self.converse(stamp, &id, &Input::Open, &mut outcome);
                if let Some(call) = call {
                    self.converse(stamp, &id, call, &mut outcome);
                }
            }
            Delivery::Input { conversation, input } => {
                self.converse(stamp, conversation, input, &mut outcome)
            }
            Delivery::Wake { conversation } => {
                self.converse(stamp, conversation, &Input::Wake, &mut outcome);
            }
            Delivery::Run { run, input } => self.work(stamp, run, input, &mut outcome),
            Delivery::Remembered { run, token, result } => {
                self.remembered(stamp, run, *token, result, &mut outcome);
            }
        }
        outcome
    }

    fn open(&mut self, opening: Opening) {
        let id = opening.conversation.clone();
        let machine = Conversation::new(self.definitions.clone(), self.limits, opening);
        self.conversations.insert(id, machine);
    }

    /// A conversation takes an input.
    fn converse(&mut self, stamp: Stamp, id: &ConversationId, input: &Input, outcome: &mut Outcome) {
        let Some(machine) = self.conversations.get_mut(id) else { return };
        let step = machine.handle(stamp.now(), input);
        let execution = machine.execution();
        self.keep(stamp, &execution, step.events, outcome);
        outcome.touched.push(id.clone());
        for effect in step.effects {
            self.issue(stamp, id, effect, outcome);
        }
    }

    /// Events get their numbers.
    fn keep(&mut self, stamp: Stamp, execution: &Execution, events: Vec<Payload>, outcome: &mut Outcome) {
        for payload in events {
            self.records += 1;
            let Stamp { offset, timestamp } = stamp;
            let event = Event { sequence: self.records, offset, timestamp, payload };
            outcome.records.push(Record { event, execution: Some(execution.clone()) });
        }
    }
}

impl PartialEq for World {
    /// Whether the same is known: of conversations and runs, and how far the trace has come.
    fn eq(&self, other: &Self) -> bool {
        let states = |world: &'_ World| -> Vec<_> {
            world.conversations.values().map(|machine| machine.state().clone()).collect()
        };
        self.records == other.records
            && self.cancelled == other.cancelled
            && self.runs.keys().eq(other.runs.keys())
            && states(self) == states(other)
    }
}

/// The world that these deliveries lead to, with what came of the last.
pub fn replay<'d>(
    definitions: &Arc<Definitions>,
    limits: Limits,
    journal: impl IntoIterator<Item = &'d (Stamp, Delivery)>,
) -> (World, Outcome) {
    let mut world = World::new(definitions.clone(), limits);
    let mut last = Outcome::default();
    for (stamp, delivery) in journal {
        last = world.take(*stamp, delivery);
    }
    (world, last)
}
