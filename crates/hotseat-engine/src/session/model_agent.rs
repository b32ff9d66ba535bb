//! An agent whose language models are served by the test: its calls of models become events of its turns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hotseat_model::serve::{ServedConversation, ServedModelEvent, ServedModelEventKind};
use hotseat_model::{ModelError, ModelErrorKind, ModelReply, ModelToolResult};
use hotseat_targets::message::ConversationMessage;
use hotseat_targets::recorder::{EventInbox, TraceRecorder, TrafficMeter};
use hotseat_targets::{AgentInput, AgentSession, BoxFuture, CallVisibility, ProtocolCapabilities, TurnError};
use hotseat_trace::{
    AttemptFailure, ErrorInfo, FailureKind, LlmCallCompleted, LlmCallFailed, LlmCallStarted,
    LlmFaultInjected, Note, Payload,
};

use super::mcp_agent::shown_by_services;
use super::model_tool_calls::ModelToolCalls;
use crate::cases::MODEL_PREFIX;

/// Time that the answers of calls get to be reported after the end of their turn.
const ANSWER_REPORT_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum number of notes about models in one conversation.
const MAX_NOTES: usize = 100;
/// Maximum number of unused rules that a note lists.
const MAX_LISTED_RULES: usize = 10;

/// Slot for a conversation that outlives an attempt: one for all conversations of a process.
pub type ModelConversationSlot = Arc<Mutex<Option<ServedConversation>>>;

/// A session with an agent, and its conversation with the models that the test serves.
pub struct ModelAgent {
    agent: Box<dyn AgentSession>,
    /// `None` only while it is dropped.
    conversation: Option<ServedConversation>,
    observer: ModelObserver,
    /// Receives the conversation after the end.
    home: Option<ModelConversationSlot>,
}

impl ModelAgent {
    /// Adds a conversation with served models to a session. The conversation is returned to `home`.
    pub fn new(
        agent: Box<dyn AgentSession>,
        conversation: ServedConversation,
        home: Option<ModelConversationSlot>,
    ) -> ModelAgent {
        let replayed = conversation.models().filter(|model| conversation.is_replay(model));
        let observer = ModelObserver {
            replayed: replayed.map(str::to_string).collect(),
            tool_calls: (agent.capabilities().calls != CallVisibility::Protocol)
                .then(ModelToolCalls::default),
            ..ModelObserver::default()
        };
        ModelAgent { agent, conversation: Some(conversation), observer, home }
    }
}

impl Drop for ModelAgent {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            *home.lock().unwrap_or_else(PoisonError::into_inner) = self.conversation.take();
        }
    }
}

impl AgentSession for ModelAgent {
    fn conversation_id(&self) -> Arc<str> {
        self.agent.conversation_id()
    }

    fn capabilities(&self) -> ProtocolCapabilities {
        shown_by_services(self.agent.capabilities())
    }

    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        self.agent.seed_history(messages)
    }

    fn has_timestamps(&self) -> bool {
        self.agent.has_timestamps()
    }

    fn send_input<'a>(
        &'a mut self,
        input: AgentInput<'a>,
        recorder: &'a mut TraceRecorder,
    ) -> BoxFuture<'a, Result<(), TurnError>> {
        Box::pin(async move {
            let ModelAgent { agent, conversation: Some(conversation), observer, .. } = self else {
                return self.agent.send_input(input, recorder).await;
            };
            observer.sink = Some((recorder.inbox().clone(), recorder.traffic().clone()));
            // Calls since the last turn.
            observer.drain(conversation)?;
            observer.begin_turn(input.turn_id.clone());
            let outcome = tokio::select! {
                biased;
                failure = observer.watch(conversation) => Err(failure.into()),
                outcome = agent.send_input(input, recorder) => outcome,
            };
            let drained = observer.settle(conversation).await;
            recorder.flush_inbox();
            drained?;
            outcome
        })
    }

    fn check_trailing_output(&mut self) -> BoxFuture<'_, Result<(), AttemptFailure>> {
        Box::pin(async move {
            self.agent.check_trailing_output().await?;
            match &mut self.conversation {
                Some(conversation) => {
                    self.observer.drain(conversation)?;
                    self.observer.note_unused(conversation)?;
                    let failed = |message: String| AttemptFailure::new(FailureKind::TestError, message);
                    conversation.save_recordings().map_err(failed)
                }
                None => Ok(()),
            }
        })
    }

    fn service_addresses(&self) -> BTreeMap<String, String> {
        let mut addresses = self.agent.service_addresses();
        if let Some(conversation) = &self.conversation {
            let named = |name: &str| Some((format!("{MODEL_PREFIX}{name}"), conversation.url(name)?));
            addresses.extend(conversation.models().filter_map(named));
        }
        addresses
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.agent.close()
    }

    fn diagnostic_output(&self) -> Option<String> {
        self.agent.diagnostic_output()
    }
}

