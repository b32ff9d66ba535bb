//! The live driver without its waiting: what happened goes in, what is to be done comes out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hotseat_model::Request;
use hotseat_trace::{Payload, Record};
use serde::{Deserialize, Serialize};

use crate::conversation::{Input, Millis, ModelAddress, Opening, ReceivedInputs};
use crate::definition::{Definitions, Limits};
use crate::failure::Failure;
use crate::ids::{AgentId, ConversationId, RunId};
use crate::memory::{MemoryUse, Recalled};
use crate::store::Kept;
use crate::work::TokenId;
use crate::world::{Ask, Delivery, Stamp, World};

/// How many deliveries one entry may cause before what else goes on gets its turn.
const MOST_AT_ONCE: usize = 10_000;

/// Something that happened to a live conversation from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    /// It begins.
    Open {
        /// How.
        opening: Opening,
    },
    /// Somebody said or answered something.
    Input {
        /// The conversation it is for: this one, or one that was opened for one of its calls.
        conversation: ConversationId,
        /// What.
        input: Input,
    },
    /// The agent was changed since; what was held before stands as it is recorded, and this one goes on.
    DefinitionChanged {
        /// The number of the first record that the new definitions lead to differently.
        first_difference: u64,
    },
    /// The time has come for something that waited.
    Due,
    /// The memory answered.
    Remembered {
        /// The run that asked.
        run: RunId,
        /// Its token.
        token: TokenId,
        /// What it said.
        result: Result<Recalled, Failure>,
    },
}

/// A conversation with all that it waits for.
pub(super) struct Core {
    world: World,
    root: ConversationId,
    timers: BTreeMap<(Millis, u64), Delivery>,
    timed: u64,
    calls: BTreeMap<ModelAddress, Call>,
    recalls: BTreeMap<(RunId, TokenId), Recall>,
}

/// A model call that is waited for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) conversation: ConversationId,
    pub(super) profile: Arc<str>,
    pub(super) request: Box<Request>,
}

/// A use of the memory that is waited for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recall {
    pub(super) agent: AgentId,
    pub(super) usage: MemoryUse,
}

/// What came of one entry.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// What the trace gets.
    pub(super) records: Vec<Record>,
    /// The model calls to be made.
    pub(super) calls: Vec<ModelAddress>,
    /// Those to be given up.
    pub(super) cancelled: Vec<ModelAddress>,
    /// The uses of the memory to be made.
    pub(super) recalls: Vec<(RunId, TokenId)>,
}

impl Core {
    /// A conversation that has not begun; its first entry is [`Entry::Open`].
    pub(super) fn new(root: ConversationId, definitions: Arc<Definitions>, limits: Limits) -> Self {
        Core {
            world: World::new(definitions, limits),
            root,
            timers: BTreeMap::new(),
            timed: 0,
            calls: BTreeMap::new(),
            recalls: BTreeMap::new(),
        }
    }

    /// The conversation that stands as these entries and records say.
    ///
    /// What came since its definitions were changed last is carried out again, which must lead to the same records.
    /// Where it does not, the definitions have been changed again: the conversation is then made from its records, and
    /// the number of the first one that came out differently is given beside it; its next entry is
    /// [`Entry::DefinitionChanged`].
    pub(super) fn restored(
        root: ConversationId,
        definitions: &Arc<Definitions>,
        limits: Limits,
        kept: &[Kept],
        records: &[Record],
    ) -> (Self, Option<u64>) {
        let recorded = |kept: &[Kept], records: &[Record]| {
            let mut received = ReceivedInputs::default();
            for Kept { stamp, entry } in kept {
                if let Entry::Input { input, .. } = entry {
                    received.add(stamp.offset, input);
                }
            }
            let world = World::recorded(definitions.clone(), limits, &received, records);
            Core { world, ..Core::new(root.clone(), definitions.clone(), limits) }
        };
        let changed = kept.iter().rposition(|kept| matches!(kept.entry, Entry::DefinitionChanged { .. }));
        let adopted = records.iter().rposition(|record| match &record.payload {
            Payload::DefinitionChanged(p) => p.conversation_id == root.0,
            _ => false,
        });
        let (entries, before) = changed.zip(adopted).unwrap_or((0, 0));
        let mut core = match entries {
            0 => Core::new(root.clone(), definitions.clone(), limits),
            _ => recorded(&kept[..entries], &records[..before]),
        };
        let again = kept[entries..].iter().cloned();
        let made: Vec<Record> = again.flat_map(|kept| core.apply(kept.stamp, kept.entry).records).collect();
        match first_difference(&records[before..], &made) {
            None => (core, None),
            Some(place) => {
                let sequence = records.get(before + place).or(records.last()).map_or(1, |last| last.sequence);
                (recorded(kept, records), Some(sequence))
            }
        }
    }

    pub(super) fn world(&self) -> &World {
        &self.world
    }

    pub(super) fn call(&self, at: &ModelAddress) -> Option<&Call> {
        self.calls.get(at)
    }

    pub(super) fn recall(&self, by: &(RunId, TokenId)) -> Option<&Recall> {
        self.recalls.get(by)
    }

