//! What the tests of this crate share: scripts by position, and the ways in which every conversation is held.

#![allow(dead_code, reason = "each test program uses its part of it")]

mod live;
pub mod subjects;

use std::sync::Arc;

use hotseat_model::Request;
use hotseat_model::script::{Rule, Script, Scripted};
use hotseat_runtime::definition::Persona;
use hotseat_runtime::ids::TurnId;
use hotseat_runtime::memory::{MemoryRecord, MemoryStore};
use hotseat_runtime::sim::{RunStatus, TestConversation, TestMessage, TestOptions, run_test_conversation};
use hotseat_trace::{InvariantOptions, Trace, assert_conversation_invariants};

/// What holds a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    Simulated,
    Live,
}

/// A conversation that was held by either driver.
pub struct Held {
    pub status: RunStatus,
    pub trace: Trace,
    pub turn_ids: Vec<TurnId>,
    pub requests: Vec<Request>,
    pub memory: MemoryStore,
}

impl Held {
    /// What an agent finds in its memory.
    pub fn memory(&self, agent: &str, query: &str) -> Vec<MemoryRecord> {
        self.memory.search(&agent.into(), query, 10)
    }
}

/// What an agent says at one place of a conversation: in its turn and at its call, both from 1.
pub fn at(agent: &str, turn: u32, call: u32) -> Rule {
    Rule::new().agent(agent).turn(turn).call(call)
}

/// A conversation that a test holds, in all the ways in which it can be held.
pub struct Test {
    pub persona: Persona,
    pub messages: Vec<TestMessage>,
    pub script: Vec<Rule>,
    pub sequential: bool,
    pub allow_failed_turns: bool,
    pub unused_steps: bool,
    /// Who is outside; made anew for every conversation.
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

    /// With a client and people outside.
    pub fn outside(mut self, outside: impl Fn(TestOptions) -> TestOptions + 'static) -> Test {
        self.outside = Arc::new(outside);
        self
    }

    pub fn sequential(mut self) -> Test {
        self.sequential = true;
        self
    }

    /// Steps of the script may answer nothing.
    pub fn unused_steps(mut self) -> Test {
        self.unused_steps = true;
        self
    }

    pub fn allow_failed_turns(mut self) -> Test {
        self.allow_failed_turns = true;
        self
    }

    /// The script, made once for many conversations.
    pub fn compiled(&self) -> Arc<Script> {
        let script =
            self.script.iter().cloned().fold(Script::builder("script"), |script, rule| script.rule(rule));
        Arc::new(script.build().unwrap())
    }

    pub fn model(&self) -> Scripted {
        Scripted::new(self.compiled())
    }

    pub fn options(&self) -> TestOptions {
        self.options_of(self.compiled())
    }

    fn options_of(&self, script: Arc<Script>) -> TestOptions {
        let options = (self.outside)(TestOptions::new(Scripted::new(script)));
        if self.sequential { options.sequential() } else { options }
    }

    pub fn held(&self, options: TestOptions) -> TestConversation {
        run_test_conversation(&self.persona, self.messages.clone(), options).unwrap()
    }

    /// Holds the conversation and checks what holds for every one.
    pub fn run(&self) -> TestConversation {
        let result = self.held(self.options());
        assert_eq!(result.waiting, [""; 0], "nothing is waited for");
        if !self.unused_steps {
            assert_eq!(result.unused, [""; 0], "every step of the script is used");
        }
        self.check(&result);
        result
    }

    /// Holds the conversation with this driver and checks what holds for every one.
    pub fn hold(&self, driver: Driver) -> Held {
        let held = match driver {
            Driver::Simulated => {
                let result = self.held(self.options());
                let TestConversation { status, trace, turn_ids, requests, sim, .. } = result;
                Held { status, trace, turn_ids, requests, memory: sim.memory().clone() }
            }
            Driver::Live => live::hold(self),
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

    /// Holds the conversation with many orders of what happens at the same time, and with machines that crash.
    pub fn sweep(&self, seeds: u64, also: impl Fn(&TestConversation)) {
        let (status, script) = (self.run().status, self.compiled());
        let options = || self.options_of(script.clone());
        for seed in 0..seeds {
            let result = self.held(options().seed(seed));
            assert_eq!(result.status, status, "seed {seed}: {:?}", result.waiting);
            self.check(&result);
            also(&result);
        }
        for seed in [0, 1, 2, 3] {
            let smooth = self.held(options().seed(seed)).trace.to_jsonl().unwrap();
            let crashing = self.held(options().seed(seed).crashing()).trace.to_jsonl().unwrap();
            assert_eq!(smooth, crashing, "seed {seed}: a crash leaves no mark");
        }
    }
}

/// A conversation that came to something.
pub trait Came {
    fn to(&self) -> RunStatus;
}

impl Came for TestConversation {
    fn to(&self) -> RunStatus {
        self.status
    }
}

impl Came for Held {
    fn to(&self) -> RunStatus {
        self.status
    }
}

pub fn completed(result: &impl Came) {
    assert_eq!(result.to(), RunStatus::Completed);
}
