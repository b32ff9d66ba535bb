//! Conversations in virtual time, single-threaded, in a deterministic order that a seed determines.
//!
//! ```
//! use hotseat_model::{FunctionModel, ModelReply, ModelRequest, TimedValue};
//! use hotseat_runtime::definition::persona;
//! use hotseat_runtime::sim::{TestOptions, TestStatus, run_test_conversation};
//!
//! let model = FunctionModel::new("greeter", |_: &ModelRequest| {
//!     TimedValue::now(Ok(ModelReply::text("Hello to you")))
//! });
//! let result = run_test_conversation(&persona("Greeter"), ["Hello!"], TestOptions::new(model))?;
//! assert_eq!(result.status, TestStatus::Completed);
//! assert_eq!(&*result.trace.messages().assistant()[0].content, "Hello to you");
//! # Ok::<(), hotseat_runtime::definition::DefinitionError>(())
//! ```

mod coverage;
mod external;
mod queue;
mod test_conversation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use hotseat_model::{ModelRequest, PureModel};
use hotseat_trace::{EventRecord, Trace};

pub use external::ExternalParties;
pub use test_conversation::{
    TestConversation, TestMessage, TestOptions, TestStatus, run_test_conversation, run_test_conversation_with,
};

use crate::conversation::{
    ConversationInput, ConversationMachine, ConversationOrigin, Millis, ModelAddress, OperationStatus,
    OperationTarget, ToolOperation,
};
use crate::definition::{Definitions, RuntimeLimits};
use crate::ids::{AgentId, ConversationId};
use crate::memory::MemoryStore;
use crate::world::{ConversationWorld, DeliveryOutcome, DeliveryTime, DriverRequest, WorldDelivery, replay};
use queue::DeliveryQueue;

/// All deliveries with their times. Replaying them produces the same world.
pub type DeliveryJournal = Vec<(DeliveryTime, WorldDelivery)>;

/// Driver of a world in virtual time.
pub struct SimDriver {
    settings: SimSettings,
    world: ConversationWorld,
    model: Box<dyn PureModel>,
    external: ExternalParties,
    now: Millis,
    steps: u64,
    queue: DeliveryQueue,
    /// Times at which conversations will be woken.
    wakes: BTreeMap<ConversationId, Millis>,
    memory: MemoryStore,
    journal: DeliveryJournal,
    records: Vec<EventRecord>,
    requests: Vec<Arc<ModelRequest>>,
    /// Cancelled model calls.
    cancelled: BTreeSet<ModelAddress>,
    /// Covered rows of the turn state table, with repetitions.
    coverage: Vec<(&'static str, &'static str)>,
    batches: Vec<(u64, u64)>,
}

/// Settings of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimSettings {
    /// Seed for the order of simultaneous deliveries; 0 keeps the order of insertion.
    pub seed: u64,
    /// If true, the world is discarded after every step, before its requests are handled, and rebuilt from
    /// its journal.
    pub restart_every_step: bool,
    /// The limits of the runtime.
    pub limits: RuntimeLimits,
    /// Maximum number of steps; more count as an endless run.
    pub max_steps: u64,
}

impl Default for SimSettings {
    fn default() -> Self {
        SimSettings {
            seed: 0,
            restart_every_step: false,
            limits: RuntimeLimits::default(),
            max_steps: 1_000_000,
        }
    }
}

/// Reason for the end of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulationEnd {
    /// Nothing is left to do.
    Idle,
    /// Nothing can happen, but these operations are unanswered.
    Stalled(Vec<String>),
    /// The deadline was reached.
    DeadlineReached,
    /// The maximum number of steps was reached.
    StepLimitReached,
}

impl SimDriver {
    /// Creates a world with these definitions, in which `model` answers for all agents.
    pub fn new(definitions: Arc<Definitions>, model: Box<dyn PureModel>, settings: SimSettings) -> Self {
        SimDriver {
            settings,
            world: ConversationWorld::new(definitions, settings.limits),
            model,
            external: ExternalParties::default(),
            now: 0,
            steps: 0,
            queue: DeliveryQueue::new(settings.seed),
            wakes: BTreeMap::new(),
            memory: MemoryStore::default(),
            journal: Vec::new(),
            records: Vec::new(),
            requests: Vec::new(),
            cancelled: BTreeSet::new(),
            coverage: Vec::new(),
            batches: Vec::new(),
        }
    }