    /// Everything that is waited for: what a restart must ask again.
    pub(super) fn outstanding(&self) -> Applied {
        Applied {
            calls: self.calls.keys().cloned().collect(),
            recalls: self.recalls.keys().cloned().collect(),
            ..Applied::default()
        }
    }

    /// When [`Entry::Due`] is due.
    pub(super) fn deadline(&self) -> Option<Millis> {
        let timer = self.timers.first_key_value().map(|((at, _), _)| *at);
        let machines = self.world.conversations().filter_map(|(_, machine)| machine.deadline());
        machines.chain(timer).min()
    }

    /// Whether nothing happens any more unless somebody says something.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.recalls.is_empty() && self.deadline().is_none()
    }

    /// The conversation that an input is for: the one with the turn it speaks of.
    pub(super) fn home(&self, input: &Input) -> ConversationId {
        let turn = match input {
            Input::OperationDone { at, .. } => Some(&at.turn),
            Input::CancelTurn { turn, .. } => Some(turn),
            Input::ModelDone { at, .. } => Some(&at.turn),
            Input::HookDone { at, .. } => Some(&at.turn),
            Input::Approval { at, .. } => Some(&at.turn),
            Input::Open
            | Input::ClientOffer { .. }
            | Input::UserMessage { .. }
            | Input::AgentCall { .. }
            | Input::Wake
            | Input::RemoveParticipant { .. }
            | Input::DefinitionChanged { .. }
            | Input::Close => None,
        };
        let mut conversations = self.world.conversations();
        let home = turn.and_then(|turn| conversations.find(|(_, held)| held.state().turn(turn).is_some()));
        home.map_or_else(|| self.root.clone(), |(id, _)| id.clone())
    }

    /// Takes what has happened.
    pub(super) fn apply(&mut self, stamp: Stamp, entry: Entry) -> Applied {
        let mut applied = Applied::default();
        let mut queue = self.deliveries(stamp.now(), entry);
        let mut taken = 0;
        while let Some(delivery) = queue.pop_front() {
            if self.world.is_stale(stamp.now(), &delivery) {
                continue;
            }
            if taken == MOST_AT_ONCE {
                self.wait(stamp.now(), delivery);
                continue;
            }
            taken += 1;
            let outcome = self.world.take(stamp, &delivery);
            applied.records.extend(outcome.records);
            for ask in outcome.asks {
                match ask {
                    Ask::Deliver { after: 0, delivery } => queue.push_back(delivery),
                    Ask::Deliver { after, delivery } => {
                        self.wait(stamp.now().saturating_add(after), delivery)
                    }
                    Ask::CallModel { conversation, at, profile, request } => {
                        self.calls.insert(at.clone(), Call { conversation, profile, request });
                        applied.calls.push(at);
                    }
                    Ask::CancelModel { at } => {
                        self.calls.remove(&at);
                        applied.cancelled.push(at);
                    }
                    // The records tell whoever watches; what is open stands in the conversation's state.
                    Ask::AskClient { .. } | Ask::AskApproval { .. } => {}
                    Ask::Remember { run, token, agent, usage } => {
                        self.recalls.insert((run.clone(), token), Recall { agent, usage });
                        applied.recalls.push((run, token));
                    }
                }
            }
        }
        applied
    }

    /// What an entry means for the world.
    fn deliveries(&mut self, now: Millis, entry: Entry) -> VecDeque<Delivery> {
        match entry {
            Entry::Open { opening } => VecDeque::from([Delivery::Open { opening, call: None }]),
            Entry::Input { conversation, input } => {
                if let Input::ModelDone { at, .. } = &input {
                    self.calls.remove(at);
                }
                VecDeque::from([Delivery::Input { conversation, input }])
            }
            Entry::DefinitionChanged { first_difference } => {
                let all = self.world.conversations().map(|(id, _)| id.clone());
                all.map(|conversation| {
                    let input = Input::DefinitionChanged { first_difference };
                    Delivery::Input { conversation, input }
                })
                .collect()
            }
            Entry::Remembered { run, token, result } => {
                self.recalls.remove(&(run.clone(), token));
                VecDeque::from([Delivery::Remembered { run, token, result }])
            }
            Entry::Due => {
                let mut due = VecDeque::new();
                while let Some(entry) = self.timers.first_entry()
                    && entry.key().0 <= now
                {
                    due.push_back(entry.remove());
                }
                let late = |machine: &crate::conversation::Conversation| {
                    machine.deadline().is_some_and(|deadline| deadline <= now)
                };
                let conversations = self.world.conversations().filter(|(_, machine)| late(machine));
                due.extend(conversations.map(|(id, _)| Delivery::Wake { conversation: id.clone() }));
                due
            }
        }
    }

    fn wait(&mut self, at: Millis, delivery: Delivery) {
        self.timed += 1;
        self.timers.insert((at, self.timed), delivery);
    }
}

/// The place of the first record that is not the same.
fn first_difference(kept: &[Record], made: &[Record]) -> Option<usize> {
    let differs = kept.iter().zip(made).position(|(kept, made)| kept != made);
    let shorter = (kept.len() != made.len()).then_some(kept.len().min(made.len()));
    differs.or(shorter)
}
