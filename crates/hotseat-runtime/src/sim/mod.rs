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

mod deliver;
mod host;
mod outside;
mod queue;
mod test_conversation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat_model::{PureModel, Request};
use hotseat_trace::{Execution, Record, Trace};

pub use outside::{ApprovalQuestion, ClientCall, Outside};
pub use test_conversation::{RunStatus, TestConversation, TestMessage, TestOptions, run_test_conversation};

use crate::conversation::{
    Conversation, EffectKey, Input, Millis, Opening, Operation, OperationStatus, Step, TimerKey,
};
use crate::definition::{Definitions, Limits};
use crate::ids::{AgentId, ConversationId, RunId};
use crate::memory::MemoryStore;
use crate::work::{Work, WorkContext, WorkInput};
use queue::{Delivery, Queue};

/// Something that happened to a conversation, with the time.
pub type Journal = Vec<(Millis, Input)>;

/// The simulated world around conversations.
pub struct Sim {
    definitions: Arc<Definitions>,
    settings: SimSettings,
    model: Box<dyn PureModel>,
    outside: Outside,
    now: Millis,
    steps: u64,
    queue: Queue,
    conversations: BTreeMap<ConversationId, Held>,
    works: BTreeMap<RunId, Running>,
    memory: MemoryStore,
    records: Vec<Record>,
    requests: Vec<Request>,
    /// What was asked for already, so that a conversation that comes back does not ask twice.
    issued: BTreeSet<(ConversationId, EffectKey)>,
    /// What is no longer wanted.
    cancelled: BTreeSet<RunId>,
    cancelled_calls: BTreeSet<EffectKey>,
    coverage: BTreeSet<(&'static str, &'static str)>,
    batches: Vec<(u64, u64)>,
}

/// How the world behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimSettings {
    /// Decides the order of what happens at the same time; with 0 it is the order of asking.
    pub seed: u64,
    /// Every machine is thrown away after every step and made anew from its journal.
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

/// A conversation with what has happened to it.
struct Held {
    opening: Opening,
    machine: Conversation,
    journal: Journal,
    /// When it will be woken.
    wakes: Option<Millis>,
}

/// A run of a task or workflow.
struct Running {
    machine: Work,
    made: (WorkContext, Made, serde_json::Value),
    journal: Vec<WorkInput>,
    execution: Execution,
    conversation: ConversationId,
    answer: AnswerTo,
}

/// What a run is a run of.
#[derive(Clone)]
enum Made {
    Task(Arc<crate::definition::Task>),
    Workflow(Arc<crate::definition::Workflow>),
}

/// Who waits for a run.
#[derive(Clone)]
enum AnswerTo {
    Hook(crate::conversation::HookAddress),
    Operation(crate::conversation::OperationAddress),
    Token(RunId, crate::work::TokenId),
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
            definitions,
            settings,
            model,
            outside: Outside::default(),
            now: 0,
            steps: 0,
            queue: Queue::new(settings.seed),
            conversations: BTreeMap::new(),
            works: BTreeMap::new(),
            memory: MemoryStore::default(),
            records: Vec::new(),
            requests: Vec::new(),
            issued: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            cancelled_calls: BTreeSet::new(),
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
        self.hold(opening);
        self.deliver(&id, &Input::Open);
        id
    }

    /// Lets something happen to a conversation, so many milliseconds from now.
    pub fn send(&mut self, conversation: &ConversationId, delay: Millis, input: Input) {
        let delivery = Delivery::Inputs { conversation: conversation.clone(), inputs: vec![input] };
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
                    self.rearm(&conversation);
                }
                continue;
            }
            self.now = self.now.max(at);
            self.steps += 1;
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
        self.conversations.get(id).map(|held| &held.machine)
    }

    /// Everything that has happened to a conversation.
    pub fn journal(&self, id: &ConversationId) -> &[(Millis, Input)] {
        self.conversations.get(id).map_or(&[], |held| &held.journal)
    }

    /// The rows of the turn table that were used: phase and what happened in it.
    pub fn coverage(&self) -> &BTreeSet<(&'static str, &'static str)> {
        &self.coverage
    }

    /// The events of each step: first and last sequence number.
    pub fn batches(&self) -> &[(u64, u64)] {
        &self.batches
    }

    /// What is waited for: turns that have not ended, with what they wait for.
    fn waiting(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        for held in self.conversations.values() {
            for turn in held.machine.state().active_turns() {
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
        (_, crate::conversation::Work::Client) => ", which the client is to answer",
        (_, _) => "",
    };
    format!("{} ({}{who})", operation.call, operation.tool)
}

/// A conversation made anew from what has happened to it, with what its last input led to.
pub fn replay(
    definitions: &Arc<Definitions>,
    limits: Limits,
    opening: &Opening,
    journal: &[(Millis, Input)],
) -> (Conversation, Step) {
    let mut machine = Conversation::new(definitions.clone(), limits, opening.clone());
    let mut last = Step::default();
    for (at, input) in journal {
        last = machine.handle(*at, input);
    }
    (machine, last)
}

/// The word for a timer in the table of what was covered.
fn timer_word(key: &TimerKey) -> &'static str {
    use crate::conversation::TimerKind;
    match key.kind {
        TimerKind::ContextRetry => "context retry",
        TimerKind::ContextDeadline => "context deadline",
        TimerKind::ModelRetry => "model retry",
        TimerKind::ModelDeadline => "model deadline",
        TimerKind::ExtractionRetry => "extraction retry",
        TimerKind::ExtractionDeadline => "extraction deadline",
        TimerKind::OperationRetry(_) => "operation retry",
        TimerKind::OperationDeadline(_) => "operation deadline",
    }
}
