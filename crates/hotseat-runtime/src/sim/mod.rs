//! Conversations in virtual time: one thread, no waiting, and everything in an order that a seed decides.
//!
//! ```
//! use hotseat_model::{Function, Reply, Request, Timed};
//! use hotseat_runtime::definition::persona;
//! use hotseat_runtime::sim::{RunStatus, TestOptions, run_test_conversation};
//!
//! let model = Function::new("greeter", |_: &Request| Timed::now(Ok(Reply::text("Hello to you"))));
//! let result = run_test_conversation(&persona("Greeter"), ["Hello!"], TestOptions::new(model))?;
//! assert_eq!(result.status, RunStatus::Completed);
//! assert_eq!(result.trace.messages().assistant()[0].content, "Hello to you");
//! # Ok::<(), hotseat_runtime::definition::DefinitionError>(())
//! ```

mod coverage;
mod outside;
mod queue;
mod test_conversation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use hotseat_model::{PureModel, Request};
use hotseat_trace::{Record, Trace};

pub use outside::Outside;
pub use test_conversation::{
    RunStatus, TestConversation, TestMessage, TestOptions, hold_test_conversation, run_test_conversation,
};

use crate::conversation::{
    Conversation, Input, Millis, ModelAddress, Opening, Operation, OperationStatus, Work,
};
use crate::definition::{Definitions, Limits};
use crate::ids::{AgentId, ConversationId};
use crate::memory::MemoryStore;
use crate::world::{Ask, Delivery, Outcome, Stamp, World, replay};
use queue::Queue;

/// Everything that has happened to a world, with the time; the same again gives the same.
pub type Journal = Vec<(Stamp, Delivery)>;

/// The simulated surroundings of a world.
pub struct Sim {
    settings: SimSettings,
    world: World,
    model: Box<dyn PureModel>,
    outside: Outside,
    now: Millis,
    steps: u64,
    queue: Queue,
    /// When conversations will be woken.
    wakes: BTreeMap<ConversationId, Millis>,
    memory: MemoryStore,
    journal: Journal,
    records: Vec<Record>,
    requests: Vec<Request>,
    /// Model calls that are no longer wanted.
    cancelled: BTreeSet<ModelAddress>,
    coverage: BTreeSet<(&'static str, &'static str)>,
    batches: Vec<(u64, u64)>,
}

/// How the simulated surroundings behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimSettings {
    /// Decides the order of what happens at the same time; with 0 it is the order of asking.
    pub seed: u64,
    /// The world is thrown away after every step, before anything it asks for is done, and made anew from its journal.
    pub crash: bool,
    /// The limits of the runtime.
    pub limits: Limits,
    /// How many steps may be taken before the run is given up as endless.
    pub most_steps: u64,
}

impl Default for SimSettings {
    fn default() -> Self {
        SimSettings { seed: 0, crash: false, limits: Limits::default(), most_steps: 1_000_000 }
    }
}

/// How a simulation came to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Nothing is left to do.
    Quiet,
    /// Nothing can happen any more, but something is waited for.
    Stalled(Vec<String>),
    /// Its time is over.
    Late,
    /// It takes steps without end.
    Endless,
}

impl Sim {
    /// A world with these definitions, in which `model` speaks for everybody.
    pub fn new(definitions: Arc<Definitions>, model: Box<dyn PureModel>, settings: SimSettings) -> Self {
        Sim {
            settings,
            world: World::new(definitions, settings.limits),
            model,
            outside: Outside::default(),
            now: 0,
            steps: 0,
            queue: Queue::new(settings.seed),
            wakes: BTreeMap::new(),
            memory: MemoryStore::default(),
            journal: Vec::new(),
            records: Vec::new(),
            requests: Vec::new(),
            cancelled: BTreeSet::new(),
            coverage: BTreeSet::new(),
            batches: Vec::new(),
        }
    }

    /// With these people and programs outside.
    #[must_use]
    pub fn with(mut self, outside: Outside) -> Self {
        self.outside = outside;
        self
    }

    /// Opens a conversation with an agent.
    pub fn open(&mut self, conversation: &str, agent: &AgentId) -> ConversationId {
        let id = ConversationId::from(conversation);
        let opening = Opening { conversation: id.clone(), agent: agent.clone(), parent: None };
        self.take(Delivery::Open { opening, call: None });
        id
    }

    /// Lets something happen to a conversation, so many milliseconds from now.
    pub fn send(&mut self, conversation: &ConversationId, delay: Millis, input: Input) {
        let delivery = Delivery::Input { conversation: conversation.clone(), input };
        self.queue.push_first(self.now + delay, delivery);
    }

    /// Runs until nothing is left to do, or until `deadline`.
    pub fn run(&mut self, deadline: Millis) -> Rest {
        while let Some(at) = self.queue.next_at() {
            if at > deadline {
                return Rest::Late;
            }
            if self.steps >= self.settings.most_steps {
                return Rest::Endless;
            }
            let Some((at, delivery)) = self.queue.pop() else { break };
            if self.is_stale(at, &delivery) {
                // Being woken for something that has been settled takes no time, but something else may be due later.
                if let Delivery::Wake { conversation } = delivery {
                    self.wakes.remove(&conversation);
                    self.arm(&conversation);
                }
                continue;
            }
            self.now = self.now.max(at);
            self.steps += 1;
            if let Delivery::Wake { conversation } = &delivery {
                self.wakes.remove(conversation);
            }
            self.take(delivery);
        }
        let waiting = self.waiting();
        if waiting.is_empty() { Rest::Quiet } else { Rest::Stalled(waiting) }
    }