/// Turns events of served models into events of the trace.
#[derive(Default)]
struct ModelObserver {
    sink: Option<(EventInbox, Arc<TrafficMeter>)>,
    /// The current turn; after its end until the next one begins, it is the last one.
    turn: Option<Arc<str>>,
    /// Number of calls in the turn.
    calls_in_turn: u32,
    /// Turn of each open call, and its number in the turn.
    open: HashMap<u64, (Arc<str>, u32)>,
    /// Models that answer from recordings.
    replayed: BTreeSet<String>,
    /// Set if the models show the tool calls of the agent.
    tool_calls: Option<ModelToolCalls>,
    notes: usize,
}

impl ModelObserver {
    fn begin_turn(&mut self, turn: Arc<str>) {
        (self.turn, self.calls_in_turn) = (Some(turn), 0);
    }

    /// Processes events until one of them ends the turn, and returns the failure.
    async fn watch(&mut self, conversation: &mut ServedConversation) -> AttemptFailure {
        while let Some(event) = conversation.next_event().await {
            if let Err(failure) = self.process(event) {
                return failure;
            }
        }
        std::future::pending().await
    }

    /// Processes the events that are there.
    fn drain(&mut self, conversation: &mut ServedConversation) -> Result<(), AttemptFailure> {
        let mut first = Ok(());
        while let Some(event) = conversation.try_next_event() {
            first = first.and(self.process(event));
        }
        first
    }

    /// Processes the events of a turn that has ended. A model reports a reply before it sends its end, but the end of a relayed
    /// answer may reach the agent a moment before it is reported.
    async fn settle(&mut self, conversation: &mut ServedConversation) -> Result<(), AttemptFailure> {
        let mut first = self.drain(conversation);
        let until = tokio::time::Instant::now() + ANSWER_REPORT_TIMEOUT;
        while !self.open.is_empty() {
            match tokio::time::timeout_at(until, conversation.next_event()).await {
                Ok(Some(event)) => first = first.and(self.process(event)),
                Ok(None) | Err(_) => break,
            }
        }
        first
    }

    fn emit(&self, at: Instant, payload: impl Into<Payload>) -> Result<(), AttemptFailure> {
        match &self.sink {
            Some((inbox, traffic)) => inbox.push(at, payload.into(), traffic),
            None => Ok(()),
        }
    }

