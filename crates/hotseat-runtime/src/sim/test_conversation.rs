//! A whole conversation with an agent in one call.

use std::sync::Arc;

use hotseat_model::{PureModel, Request, Timed};
use hotseat_trace::Trace;

use serde_json::Value;

use super::{Journal, Outside, Rest, Sim, SimSettings};
use crate::conversation::{ApprovalVerdict, ContextEntry, Input, Millis, TurnEnd};
use crate::definition::{DefinitionError, Definitions, Persona};
use crate::failure::Failure;
use crate::ids::{AgentId, ConversationId, MessageId, TurnId};
use crate::world::{ApprovalQuestion, ClientCall};

/// How a conversation is held.
pub struct TestOptions {
    /// Who speaks for all agents.
    pub model: Box<dyn PureModel>,
    /// Who answers from outside.
    pub outside: Outside,
    /// What the client offers before the first message.
    pub offer: Option<Input>,
    /// How the world behaves.
    pub settings: SimSettings,
    /// Each message waits for the turn of the one before; otherwise they are sent at once.
    pub sequential: bool,
    /// How much virtual time may pass, in milliseconds.
    pub timeout_ms: Millis,
}

impl TestOptions {
    /// The usual way, with this model.
    pub fn new(model: impl PureModel + 'static) -> Self {
        TestOptions {
            model: Box::new(model),
            outside: Outside::default(),
            offer: None,
            settings: SimSettings::default(),
            sequential: false,
            timeout_ms: 24 * 60 * 60 * 1000,
        }
    }

    /// With a client that carries out its tools like this.
    #[must_use]
    pub fn client(
        mut self,
        client: impl FnMut(&ClientCall) -> Option<Timed<Result<Value, Failure>>> + Send + 'static,
    ) -> Self {
        self.outside.client = Some(Box::new(client));
        self
    }

    /// With a person who answers like this when a tool needs approval.
    #[must_use]
    pub fn person(
        mut self,
        person: impl FnMut(&ApprovalQuestion) -> Option<Timed<ApprovalVerdict>> + Send + 'static,
    ) -> Self {
        self.outside.person = Some(Box::new(person));
        self
    }

    /// With a client that offers this before the first message.
    #[must_use]
    pub fn offer(
        mut self,
        tools: Vec<hotseat_model::Tool>,
        context: Vec<ContextEntry>,
        state: Option<Value>,
    ) -> Self {
        self.offer = Some(Input::ClientOffer { tools, context, state });
        self
    }

    /// Each message waits for the turn of the one before.
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.sequential = true;
        self
    }

    /// With this seed for the order of what happens at the same time.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// With machines that are thrown away after every step and come back.
    #[must_use]
    pub fn crashing(mut self) -> Self {
        self.settings.crash = true;
        self
    }

    /// With this much virtual time, in milliseconds.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: Millis) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }
}

/// Something the user says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestMessage {
    /// What.
    pub content: String,
    /// How long after the one before, in milliseconds.
    pub delay_ms: Millis,
    /// The earlier message it answers.
    pub reply_to: Option<MessageId>,
}

impl From<&str> for TestMessage {
    fn from(content: &str) -> TestMessage {
        TestMessage { content: content.to_string(), delay_ms: 0, reply_to: None }
    }
}

impl TestMessage {
    /// The same, so many milliseconds after the one before.
    #[must_use]
    pub fn after_ms(mut self, delay_ms: Millis) -> Self {
        self.delay_ms = delay_ms;
        self
    }
}

/// What a conversation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// Every turn completed.
    Completed,
    /// A turn failed.
    Failed,
    /// Its time was over before every turn had ended.
    Timeout,
    /// Nothing could happen any more before every turn had ended.
    IdleTimeout,
}

/// A conversation that was held.
pub struct TestConversation {
    /// Its id.
    pub conversation_id: ConversationId,
    /// Its turns, in the order in which they began; those of agents that joined included.
    pub turn_ids: Vec<TurnId>,
    /// What it came to.
    pub status: RunStatus,
    /// Everything that happened.
    pub trace: Trace,
    /// What models were asked, in order.
    pub requests: Vec<Request>,
    /// Everything that has happened; the same again gives the same trace.
    pub journal: Journal,
    /// What is waited for, when it came to rest too early.
    pub waiting: Vec<String>,
    /// The steps of the model's script that answered nothing.
    pub unused: Vec<String>,
    /// Where it was held.
    pub sim: Sim,
}

/// Holds a conversation with an agent of this persona: everything it needs is made, the messages are sent, and what
/// happened is returned when nothing is left to do.
///
/// # Errors
/// When the persona, or something it refers to, cannot be used.
pub fn run_test_conversation<M: Into<TestMessage>>(
    persona: &Persona,
    messages: impl IntoIterator<Item = M>,
    options: TestOptions,
) -> Result<TestConversation, DefinitionError> {
    let (definitions, agent) = Definitions::of(persona)?;
    Ok(hold_test_conversation(&Arc::new(definitions), &agent, messages, options))
}

/// The same with an agent of definitions that are there already, for instance from files.
pub fn hold_test_conversation<M: Into<TestMessage>>(
    definitions: &Arc<Definitions>,
    agent: &AgentId,
    messages: impl IntoIterator<Item = M>,
    options: TestOptions,
) -> TestConversation {
    let mut sim = Sim::new(definitions.clone(), options.model, options.settings).with(options.outside);
    let id = sim.open("c1", agent);
    if let Some(offer) = options.offer {
        sim.send(&id, 0, offer);
    }
    let mut rest = Rest::Quiet;
    let mut delay = 0;
    for message in messages {
        let TestMessage { content, delay_ms, reply_to } = message.into();
        delay += delay_ms;
        sim.send(&id, delay, Input::UserMessage { user: "user".into(), content, reply_to });
        if options.sequential {
            rest = sim.run(options.timeout_ms);
            delay = 0;
        }
    }
    if !options.sequential {
        rest = sim.run(options.timeout_ms);
    }
    let turns = sim.conversation(&id).map_or(&[][..], |conversation| &conversation.state().turns);
    let failed = turns.iter().any(|turn| turn.phase == crate::conversation::Phase::Ended(TurnEnd::Failed));
    let turn_ids = turns.iter().map(|turn| turn.id.clone()).collect();
    let (status, waiting) = match rest {
        Rest::Quiet if failed => (RunStatus::Failed, Vec::new()),
        Rest::Quiet => (RunStatus::Completed, Vec::new()),
        Rest::Stalled(waiting) => (RunStatus::IdleTimeout, waiting),
        Rest::Late | Rest::Endless => (RunStatus::Timeout, sim.waiting()),
    };
    TestConversation {
        conversation_id: id.clone(),
        turn_ids,
        status,
        trace: sim.trace(),
        requests: sim.requests().to_vec(),
        journal: sim.journal().clone(),
        waiting,
        unused: sim.unused(),
        sim,
    }
}