    /// The time.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// What happened so far.
    pub fn trace(&self) -> Trace {
        Trace::new(self.records.iter().cloned())
    }

    /// The steps of the model's script that have answered nothing.
    pub fn unused(&self) -> Vec<String> {
        self.model.unused()
    }

    /// What models were asked, in order.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// What agents remember.
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// A conversation.
    pub fn conversation(&self, id: &ConversationId) -> Option<&Conversation> {
        self.world.conversation(id)
    }

    /// Everything that has happened.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The rows of the turn table that were used: phase and what happened in it.
    pub fn coverage(&self) -> &BTreeSet<(&'static str, &'static str)> {
        &self.coverage
    }

    /// The events of each step: first and last sequence number.
    pub fn batches(&self) -> &[(u64, u64)] {
        &self.batches
    }

    fn is_stale(&self, at: Millis, delivery: &Delivery) -> bool {
        match delivery {
            Delivery::Input { input: Input::ModelDone { at, .. }, .. } => self.cancelled.contains(at),
            other => self.world.is_stale(at, other),
        }
    }

    /// Something happens: the world takes it, its records are kept, and then what it asks for is done.
    fn take(&mut self, delivery: Delivery) {
        if let Delivery::Input { conversation, input } = &delivery
            && let Some(machine) = self.world.conversation(conversation)
        {
            self.coverage.extend(coverage::covered(machine.state(), input, self.now));
        }
        if let Delivery::Wake { conversation } = &delivery
            && let Some(machine) = self.world.conversation(conversation)
        {
            self.coverage.extend(coverage::covered(machine.state(), &Input::Wake, self.now));
        }
        let stamp = Stamp::simulated(self.now);
        let outcome = self.world.take(stamp, &delivery);
        self.journal.push((stamp, delivery));
        if self.settings.crash {
            self.come_back(&outcome);
        }
        if let (Some(first), Some(last)) = (outcome.records.first(), outcome.records.last()) {
            self.batches.push((first.sequence, last.sequence));
        }
        self.records.extend(outcome.records);
        for ask in outcome.asks {
            self.answer(ask);
        }
        for conversation in outcome.touched {
            self.arm(&conversation);
        }
    }

    /// Throws the world away after its records are kept and before anything it asks for is done, and makes it anew.
    fn come_back(&mut self, outcome: &Outcome) {
        let definitions = self.world.definitions().clone();
        let (world, again) = replay(&definitions, self.settings.limits, &self.journal);
        assert!(world == self.world, "a world comes back as it was");
        assert!(again == *outcome, "the last step of a world comes back as it was");
        self.world = world;
    }

    /// Does what the world asks for.
    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Deliver { after, delivery } => self.queue.push(self.now.saturating_add(after), delivery),
            Ask::CallModel { conversation, at, profile: _, request } => {
                let answer = self.model.answer(&request);
                self.requests.push(*request);
                let input = Input::ModelDone { at, result: answer.value };
                self.later(answer.delay, conversation, input);
            }
            Ask::AskClient { conversation, call } => {
                let answer = self.outside.client.as_mut().and_then(|client| client(&call));
                if let Some(answer) = answer {
                    let input = Input::OperationDone { at: call.at, result: answer.value };
                    self.later(answer.delay, conversation, input);
                }
            }
            Ask::AskApproval { conversation, question } => {
                let answer = self.outside.person.as_mut().and_then(|person| person(&question));
                if let Some(answer) = answer {
                    let input = Input::Approval { at: question.at, verdict: answer.value };
                    self.later(answer.delay, conversation, input);
                }
            }
            Ask::CancelModel { at } => drop(self.cancelled.insert(at)),
            Ask::Remember { run, token, agent, usage } => {
                let result = Ok(self.memory.carry_out(&agent, &usage, self.now));
                self.queue.push(self.now, Delivery::Remembered { run, token, result });
            }
        }
    }

    fn later(&mut self, delay: Duration, conversation: ConversationId, input: Input) {
        let after = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let delivery = Delivery::Input { conversation, input };
        self.queue.push(self.now.saturating_add(after), delivery);
    }

    /// Sees to it that a conversation is woken in time.
    fn arm(&mut self, id: &ConversationId) {
        let Some(deadline) = self.world.deadline(id) else { return };
        if self.wakes.get(id).is_none_or(|wakes| deadline < *wakes || *wakes < self.now) {
            self.wakes.insert(id.clone(), deadline);
            self.queue.push(deadline, Delivery::Wake { conversation: id.clone() });
        }
    }

    /// What is waited for: turns that have not ended, with what they wait for.
    fn waiting(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for (_, machine) in self.world.conversations() {
            for turn in machine.state().active_turns() {
                let operations: Vec<_> = turn.open_operations().map(waited_for).collect();
                waiting.push(format!("turn {} waits for {}", turn.id, operations.join(", ")));
            }
        }
        waiting
    }
}

/// An operation that has not ended, with who is to say something.
fn waited_for(operation: &Operation) -> String {
    let who = match (operation.status, &operation.work) {
        (OperationStatus::AwaitingApproval, _) => ", which a person is to approve",
        (_, Work::Client) => ", which the client is to answer",
        (_, _) => "",
    };
    format!("{} ({}{who})", operation.call, operation.tool)
}