    /// Sets the simulated client and human.
    #[must_use]
    pub fn with_external(mut self, outside: ExternalParties) -> Self {
        self.external = outside;
        self
    }

    /// Opens a conversation with an agent.
    pub fn open(&mut self, conversation: &str, agent: &AgentId) -> ConversationId {
        let id = ConversationId::from(conversation);
        let opening = ConversationOrigin { conversation: id.clone(), agent: agent.clone(), parent: None };
        self.deliver(WorldDelivery::Open { opening, call: None });
        id
    }

    /// Sends an input to a conversation after a delay, in milliseconds.
    pub fn send(&mut self, conversation: &ConversationId, delay: Millis, input: ConversationInput) {
        let delivery = WorldDelivery::Input { conversation: conversation.clone(), input };
        self.queue.push_first(self.now + delay, delivery);
    }

    /// Runs until nothing is left to do, or until `deadline`.
    pub fn run(&mut self, deadline: Millis) -> SimulationEnd {
        while let Some(at) = self.queue.next_at() {
            if at > deadline {
                return SimulationEnd::DeadlineReached;
            }
            if self.steps >= self.settings.max_steps {
                return SimulationEnd::StepLimitReached;
            }
            let Some((at, delivery)) = self.queue.pop() else { break };
            if self.is_stale(at, &delivery) {
                // A wake-up for a settled operation takes no time, but another timer may be due later.
                if let WorldDelivery::Wake { conversation } = delivery {
                    self.wakes.remove(&conversation);
                    self.schedule_wake(&conversation);
                }
                continue;
            }
            self.now = self.now.max(at);
            self.steps += 1;
            if let WorldDelivery::Wake { conversation } = &delivery {
                self.wakes.remove(conversation);
            }
            self.deliver(delivery);
        }
        let waiting = self.unanswered();
        if waiting.is_empty() { SimulationEnd::Idle } else { SimulationEnd::Stalled(waiting) }
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// Returns the trace so far.
    pub fn trace(&self) -> Trace {
        Trace::new(self.records.iter().cloned())
    }

    /// Returns the steps of the model's script that were not used.
    pub fn unused_rules(&self) -> Vec<String> {
        self.model.unused()
    }

    /// Returns the model requests, in order.
    pub fn requests(&self) -> &[Arc<ModelRequest>] {
        &self.requests
    }

    /// Returns the memories of the agents.
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// Returns a conversation by id.
    pub fn conversation(&self, id: &ConversationId) -> Option<&ConversationMachine> {
        self.world.conversation(id)
    }

    /// Returns all deliveries so far.
    pub fn journal(&self) -> &DeliveryJournal {
        &self.journal
    }

    /// Hands over the trace, the model requests and the journal so far, without a copy.
    fn hand_over(&mut self) -> (Trace, Vec<Arc<ModelRequest>>, DeliveryJournal) {
        let records = std::mem::take(&mut self.records);
        (Trace::new(records), std::mem::take(&mut self.requests), std::mem::take(&mut self.journal))
    }

    /// Returns the covered rows of the turn state table: phase and event.
    pub fn coverage(&self) -> BTreeSet<(&'static str, &'static str)> {
        self.coverage.iter().copied().collect()
    }

    /// Returns the first and last sequence number of each step's events.
    pub fn batches(&self) -> &[(u64, u64)] {
        &self.batches
    }

    fn is_stale(&self, at: Millis, delivery: &WorldDelivery) -> bool {
        match delivery {
            WorldDelivery::Input { input: ConversationInput::ModelDone { at, .. }, .. } => {
                self.cancelled.contains(at)
            }
            other => self.world.is_stale(at, other),
        }
    }

    /// Delivers to the world, stores its records, and then handles its requests.
    fn deliver(&mut self, delivery: WorldDelivery) {
        let received = match &delivery {
            WorldDelivery::Input { conversation, input } => Some((conversation, input)),
            WorldDelivery::Wake { conversation } => Some((conversation, &ConversationInput::Wake)),
            WorldDelivery::Open { .. } | WorldDelivery::Run { .. } | WorldDelivery::Remembered { .. } => None,
        };
        if let Some((conversation, input)) = received
            && let Some(machine) = self.world.conversation(conversation)
        {
            coverage::add_covered_rows(machine.state(), input, self.now, &mut self.coverage);
        }
        let stamp = DeliveryTime::simulated(self.now);
        let outcome = self.world.deliver(stamp, &delivery);
        self.journal.push((stamp, delivery));
        if self.settings.restart_every_step {
            self.restart(&outcome);
        }
        if let (Some(first), Some(last)) = (outcome.records.first(), outcome.records.last()) {
            self.batches.push((first.sequence, last.sequence));
        }
        self.records.extend(outcome.records);
        for ask in outcome.requests {
            self.handle_request(ask);
        }
        for conversation in outcome.touched {
            self.schedule_wake(&conversation);
        }
    }

    /// Discards the world and rebuilds it from its journal.
    fn restart(&mut self, outcome: &DeliveryOutcome) {
        let definitions = self.world.definitions().clone();
        let (world, repeated) = replay(&definitions, self.settings.limits, &self.journal);
        assert!(world == self.world, "the rebuilt world equals the original");
        assert!(repeated == *outcome, "the rebuilt world repeats its last step");
        self.world = world;
    }

    /// Handles a request of the world.
    fn handle_request(&mut self, ask: DriverRequest) {
        match ask {
            DriverRequest::Deliver { after, delivery } => {
                self.queue.push(self.now.saturating_add(after), delivery)
            }
            DriverRequest::CallModel { conversation, at, profile: _, request } => {
                let answer = self.model.answer(&request);
                self.requests.push(request);
                let input = ConversationInput::ModelDone { at, result: answer.value };
                self.schedule_input(answer.delay, conversation, input);
            }
            DriverRequest::AskClient { conversation, call } => {
                let answer = self.external.client.as_mut().and_then(|client| client(&call));
                if let Some(answer) = answer {
                    let input =
                        ConversationInput::OperationDone { at: call.at, result: answer.value.map(Arc::new) };
                    self.schedule_input(answer.delay, conversation, input);
                }
            }
            DriverRequest::AskApproval { conversation, question } => {
                let answer = self.external.human.as_mut().and_then(|person| person(&question));
                if let Some(answer) = answer {
                    let input = ConversationInput::Approval { at: question.at, verdict: answer.value };
                    self.schedule_input(answer.delay, conversation, input);
                }
            }
            DriverRequest::CancelModel { at } => drop(self.cancelled.insert(at)),
            DriverRequest::Remember { run, token, agent, usage } => {
                let result = Ok(self.memory.execute(&agent, &usage, self.now));
                self.queue.push(self.now, WorldDelivery::Remembered { run, token, result });
            }
        }
    }

    fn schedule_input(&mut self, delay: Duration, conversation: ConversationId, input: ConversationInput) {
        let after = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let delivery = WorldDelivery::Input { conversation, input };
        self.queue.push(self.now.saturating_add(after), delivery);
    }

    /// Schedules the next wake-up of a conversation.
    fn schedule_wake(&mut self, id: &ConversationId) {
        let Some(deadline) = self.world.deadline(id) else { return };
        if self.wakes.get(id).is_none_or(|wakes| deadline < *wakes || *wakes < self.now) {
            self.wakes.insert(id.clone(), deadline);
            self.queue.push(deadline, WorldDelivery::Wake { conversation: id.clone() });
        }
    }

    /// Returns descriptions of the active turns and their open operations.
    fn unanswered(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for (_, machine) in self.world.conversations() {
            for turn in machine.state().active_turns() {
                let operations: Vec<_> = turn.open_operations().map(operation_description).collect();
                waiting.push(format!("turn {} waits for {}", turn.id, operations.join(", ")));
            }
        }
        waiting
    }
}

/// Describes an open operation and the party that must answer.
fn operation_description(operation: &ToolOperation) -> String {
    let who = match (operation.status, &operation.work) {
        (OperationStatus::AwaitingApproval, _) => ", waiting for approval",
        (_, OperationTarget::Client) => ", waiting for the client",
        (_, _) => "",
    };
    format!("{} ({}{who})", operation.call, operation.tool)
}
