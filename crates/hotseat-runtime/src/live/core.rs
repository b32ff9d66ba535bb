//! The live driver without I/O: applies entries and returns the work to do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hotseat_model::ModelRequest;
use hotseat_trace::{EventRecord, Payload};

use crate::conversation::{ConversationInput, Millis, ModelAddress, ReceivedInputs};
use crate::definition::{Definitions, RuntimeLimits};
use crate::ids::{AgentId, ConversationId, RunId, TokenId};
use crate::memory::MemoryUse;
use crate::store::{HookDigests, LogEntry, StoredEntry};
use crate::world::{ConversationWorld, DeliveryTime, DriverRequest, WorldDelivery};

/// Maximum number of deliveries per entry, so that one entry cannot block other work.
const MAX_DELIVERIES_PER_ENTRY: usize = 10_000;

/// A conversation with its timers and pending calls.
pub(super) struct ConversationCore {
    world: ConversationWorld,
    root: ConversationId,
    timers: BTreeMap<(Millis, u64), WorldDelivery>,
    timer_count: u64,
    calls: BTreeMap<ModelAddress, PendingModelCall>,
    recalls: BTreeMap<(RunId, TokenId), PendingMemoryUse>,
}

/// Model call in progress.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingModelCall {
    pub(super) conversation: ConversationId,
    pub(super) profile: Arc<str>,
    pub(super) request: Arc<ModelRequest>,
}

/// Memory access in progress.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingMemoryUse {
    pub(super) agent: AgentId,
    pub(super) usage: MemoryUse,
}

/// Result of one entry.
#[derive(Debug, Default)]
pub(super) struct EntryEffects {
    /// Records for the trace.
    pub(super) records: Vec<EventRecord>,
    /// Model calls to start.
    pub(super) calls: Vec<ModelAddress>,
    /// Model calls to cancel.
    pub(super) cancelled: Vec<ModelAddress>,
    /// Memory accesses to start.
    pub(super) recalls: Vec<(RunId, TokenId)>,
}

impl ConversationCore {
    /// Creates a conversation that has not started; its first entry must be [`LogEntry::Open`].
    pub(super) fn new(root: ConversationId, definitions: Arc<Definitions>, limits: RuntimeLimits) -> Self {
        ConversationCore {
            world: ConversationWorld::new(definitions, limits),
            root,
            timers: BTreeMap::new(),
            timer_count: 0,
            calls: BTreeMap::new(),
            recalls: BTreeMap::new(),
        }
    }

    /// Restores a conversation from its entries and records.
    ///
    /// Entries since the last change of definitions are applied again and must produce the same records. If
    /// they do not, the definitions have changed again: the conversation is then built from its records, and
    /// the number of the first different record is returned. Its next entry must be
    /// [`LogEntry::DefinitionChanged`].
    pub(super) fn restore(
        root: ConversationId,
        definitions: &Arc<Definitions>,
        limits: RuntimeLimits,
        kept: &[StoredEntry],
        records: &[EventRecord],
    ) -> (Self, Option<u64>) {
        let recorded = |kept: &[StoredEntry], records: &[EventRecord]| {
            let mut received = ReceivedInputs::default();
            for StoredEntry { stamp, entry } in kept {
                if let LogEntry::Input { input, .. } = entry {
                    received.add(stamp.offset, input);
                }
            }
            let world = ConversationWorld::from_records(definitions.clone(), limits, &received, records);
            ConversationCore { world, ..ConversationCore::new(root.clone(), definitions.clone(), limits) }
        };
        let changed = kept.iter().rposition(|kept| matches!(kept.entry, LogEntry::DefinitionChanged { .. }));
        let adopted = records.iter().rposition(|record| match &record.payload {
            Payload::DefinitionChanged(p) => p.conversation_id == root.0,
            _ => false,
        });
        let (entries, before) = changed.zip(adopted).unwrap_or((0, 0));
        let mut core = match entries {
            0 => ConversationCore::new(root.clone(), definitions.clone(), limits),
            _ => recorded(&kept[..entries], &records[..before]),
        };
        let replayed = kept[entries..].iter().cloned();
        let mut digests = HookDigests::default();
        let made: Vec<EventRecord> = replayed
            .flat_map(|kept| core.apply(kept.stamp, kept.entry).records)
            .map(|record| digests.shorten(&record).unwrap_or(record))
            .collect();
        match first_difference(&records[before..], &made) {
            None => (core, None),
            Some(place) => {
                let sequence = records.get(before + place).or(records.last()).map_or(1, |last| last.sequence);
                (recorded(kept, records), Some(sequence))
            }
        }
    }

    pub(super) fn world(&self) -> &ConversationWorld {
        &self.world
    }

    pub(super) fn call(&self, at: &ModelAddress) -> Option<&PendingModelCall> {
        self.calls.get(at)
    }

    pub(super) fn recall(&self, by: &(RunId, TokenId)) -> Option<&PendingMemoryUse> {
        self.recalls.get(by)
    }

    /// Returns everything that must be requested again after a restart.
    pub(super) fn outstanding(&self) -> EntryEffects {
        EntryEffects {
            calls: self.calls.keys().cloned().collect(),
            recalls: self.recalls.keys().cloned().collect(),
            ..EntryEffects::default()
        }
    }

