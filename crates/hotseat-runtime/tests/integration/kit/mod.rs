//! Shared helpers of the runtime tests: scripts by position, and the ways to run a conversation.

mod live;
pub mod subjects;

use std::sync::Arc;

use hotseat_model::ModelRequest;
use hotseat_model::script::{ModelScript, Rule, ScriptedModel};
use hotseat_runtime::definition::Persona;
use hotseat_runtime::ids::TurnId;
use hotseat_runtime::memory::{MemoryRecord, MemoryStore};
use hotseat_runtime::sim::{TestConversation, TestMessage, TestOptions, TestStatus, run_test_conversation};
use hotseat_trace::{InvariantOptions, Trace, assert_conversation_invariants};

/// Driver that runs a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    Simulated,
    Live,
}

/// Result of a conversation with either driver.
pub struct ConversationRun {
    pub status: TestStatus,
    pub trace: Trace,
    pub turn_ids: Vec<TurnId>,
    pub requests: Vec<Arc<ModelRequest>>,
    pub memory: MemoryStore,
}

impl ConversationRun {
    /// Search results in the memory of an agent.
    pub fn memory(&self, agent: &str, query: &str) -> Vec<MemoryRecord> {
        self.memory.search(&agent.into(), query, 10)
    }
}

/// A script rule for one position: agent, turn and call, both counted from 1.
pub fn at(agent: &str, turn: u32, call: u32) -> Rule {
    Rule::new().agent(agent).turn(turn).call(call)
}

/// A test conversation that can be run in several ways.
pub struct Test {
    pub persona: Persona,
    pub messages: Vec<TestMessage>,
    pub script: Vec<Rule>,
    pub sequential: bool,
    pub allow_failed_turns: bool,
    pub unused_steps: bool,
    /// Client and people of the conversation, created for each run.
    outside: Arc<dyn Fn(TestOptions) -> TestOptions>,
}

impl Test {
    pub fn new<M: Into<TestMessage>>(
        persona: Persona,
        messages: impl IntoIterator<Item = M>,
        script: impl IntoIterator<Item = Rule>,
    ) -> Test {
        Test {
            persona,
            messages: messages.into_iter().map(Into::into).collect(),
            script: script.into_iter().collect(),
            sequential: false,
            allow_failed_turns: false,
            unused_steps: false,
            outside: Arc::new(|options| options),
        }
    }

    /// Sets the client and people.
    pub fn with_externals(mut self, outside: impl Fn(TestOptions) -> TestOptions + 'static) -> Test {
        self.outside = Arc::new(outside);
        self
    }

    pub fn sequential(mut self) -> Test {
        self.sequential = true;
        self
    }

    /// Allows script steps that are never used.
    pub fn unused_steps(mut self) -> Test {
        self.unused_steps = true;
        self
    }

    pub fn allow_failed_turns(mut self) -> Test {
        self.allow_failed_turns = true;
        self
    }

    /// Compiles the script once for many conversations.
    pub fn compiled(&self) -> Arc<ModelScript> {
        let script = self
            .script
            .iter()
            .cloned()
            .fold(ModelScript::builder("script"), |script, rule| script.rule(rule));
        Arc::new(script.build().unwrap())
    }

    pub fn model(&self) -> ScriptedModel {
        ScriptedModel::new(self.compiled())
    }

    pub fn options(&self) -> TestOptions {
        self.options_of(self.compiled())
    }

    fn options_of(&self, script: Arc<ModelScript>) -> TestOptions {
        let options = (self.outside)(TestOptions::new(ScriptedModel::new(script)));
        if self.sequential { options.sequential() } else { options }
    }

    pub fn run_with(&self, options: TestOptions) -> TestConversation {
        run_test_conversation(&self.persona, self.messages.clone(), options).unwrap()
    }

    /// Runs the conversation and checks the general invariants.
    pub fn run(&self) -> TestConversation {
        let result = self.run_with(self.options());
        assert_eq!(result.waiting, [""; 0], "nothing is waited for");
        if !self.unused_steps {
            assert_eq!(result.unused_rules, [""; 0], "every step of the script is used");
        }
        self.check(&result);
        result
    }

    /// Runs the conversation with this driver and checks the general invariants.
    pub fn run_with_driver(&self, driver: Driver) -> ConversationRun {
        let held = match driver {
            Driver::Simulated => {
                let result = self.run_with(self.options());
                let TestConversation { status, trace, turn_ids, requests, sim, .. } = result;
                ConversationRun { status, trace, turn_ids, requests, memory: sim.memory().clone() }
            }
            Driver::Live => live::run_with_driver(self),
        };
        assert_conversation_invariants(&held.trace, self.invariants());
        held
    }

    fn invariants(&self) -> InvariantOptions {
        InvariantOptions { allow_failed_turns: self.allow_failed_turns, deny_tool_failures: false }
    }

    pub fn check(&self, result: &TestConversation) {
        assert_conversation_invariants(&result.trace, self.invariants());
    }

    /// Runs the conversation with many schedules of simultaneous events and with simulated crashes.
    pub fn sweep(&self, seeds: u64, also: impl Fn(&TestConversation)) {
        let (status, script) = (self.run().status, self.compiled());
        let options = || self.options_of(script.clone());
        for seed in 0..seeds {
            let result = self.run_with(options().seed(seed));
            assert_eq!(result.status, status, "seed {seed}: {:?}", result.waiting);
            self.check(&result);
            also(&result);
        }
        for seed in [0, 1, 2, 3] {
            let smooth = self.run_with(options().seed(seed)).trace.to_jsonl().unwrap();
            let crashing = self.run_with(options().seed(seed).restart_every_step()).trace.to_jsonl().unwrap();
            assert_eq!(smooth, crashing, "seed {seed}: a crash leaves no mark");
        }
    }
}

/// A conversation with a final status.
pub trait HasStatus {
    fn status(&self) -> TestStatus;
}

impl HasStatus for TestConversation {
    fn status(&self) -> TestStatus {
        self.status
    }
}

impl HasStatus for ConversationRun {
    fn status(&self) -> TestStatus {
        self.status
    }
}

pub fn completed(result: &impl HasStatus) {
    assert_eq!(result.status(), TestStatus::Completed);
}