    fn process(&mut self, event: ServedModelEvent) -> Result<(), AttemptFailure> {
        let ServedModelEvent { at, model, kind } = event;
        match kind {
            ServedModelEventKind::CallReceived {
                call,
                requested,
                input_tokens,
                messages,
                tools,
                results,
                ..
            } => {
                // Calls before the first turn, for instance to test the connection, belong to no turn.
                let Some(turn_id) = self.turn.clone() else { return Ok(()) };
                self.complete_tools(at, &model, results)?;
                self.calls_in_turn += 1;
                self.open.insert(call, (turn_id.clone(), self.calls_in_turn));
                let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
                let started = LlmCallStarted {
                    turn_id,
                    model_profile_id: requested.into(),
                    input_tokens,
                    call_no: self.calls_in_turn,
                    attempt: 1,
                    message_count: count(messages),
                    tool_count: count(tools),
                };
                self.emit(at, started)
            }
            ServedModelEventKind::CallAnswered { call, reply, duration, .. } => {
                let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                self.complete_call(at, &model, call, *reply, duration_ms)
            }
            ServedModelEventKind::CallFailed { call, error, .. } => {
                let failed = self.fail_call(at, call, &error);
                if error.kind != ModelErrorKind::Unanswered {
                    return failed;
                }
                let (first, rest) = error.message.split_once('\n').unwrap_or((&error.message, ""));
                let message = format!("the served model `{model}` has no reply: {first}");
                let help = match self.replayed.contains(&*model) {
                    true => "record the case again with `type: relay`, or `ignore` what may differ",
                    false => "add a rule to the script of the model",
                };
                let detail = if rest.is_empty() { help.to_string() } else { format!("{rest}\n{help}") };
                Err(AttemptFailure::new(FailureKind::TestError, message).with_detail(detail))
            }
            ServedModelEventKind::FaultInjected { call, rule, fault } => {
                let Some((turn_id, call_no)) = self.open.get(&call).cloned() else { return Ok(()) };
                let fault = fault.to_string().into();
                self.emit(at, LlmFaultInjected { turn_id, call_no, model, fault, rule })
            }
            ServedModelEventKind::Refused { message } => {
                self.note(at, format!("the served model `{model}` refused a request: {message}"))
            }
        }
    }

    fn complete_call(
        &mut self,
        at: Instant,
        model: &Arc<str>,
        call: u64,
        reply: ModelReply,
        duration_ms: u64,
    ) -> Result<(), AttemptFailure> {
        let Some((turn_id, call_no)) = self.open.remove(&call) else { return Ok(()) };
        let called = turn_id.clone();
        let completed = LlmCallCompleted {
            turn_id,
            call_no,
            input_tokens: (!reply.usage.estimated).then_some(reply.usage.input_tokens),
            output_tokens: reply.usage.output_tokens,
            has_tool_use: !reply.tool_calls.is_empty(),
            stop_reason: reply.stop.as_str().into(),
            duration_ms,
        };
        self.emit(at, completed)?;
        let Some(tool_calls) = &mut self.tool_calls else { return Ok(()) };
        let invoked: Vec<Payload> =
            reply.tool_calls.into_iter().map(|call| tool_calls.invoke(model, &called, call)).collect();
        invoked.into_iter().try_for_each(|payload| self.emit(at, payload))
    }

    /// Reports the results of tool calls that a request contains.
    fn complete_tools(
        &mut self,
        at: Instant,
        model: &Arc<str>,
        results: Vec<ModelToolResult>,
    ) -> Result<(), AttemptFailure> {
        let Some(tool_calls) = &mut self.tool_calls else { return Ok(()) };
        let completed: Vec<Payload> =
            results.into_iter().filter_map(|result| tool_calls.complete(model, result)).collect();
        completed.into_iter().try_for_each(|payload| self.emit(at, payload))
    }

    fn fail_call(&mut self, at: Instant, call: u64, error: &ModelError) -> Result<(), AttemptFailure> {
        let Some((turn_id, call_no)) = self.open.remove(&call) else { return Ok(()) };
        let error = ErrorInfo {
            code: Some(error.kind.to_string()),
            message: error.message.clone(),
            retriable: Some(error.can_retry()),
        };
        self.emit(at, LlmCallFailed { turn_id, call_no, attempt: 1, error, will_retry: false })
    }

    /// Notes the rules that answered no call.
    fn note_unused(&mut self, conversation: &ServedConversation) -> Result<(), AttemptFailure> {
        for (model, unused) in conversation.unused_answers() {
            let more = match unused.len().saturating_sub(MAX_LISTED_RULES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let listed = unused[..unused.len().min(MAX_LISTED_RULES)].join(", ");
            self.note(Instant::now(), format!("the served model `{model}` did not use {listed}{more}"))?;
        }
        Ok(())
    }

    fn note(&mut self, at: Instant, message: String) -> Result<(), AttemptFailure> {
        let Some(turn_id) = self.turn.clone().filter(|_| self.notes < MAX_NOTES) else { return Ok(()) };
        self.notes += 1;
        self.emit(at, Note { turn_id, message, event: None })
    }
}