    /// Returns the time at which [`LogEntry::Due`] is due.
    pub(super) fn deadline(&self) -> Option<Millis> {
        let timer = self.timers.first_key_value().map(|((at, _), _)| *at);
        let machines = self.world.conversations().filter_map(|(_, machine)| machine.deadline());
        machines.chain(timer).min()
    }

    /// Returns true if nothing can happen without a new input.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.recalls.is_empty() && self.deadline().is_none()
    }

    /// Returns the conversation that contains the turn of an input.
    pub(super) fn conversation_for(&self, input: &ConversationInput) -> ConversationId {
        let turn = match input {
            ConversationInput::OperationDone { at, .. } => Some(&at.turn),
            ConversationInput::CancelTurn { turn, .. } => Some(turn),
            ConversationInput::ModelDone { at, .. } => Some(&at.turn),
            ConversationInput::HookDone { at, .. } => Some(&at.turn),
            ConversationInput::Approval { at, .. } => Some(&at.turn),
            ConversationInput::Open
            | ConversationInput::ClientOffer { .. }
            | ConversationInput::UserMessage { .. }
            | ConversationInput::AgentCall { .. }
            | ConversationInput::Wake
            | ConversationInput::RemoveParticipant { .. }
            | ConversationInput::DefinitionChanged { .. }
            | ConversationInput::Close => None,
        };
        let mut conversations = self.world.conversations();
        let home = turn.and_then(|turn| conversations.find(|(_, held)| held.state().turn(turn).is_some()));
        home.map_or_else(|| self.root.clone(), |(id, _)| id.clone())
    }

    /// Applies an entry.
    pub(super) fn apply(&mut self, stamp: DeliveryTime, entry: LogEntry) -> EntryEffects {
        let mut applied = EntryEffects::default();
        let mut queue = self.deliveries(stamp.now(), entry);
        let mut taken = 0;
        while let Some(delivery) = queue.pop_front() {
            if self.world.is_stale(stamp.now(), &delivery) {
                continue;
            }
            if taken == MAX_DELIVERIES_PER_ENTRY {
                self.add_timer(stamp.now(), delivery);
                continue;
            }
            taken += 1;
            let outcome = self.world.deliver(stamp, &delivery);
            applied.records.extend(outcome.records);
            for ask in outcome.requests {
                match ask {
                    DriverRequest::Deliver { after: 0, delivery } => queue.push_back(delivery),
                    DriverRequest::Deliver { after, delivery } => {
                        self.add_timer(stamp.now().saturating_add(after), delivery)
                    }
                    DriverRequest::CallModel { conversation, at, profile, request } => {
                        self.calls.insert(at.clone(), PendingModelCall { conversation, profile, request });
                        applied.calls.push(at);
                    }
                    DriverRequest::CancelModel { at } => {
                        self.calls.remove(&at);
                        applied.cancelled.push(at);
                    }
                    // Watchers see the records; open questions are part of the conversation's state.
                    DriverRequest::AskClient { .. } | DriverRequest::AskApproval { .. } => {}
                    DriverRequest::Remember { run, token, agent, usage } => {
                        self.recalls.insert((run.clone(), token), PendingMemoryUse { agent, usage });
                        applied.recalls.push((run, token));
                    }
                }
            }
        }
        applied
    }

    fn deliveries(&mut self, now: Millis, entry: LogEntry) -> VecDeque<WorldDelivery> {
        match entry {
            LogEntry::Open { opening } => VecDeque::from([WorldDelivery::Open { opening, call: None }]),
            LogEntry::Input { conversation, input } => {
                if let ConversationInput::ModelDone { at, .. } = &input {
                    self.calls.remove(at);
                }
                VecDeque::from([WorldDelivery::Input { conversation, input }])
            }
            LogEntry::DefinitionChanged { first_difference } => {
                let all = self.world.conversations().map(|(id, _)| id.clone());
                all.map(|conversation| {
                    let input = ConversationInput::DefinitionChanged { first_difference };
                    WorldDelivery::Input { conversation, input }
                })
                .collect()
            }
            LogEntry::Remembered { run, token, result } => {
                self.recalls.remove(&(run.clone(), token));
                VecDeque::from([WorldDelivery::Remembered { run, token, result }])
            }
            LogEntry::Due => {
                let mut due = VecDeque::new();
                while let Some(entry) = self.timers.first_entry()
                    && entry.key().0 <= now
                {
                    due.push_back(entry.remove());
                }
                let late = |machine: &crate::conversation::ConversationMachine| {
                    machine.deadline().is_some_and(|deadline| deadline <= now)
                };
                let conversations = self.world.conversations().filter(|(_, machine)| late(machine));
                due.extend(conversations.map(|(id, _)| WorldDelivery::Wake { conversation: id.clone() }));
                due
            }
        }
    }

    fn add_timer(&mut self, at: Millis, delivery: WorldDelivery) {
        self.timer_count += 1;
        self.timers.insert((at, self.timer_count), delivery);
    }
}

/// Returns the index of the first different record. Those of stores of earlier versions contain no digests.
fn first_difference(kept: &[EventRecord], made: &[EventRecord]) -> Option<usize> {
    let mut digests = HookDigests::default();
    let differs = kept
        .iter()
        .zip(made)
        .position(|(kept, made)| kept != made && digests.shorten(kept).as_ref() != Some(made));
    let shorter = (kept.len() != made.len()).then_some(kept.len().min(made.len()));
    differs.or(shorter)
}
