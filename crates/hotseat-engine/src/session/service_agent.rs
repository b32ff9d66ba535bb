//! An agent whose MCP servers or language models belong to the test: what they see becomes events of its turns.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hotseat_targets::message::ConversationMessage;
use hotseat_targets::recorder::{EventInbox, TrafficMeter};
use hotseat_targets::{AgentInput, AgentSession, BoxFuture, ProtocolCapabilities, TurnFuture};
use hotseat_trace::{AttemptFailure, CallVisibility, Note, Payload};

use crate::cases::ListedTools;

/// Time that the answers of calls get to be reported after the end of their turn. A service reports an answer as it sends it, but
/// the agent may have ended its turn a moment before.
const ANSWER_REPORT_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum number of notes about the services of one kind in one conversation.
const MAX_NOTES: usize = 100;

/// Slot for a conversation that outlives an attempt: one for all conversations of a process.
pub type ConversationSlot<C> = Arc<Mutex<Option<C>>>;

/// Turns what the services of a conversation see into events of the trace.
pub trait ServiceObserver: Send {
    /// A conversation with all services of one kind.
    type Conversation: Send;
    /// What a service sees.
    type Event;

    /// Waits for the next event. Cancel-safe.
    fn next_event(conversation: &mut Self::Conversation) -> impl Future<Output = Option<Self::Event>> + Send;

    /// Returns the next event if there is one.
    fn try_next_event(conversation: &mut Self::Conversation) -> Option<Self::Event>;

    /// Returns the addresses of the services, by name.
    fn addresses(conversation: &Self::Conversation) -> Vec<(String, String)>;

    /// Describes the requests, other than calls, that the services had not answered at this time.
    fn awaited_requests(_: &Self::Conversation, _: Instant) -> Vec<String> {
        Vec::new()
    }

    /// Returns the tools that the services have listed, by the name of the service.
    fn listed_tools(&self) -> ListedTools {
        ListedTools::new()
    }

    /// The events of the current turn.
    fn turn_events(&mut self) -> &mut TurnEvents;

    /// Processes an event. Fails if the event ends the turn.
    fn process(&mut self, event: Self::Event) -> Result<(), AttemptFailure>;

    /// True while a call has no answer.
    fn has_open_calls(&self) -> bool;

    /// Starts a turn.
    fn begin_turn(&mut self) {}

    /// Ends a turn, whose calls are no longer waited for.
    fn end_turn(&mut self) {}

    /// Ends a conversation after its last turn, whose later events are not processed yet. Fails if the case fails because of it.
    fn end_conversation(&mut self, _conversation: &mut Self::Conversation) -> Result<(), AttemptFailure> {
        Ok(())
    }
}

/// A session with an agent, and its conversation with services of the test.
pub struct ServiceAgent<O: ServiceObserver> {
    agent: Box<dyn AgentSession>,
    /// `None` only while it is dropped.
    conversation: Option<O::Conversation>,
    observer: O,
    /// Receives the conversation after the end.
    home: Option<ConversationSlot<O::Conversation>>,
}

impl<O: ServiceObserver> ServiceAgent<O> {
    /// Adds a conversation to a session. The conversation is returned to `home`.
    pub(super) fn with_observer(
        agent: Box<dyn AgentSession>,
        conversation: O::Conversation,
        observer: O,
        home: Option<ConversationSlot<O::Conversation>>,
    ) -> ServiceAgent<O> {
        ServiceAgent { agent, conversation: Some(conversation), observer, home }
    }
}

impl<O: ServiceObserver> Drop for ServiceAgent<O> {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            *home.lock().unwrap_or_else(PoisonError::into_inner) = self.conversation.take();
        }
    }
}

impl<O: ServiceObserver> AgentSession for ServiceAgent<O> {
    fn conversation_id(&self) -> Arc<str> {
        self.agent.conversation_id()
    }

