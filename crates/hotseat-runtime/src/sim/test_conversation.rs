//! Runs a whole conversation with an agent in one call.

use std::sync::Arc;

use hotseat_model::{ModelRequest, PureModel, TimedValue};
use hotseat_trace::Trace;

use serde_json::Value;

use super::{DeliveryJournal, ExternalParties, SimDriver, SimSettings, SimulationEnd};
use crate::conversation::{ApprovalVerdict, ContextEntry, ConversationInput, Millis, TurnEnd};
use crate::definition::{DefinitionError, Definitions, Persona};
use crate::failure::WorkFailure;
use crate::ids::{AgentId, ConversationId, MessageId, TurnId};
use crate::world::{ApprovalQuestion, ClientToolCall};

/// Settings of a test conversation.
#[must_use]
pub struct TestOptions {
    /// Model of all agents.
    pub model: Box<dyn PureModel>,
    /// Simulated client and human.
    pub external: ExternalParties,
    /// Offer of the client before the first message.
    pub offer: Option<ConversationInput>,
    /// Settings of the simulation.
    pub settings: SimSettings,
    /// If true, each message waits for the previous turn to end; otherwise all are sent immediately.
    pub sequential: bool,
    /// Limit of virtual time, in milliseconds.
    pub timeout_ms: Millis,
}

impl TestOptions {
    /// Creates default settings with this model.
    pub fn new(model: impl PureModel + 'static) -> Self {
        TestOptions {
            model: Box::new(model),
            external: ExternalParties::default(),
            offer: None,
            settings: SimSettings::default(),
            sequential: false,
            timeout_ms: 24 * 60 * 60 * 1000,
        }
    }

    /// Sets the responder for client tools.
    pub fn client(
        mut self,
        client: impl FnMut(&ClientToolCall) -> Option<TimedValue<Result<Value, WorkFailure>>> + Send + 'static,
    ) -> Self {
        self.external.client = Some(Box::new(client));
        self
    }

    /// Sets the responder for approvals.
    pub fn human(
        mut self,
        person: impl FnMut(&ApprovalQuestion) -> Option<TimedValue<ApprovalVerdict>> + Send + 'static,
    ) -> Self {
        self.external.human = Some(Box::new(person));
        self
    }

    /// Sets the client's offer before the first message.
    pub fn offer(
        mut self,
        tools: Vec<hotseat_model::ModelTool>,
        context: Vec<ContextEntry>,
        state: Option<Value>,
    ) -> Self {
        self.offer = Some(ConversationInput::ClientOffer { tools, context, state });
        self
    }

    /// Makes each message wait for the previous turn to end.
    pub fn sequential(mut self) -> Self {
        self.sequential = true;
        self
    }

    /// Sets the seed for the order of simultaneous deliveries.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Discards and restores the world after every step.
    pub fn restart_every_step(mut self) -> Self {
        self.settings.restart_every_step = true;
        self
    }

    /// Sets the limit of virtual time, in milliseconds.
    pub fn timeout_ms(mut self, timeout_ms: Millis) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }
}

/// Message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestMessage {
    /// Text of the message.
    pub content: String,
    /// Delay after the previous message, in milliseconds.
    pub delay_ms: Millis,
    /// The earlier message that this one answers.
    pub reply_to: Option<MessageId>,
}

impl From<&str> for TestMessage {
    fn from(content: &str) -> TestMessage {
        TestMessage { content: content.to_string(), delay_ms: 0, reply_to: None }
    }
}

impl TestMessage {
    /// Sets the delay after the previous message, in milliseconds.
    #[must_use]
    pub fn after_ms(mut self, delay_ms: Millis) -> Self {
        self.delay_ms = delay_ms;
        self
    }
}

/// Result of a test conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestStatus {
    /// Every turn completed.
    Completed,
    /// A turn failed.
    Failed,
    /// The time limit was reached while turns were active.
    Timeout,
    /// Turns were active, but nothing could happen any more.
    IdleTimeout,
}

/// Completed test conversation.
pub struct TestConversation {
    /// The id of the conversation.
    pub conversation_id: ConversationId,
    /// The turns in order of start, including those of joined agents.
    pub turn_ids: Vec<TurnId>,
    /// Result of the conversation.
    pub status: TestStatus,
    /// The complete trace.
    pub trace: Trace,
    /// Model requests, in order.
    pub requests: Vec<Arc<ModelRequest>>,
    /// Journal of the simulation; replaying it produces the same trace.
    pub journal: DeliveryJournal,
    /// Unanswered operations, if the conversation stalled.
    pub waiting: Vec<String>,
    /// Steps of the model's script that were not used.
    pub unused_rules: Vec<String>,
    /// The simulation, which has handed over trace, requests and journal.
    pub sim: SimDriver,
}

/// Runs a conversation with an agent of this persona: sends the messages and returns when nothing is left to
/// do.
///
/// # Errors
/// If the persona or something it refers to is invalid.
pub fn run_test_conversation<M: Into<TestMessage>>(
    persona: &Persona,
    messages: impl IntoIterator<Item = M>,
    options: TestOptions,
) -> Result<TestConversation, DefinitionError> {
    let (definitions, agent) = Definitions::from_persona(persona)?;
    Ok(run_test_conversation_with(&Arc::new(definitions), &agent, messages, options))
}

/// Runs a conversation with an agent of existing definitions, for example from files.
pub fn run_test_conversation_with<M: Into<TestMessage>>(
    definitions: &Arc<Definitions>,
    agent: &AgentId,
    messages: impl IntoIterator<Item = M>,
    options: TestOptions,
) -> TestConversation {
    let mut sim =
        SimDriver::new(definitions.clone(), options.model, options.settings).with_external(options.external);
    let id = sim.open("c1", agent);
    if let Some(offer) = options.offer {
        sim.send(&id, 0, offer);
    }
    let mut end = SimulationEnd::Idle;
    let mut delay = 0;
    for message in messages {
        let TestMessage { content, delay_ms, reply_to } = message.into();
        delay += delay_ms;
        sim.send(
            &id,
            delay,
            ConversationInput::UserMessage { user: "user".into(), content, reply_to, client_id: None },
        );
        if options.sequential {
            end = sim.run(options.timeout_ms);
            delay = 0;
        }
    }
    if !options.sequential {
        end = sim.run(options.timeout_ms);
    }
    let turns = sim.conversation(&id).map_or(&[][..], |conversation| &conversation.state().turns);
    let failed =
        turns.iter().any(|turn| turn.phase == crate::conversation::TurnPhase::Ended(TurnEnd::Failed));
    let turn_ids = turns.iter().map(|turn| turn.id.clone()).collect();
    let (status, waiting) = match end {
        SimulationEnd::Idle if failed => (TestStatus::Failed, Vec::new()),
        SimulationEnd::Idle => (TestStatus::Completed, Vec::new()),
        SimulationEnd::Stalled(waiting) => (TestStatus::IdleTimeout, waiting),
        SimulationEnd::DeadlineReached | SimulationEnd::StepLimitReached => {
            (TestStatus::Timeout, sim.unanswered())
        }
    };
    let (trace, requests, journal) = sim.hand_over();
    TestConversation {
        conversation_id: id,
        turn_ids,
        status,
        trace,
        requests,
        journal,
        waiting,
        unused_rules: sim.unused_rules(),
        sim,
    }
}