    fn capabilities(&self) -> ProtocolCapabilities {
        let own = self.agent.capabilities();
        // The services show calls that the protocol does not.
        let calls = match own.calls {
            CallVisibility::Protocol => CallVisibility::Protocol,
            CallVisibility::Services | CallVisibility::Hidden => CallVisibility::Services,
        };
        ProtocolCapabilities { calls, ..own }
    }

    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        self.agent.seed_history(messages)
    }

    fn has_timestamps(&self) -> bool {
        self.agent.has_timestamps()
    }

    fn send_input<'a>(&'a mut self, input: AgentInput<'a>) -> TurnFuture<'a> {
        Box::pin(async move {
            let ServiceAgent { agent, conversation: Some(conversation), observer, .. } = self else {
                return self.agent.send_input(input).await;
            };
            let recorder = input.recorder;
            observer.turn_events().sink = Some((recorder.inbox().clone(), recorder.traffic().clone()));
            // Calls since the last turn.
            drain(observer, conversation)?;
            observer.turn_events().turn = Some(input.turn_id.clone());
            observer.begin_turn();
            let input = AgentInput { recorder: &mut *recorder, ..input };
            let outcome = tokio::select! {
                biased;
                failure = watch(observer, conversation) => Err(failure.into()),
                outcome = agent.send_input(input) => outcome,
            };
            let settled = settle(observer, conversation).await;
            observer.end_turn();
            recorder.flush_inbox();
            settled?;
            outcome
        })
    }

    fn check_trailing_output(&mut self) -> BoxFuture<'_, Result<(), AttemptFailure>> {
        self.agent.check_trailing_output()
    }

    fn complete_conversation(&mut self) -> Result<(), AttemptFailure> {
        self.agent.complete_conversation()?;
        let Some(conversation) = &mut self.conversation else { return Ok(()) };
        self.observer.end_conversation(conversation)
    }

    fn service_addresses(&self) -> BTreeMap<String, String> {
        let mut addresses = self.agent.service_addresses();
        addresses.extend(self.conversation.iter().flat_map(O::addresses));
        addresses
    }

    fn listed_tools(&self) -> ListedTools {
        let mut listed = self.agent.listed_tools();
        listed.extend(self.observer.listed_tools());
        listed
    }

    fn awaited_requests(&self, at: Instant) -> Vec<String> {
        let mut requests = self.agent.awaited_requests(at);
        requests
            .extend(self.conversation.iter().flat_map(|conversation| O::awaited_requests(conversation, at)));
        requests
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.agent.close()
    }

    fn diagnostic_output(&self) -> Option<String> {
        self.agent.diagnostic_output()
    }
}

/// Processes events until one of them ends the turn, and returns the failure.
async fn watch<O: ServiceObserver>(observer: &mut O, conversation: &mut O::Conversation) -> AttemptFailure {
    while let Some(event) = O::next_event(conversation).await {
        if let Err(failure) = observer.process(event) {
            return failure;
        }
    }
    std::future::pending().await
}

/// Processes the events that are there.
pub(super) fn drain<O: ServiceObserver>(
    observer: &mut O,
    conversation: &mut O::Conversation,
) -> Result<(), AttemptFailure> {
    let mut first = Ok(());
    while let Some(event) = O::try_next_event(conversation) {
        first = first.and(observer.process(event));
    }
    first
}

/// Processes the events of a turn that has ended. Waits a short time for answers that are about to be reported.
async fn settle<O: ServiceObserver>(
    observer: &mut O,
    conversation: &mut O::Conversation,
) -> Result<(), AttemptFailure> {
    let mut first = drain(observer, conversation);
    let until = tokio::time::Instant::now() + ANSWER_REPORT_TIMEOUT;
    while observer.has_open_calls() {
        match tokio::time::timeout_at(until, O::next_event(conversation)).await {
            Ok(Some(event)) => first = first.and(observer.process(event)),
            Ok(None) | Err(_) => break,
        }
    }
    first
}

/// Events that services add to the current turn.
#[derive(Default)]
pub struct TurnEvents {
    sink: Option<(EventInbox, Arc<TrafficMeter>)>,
    /// The current turn; after its end until the next one begins, it is the last one.
    pub(super) turn: Option<Arc<str>>,
    notes: usize,
}

impl TurnEvents {
    /// Adds an event with its time. Fails if the conversation exceeds a limit.
    pub(super) fn emit(&self, at: Instant, payload: impl Into<Payload>) -> Result<(), AttemptFailure> {
        match &self.sink {
            Some((inbox, traffic)) => inbox.push(at, payload.into(), traffic),
            None => Ok(()),
        }
    }

    /// Adds a note for the user, unless there are too many. Fails as [`TurnEvents::emit`].
    pub(super) fn note(&mut self, at: Instant, message: String) -> Result<(), AttemptFailure> {
        let Some(turn_id) = self.turn.clone().filter(|_| self.notes < MAX_NOTES) else { return Ok(()) };
        self.notes += 1;
        self.emit(at, Note { turn_id, message, event: None })
    }
}
