//! Hotseat's own agent in this process: the agent of `hotseat serve` without a server.
//!
//! Each conversation has its own host, so cases cannot affect each other. The trace contains the agent's own
//! events; conversations with other agents and workflow runs are separate executions. Tool calls of other agents that
//! it calls are its own calls, too.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use hotseat_document::is_blank;
use hotseat_model::{
    Model, ModelError, ModelErrorKind, ModelRequest, ModelTool, ReplyDelta, ReplyFuture, ReplySink,
};
use hotseat_runtime::conversation::{
    ApprovalVerdict, ContextEntry, ConversationInput as Told, OperationAddress,
};
use hotseat_runtime::definition::{AgentDefinition, ToolDefinition, ToolTarget};
use hotseat_runtime::failure::{ErrorCode, WorkFailure as ToolFailure};
use hotseat_runtime::files::{LoadedAgent, ModelConnector};
use hotseat_runtime::ids::{CallId, TurnId};
use hotseat_runtime::live::{
    ConversationHandle, ConversationHost, HostError, HostOptions, ModelRegistry, Signal, Watcher,
};
use hotseat_runtime::store::HookDigests;
use hotseat_trace::{
    AgentRunFailed, AttemptFailure, ConversationTurn, ErrorInfo, EventRecord, ExecutionInfo, ExecutionKind,
    FailureKind, InterruptRaised, Note, Origin, Payload, TimeOffset, ToolCompleted, ToolFailed,
    ToolInvocation,
};
use serde_json::Value;

use crate::connection::http::{self, HttpClient};
use crate::connection::{TurnError, TurnLimits};
use crate::message::{
    ConversationMessage, InterruptReply, InterruptRequest, MessageRole, RequestIdentity, ScriptedAnswers,
    ToolReply, joined_text, unique_id,
};
use crate::recorder::TraceRecorder;
use crate::target::client_tools::{self, ClientCall};
use crate::target::template::message_json;
use crate::target::{
    AgentInput, AgentSession, MAX_CLIENT_REQUESTS, ProtocolCapabilities, TurnFuture, TurnRecorder,
    check_unoffered_call, empty_answer, too_many_requests, unanswered_interrupt,
};

/// A target that runs an agent in this process.
#[derive(Debug, Clone)]
pub struct EmbeddedTarget {
    /// The agent and its definitions.
    pub agent: Arc<LoadedAgent>,
    /// The file it was loaded from.
    pub path: PathBuf,
    /// Id of the conversation; generated if absent.
    pub conversation_id: Option<String>,
    /// State before the first turn; `None` if the client shares none.
    pub state: Option<Value>,
    /// Context entries for the agent.
    pub context: Vec<ContextEntry>,
    /// The user identity.
    pub identity: RequestIdentity,
    /// Models that `options.connector` can name.
    pub connectors: BTreeMap<String, ModelConnector>,
}

/// Maximum size of an input or output of a run that builds a request or extracts memories. A longer one is recorded as a digest: it
/// repeats the conversation for each model call.
const MAX_HOOK_VALUE_BYTES: usize = 4096;

/// Turn options that an embedded agent supports.
pub const SUPPORTED_OPTIONS: [&str; 2] = ["connector", "metadata"];

/// Returns true if an embedded agent meets an entry of `options.skip` by design: its conversations are never
/// stored, and all its events are in the trace.
pub fn satisfies_skip(what: &str, wanted: &Value) -> bool {
    match what {
        "history" => *wanted == Value::Bool(true),
        "trace" => *wanted == Value::Bool(false),
        _ => false,
    }
}

/// A session with an embedded agent.
pub struct EmbeddedSession {
    http: Arc<HttpClient>,
    target: EmbeddedTarget,
    id: Arc<str>,
    /// Messages before the first turn, as context of the agent's model.
    seeded_history: Vec<ContextEntry>,
    conversation: Option<EmbeddedConversation>,
}

/// A started conversation.
struct EmbeddedConversation {
    handle: ConversationHandle,
    watcher: Watcher,
    models: Arc<SelectableModel>,
    /// Context last sent to the agent.
    context: Vec<ContextEntry>,
    /// A turn that awaits the user because of a call of an asking tool.
    waiting_turn: Option<TurnId>,
}

/// The agent's own model and its alternatives; one of them is active. All live as long as the conversation.
struct SelectableModel {
    own: Arc<dyn Model>,
    others: Vec<(String, Arc<dyn Model>)>,
    /// Index of the active alternative, from 1; 0 is the own model.
    active: AtomicUsize,
}

impl SelectableModel {
    /// Selects the model with this name, or the own model without a name.
    fn select(&self, name: Option<&str>) -> Result<(), AttemptFailure> {
        let place = match name {
            None => 0,
            Some(name) => match self.others.iter().position(|(known, _)| known == name) {
                Some(place) => place + 1,
                None => {
                    let message = format!("unknown connector `{name}`");
                    return Err(AttemptFailure::new(FailureKind::TestError, message));
                }
            },
        };
        self.active.store(place, Ordering::SeqCst);
        Ok(())
    }

    fn active_model(&self) -> &Arc<dyn Model> {
        let place = self.active.load(Ordering::SeqCst).checked_sub(1);
        place.and_then(|place| self.others.get(place)).map_or(&self.own, |(_, model)| model)
    }
}

impl Model for SelectableModel {
    fn name(&self) -> &str {
        self.active_model().name()
    }

    fn call<'a>(&'a self, request: &'a ModelRequest, sink: &'a mut dyn ReplySink) -> ReplyFuture<'a> {
        self.active_model().call(request, sink)
    }
}

/// State of one turn.
struct EmbeddedTurn<'a> {
    /// Id in the trace.
    id: Arc<str>,
    agent_turn_id: TurnId,
    /// Arrival of the first piece of a message, by the agent's turn id.
    first_delta: HashMap<TurnId, TimeOffset>,
    /// Number of requests to the client.
    client_requests: usize,
    /// Answers of the client to interrupts, by id.
    interrupt_answers: HashMap<Arc<str>, InterruptReply>,
    /// Calls that the test answered.
    answered_calls: HashSet<Arc<str>>,
    /// Calls that the agent rejected; their tool is known from the move that follows.
    rejected_calls: Vec<ToolFailed>,
    digests: HookDigests,
    /// Profile of the agent's model, and the connector that answers in its place in this turn.
    replaced_model: Option<(Arc<str>, Arc<str>)>,
    /// Agents in conversations of their own, by turn.
    called_agents: HashMap<Arc<str>, Option<Arc<str>>>,
    script: &'a mut ScriptedAnswers,
    recorder: &'a mut TraceRecorder,
}

/// Action after an event.
enum TurnAction {
    Continue,
    /// Send the client's answer.
    Answer(Told),
    /// Run a call of a tool that the client offers.
    RunTool(ToolInvocation),
    /// The turn is complete.
    Done,
}

impl EmbeddedSession {
    /// Opens a session. Nothing is sent yet.
    pub fn open(http: Arc<HttpClient>, target: EmbeddedTarget) -> Self {
        let id = target.conversation_id.clone().unwrap_or_else(unique_id);
        EmbeddedSession { http, target, id: id.into(), seeded_history: Vec::new(), conversation: None }
    }

    async fn run_turn(&mut self, input: AgentInput<'_>) -> Result<(), TurnError> {
        let AgentInput { turn_id, text, options, script, limits, recorder, .. } = input;
        let context = self.context(options);
        let talk = match &mut self.conversation {
            Some(talk) => {
                talk.update_context(context, script).await?;
                talk
            }
            none => none.insert(start_conversation(&self.target, &self.id, context, script).await?),
        };
        if let Some(turn) = talk.waiting_turn.take() {
            // The next user message is not a result of the call.
            let reason = "the user continued without answering".to_string();
            talk.handle.send(Told::CancelTurn { turn, reason }).await.map_err(host_failure)?;
        }
        let connector = options.and_then(|options| options.get("connector")?.as_str());
        talk.models.select(connector)?;
        let user = self.target.identity.user.text.clone();
        let said = Told::UserMessage { user, content: text.to_string(), reply_to: None, client_id: None };
        let sent = talk.handle.send(said).await.map_err(host_failure)?;
        let Some(own) = sent.turn else {
            let reason = sent.ignored.unwrap_or_default();
            return Err(AttemptFailure::new(
                FailureKind::AgentError,
                format!("the agent did not start a turn: {reason}"),
            )
            .into());
        };
        let mut turn = EmbeddedTurn {
            id: turn_id,
            agent_turn_id: own.clone(),
            first_delta: HashMap::new(),
            client_requests: 0,
            interrupt_answers: HashMap::new(),
            answered_calls: HashSet::new(),
            rejected_calls: Vec::new(),
            digests: HookDigests::new(MAX_HOOK_VALUE_BYTES),
            replaced_model: connector.map(|connector| (self.target.agent.profile(), connector.into())),
            called_agents: HashMap::new(),
            script,
            recorder,
        };
        let held = talk.run_turn(&mut turn, &self.http, limits).await;
        if held.is_err() {
            // Later events of this turn are ignored.
            let reason = "the test has cancelled the turn".to_string();
            let _ = talk.handle.send(Told::CancelTurn { turn: own, reason }).await;
        }
        held
    }

    /// Returns the context entries of a turn.
    fn context(&self, options: Option<&Value>) -> Vec<ContextEntry> {
        let EmbeddedTarget { context, identity, .. } = &self.target;
        let mut entries = [&self.seeded_history[..], context].concat();
        let mut tell = |description: &str, value: String| {
            entries.push(ContextEntry { description: description.to_string(), value });
        };
        let words = [("user", &identity.user), ("team", &identity.team), ("locale", &identity.locale)];
        for (name, given) in words {
            if let Some(given) = given.explicit() {
                tell(name, given.to_string());
            }
        }
        let metadata = options.and_then(|options| options.get("metadata")?.as_object());
        for (name, value) in metadata.into_iter().flatten() {
            tell(name, value.as_str().map_or_else(|| value.to_string(), str::to_string));
        }
        entries
    }
}

/// Starts the conversation and offers the client's tools.
async fn start_conversation(
    target: &EmbeddedTarget,
    id: &str,
    context: Vec<ContextEntry>,
    script: &ScriptedAnswers,
) -> Result<EmbeddedConversation, AttemptFailure> {
    let EmbeddedTarget { agent, state, connectors, .. } = target;
    if let Some(wrong) = script.tools().iter().find_map(|tool| executed_tool_error(agent, &tool.name)) {
        return Err(AttemptFailure::new(FailureKind::TestError, wrong));
    }
    let unusable = |error: ModelError| {
        AttemptFailure::new(FailureKind::TestError, format!("cannot use a model of the agent: {error}"))
    };
    let mut opened = agent.models().map_err(unusable)?;
    let profile = agent.profile();
    let own = opened
        .remove(&profile)
        .ok_or_else(|| AttemptFailure::new(FailureKind::TestError, "the agent has no model".to_string()))?;
    let others = connectors.iter().map(|(name, connector)| Ok((name.clone(), connector.open()?)));
    let others = others.collect::<Result<_, _>>().map_err(unusable)?;
    let choice = Arc::new(SelectableModel { own, others, active: AtomicUsize::new(0) });
    let models = opened
        .into_iter()
        .fold(ModelRegistry::default(), |models, (profile, model)| models.with_model(&profile, model));
    let models = models.with_model(&profile, choice.clone());
    let options = HostOptions { limits: agent.limits, ..HostOptions::default() };
    let host = ConversationHost::new(agent.definitions.clone(), models, options);
    let handle = host.conversation(&id.into(), &agent.id).await.map_err(host_failure)?;
    let watcher = handle.watch();
    let tools = offered_tools(script);
    if !tools.is_empty() || !context.is_empty() || state.is_some() {
        let (context, state) = (context.clone(), state.clone());
        handle.send(Told::ClientOffer { tools, context, state }).await.map_err(host_failure)?;
    }
    Ok(EmbeddedConversation { handle, watcher, models: choice, context, waiting_turn: None })
}

/// Returns why the test cannot offer a tool of this name: the agent, or an agent that it calls, executes one itself, and would
/// never call that of the test.
pub fn executed_tool_error(agent: &LoadedAgent, name: &str) -> Option<String> {
    let is_client = |tool: &ToolDefinition| matches!(tool.target, Some(ToolTarget::Client));
    let named =
        |agent: &AgentDefinition| agent.persona.tools.iter().find(|tool| *tool.name == *name).cloned();
    let own = agent.definitions.agent(&agent.id).and_then(|own| named(own));
    if own.as_ref().is_some_and(is_client) {
        return None;
    }
    let by = |other: &Arc<AgentDefinition>| named(other).is_some_and(|tool| !is_client(&tool));
    let by = agent
        .definitions
        .agents()
        .filter(|other| other.id == agent.id || own.is_none())
        .find(|other| by(other))?;
    Some(format!(
        "the agent `{}` executes `{name}` itself: remove it from `tools` of the test, or declare it as `client: true` in the file of the agent",
        by.id
    ))
}

/// Returns the tools that the test offers.
fn offered_tools(script: &ScriptedAnswers) -> Vec<ModelTool> {
    let offered = script.tools().iter().map(|tool| ModelTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.parameters.clone(),
    });
    offered.collect()
}

impl EmbeddedConversation {
    /// Sends the context if it has changed.
    async fn update_context(
        &mut self,
        context: Vec<ContextEntry>,
        script: &ScriptedAnswers,
    ) -> Result<(), AttemptFailure> {
        if context != self.context {
            self.context.clone_from(&context);
            let offer = Told::ClientOffer { tools: offered_tools(script), context, state: None };
            self.handle.send(offer).await.map_err(host_failure)?;
        }
        Ok(())
    }

    async fn run_turn(
        &mut self,
        turn: &mut EmbeddedTurn<'_>,
        http: &HttpClient,
        limits: TurnLimits<'_>,
    ) -> Result<(), TurnError> {
        loop {
            if let Some(failure) = limits.exceeded_limit() {
                return Err(failure.into());
            }
            // Signals have no arrival time, and there may be endlessly many, so the deadline is checked here.
            if limits.deadline <= tokio::time::Instant::now() {
                return Err(TurnError::Deadline);
            }
            let silent = tokio::time::Instant::now() + limits.idle;
            let next = tokio::time::timeout_at(limits.deadline.min(silent), self.next_signal(turn)).await;
            let signal = match next {
                Ok(Ok(Some(signal))) => signal,
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) => return Err(host_failure(error).into()),
                Err(_) if silent < limits.deadline => return Err(http::idle_timeout(limits.idle).into()),
                Err(_) => return Err(TurnError::Deadline),
            };
            let next = match signal {
                Signal::Delta { at, delta, .. } => {
                    if let ReplyDelta::Text { text, .. } = &delta {
                        limits.count_received(text.len());
                        let now = turn.recorder.now();
                        turn.first_delta.entry(at.turn).or_insert(now);
                    }
                    TurnAction::Continue
                }
                Signal::Event(record) => turn.process(&record)?,
            };
            if !matches!(next, TurnAction::Continue | TurnAction::Done) {
                turn.client_requests += 1;
                if turn.client_requests > MAX_CLIENT_REQUESTS {
                    return Err(too_many_requests().into());
                }
            }
            let answer = match next {
                TurnAction::Continue => continue,
                TurnAction::Done => return Ok(turn.check_answered()?),
                TurnAction::Answer(answer) => answer,
                TurnAction::RunTool(call) if !turn.script.has_tool(&call.tool_name) => {
                    check_unoffered_call(&call.tool_name, turn.script)?;
                    self.waiting_turn = Some(turn.agent_turn_id.clone());
                    continue;
                }
                TurnAction::RunTool(call) => turn.run_tool(&call, http, limits).await?,
            };
            self.handle.send(answer).await.map_err(host_failure)?;
        }
    }

    /// Returns the next signal, or none if the turn waits only for the user. Other calls of the reply that asks the user may
    /// still run.
    async fn next_signal(&mut self, turn: &EmbeddedTurn<'_>) -> Result<Option<Signal>, HostError> {
        if self.waiting_turn.is_some() {
            if let Some(signal) = self.watcher.next().now_or_never() {
                return signal.map(Some).ok_or(HostError::Closed);
            }
            let state = self.handle.state().await?;
            // All signals up to this state have been sent by now.
            if let Some(signal) = self.watcher.next().now_or_never() {
                return signal.map(Some).ok_or(HostError::Closed);
            }
            if state.is_waiting_for_client(&turn.agent_turn_id) {
                return Ok(None);
            }
        }
        self.watcher.next().await.map(Some).ok_or(HostError::Closed)
    }
}

/// Returns the error of the test if a model failed because of it: its script has no rule, its recording no reply, or it is
/// misconfigured. An agent whose model fails otherwise is wrong itself.
fn model_of_test_failed(error: &ErrorInfo) -> Option<TurnError> {
    let of_test = [ModelErrorKind::Unanswered, ModelErrorKind::Configuration];
    let code = error.code.as_deref();
    of_test.iter().any(|kind| code == Some(kind.name())).then(|| {
        let (first, rest) = error.message.split_once('\n').unwrap_or((&error.message, ""));
        let message = format!("the model of the agent cannot answer: {first}");
        AttemptFailure::new(FailureKind::TestError, message).with_detail(rest).into()
    })
}

impl EmbeddedTurn<'_> {
    /// Fails if the agent did nothing in its turn, as over the protocols of `hotseat serve`.
    fn check_answered(&mut self) -> Result<(), AttemptFailure> {
        self.recorder.flush_inbox();
        let turn = self.recorder.conversation().turns.last();
        let is_answer = |turn: &ConversationTurn| {
            let says_something = turn.messages.iter().any(|message| !is_blank(&message.content));
            turn.has_calls() || !turn.interrupts.is_empty() || says_something
        };
        match turn.is_none_or(is_answer) {
            true => Ok(()),
            false => Err(empty_answer()),
        }
    }

    /// Records an event of the agent in this trace.
    fn process(&mut self, record: &EventRecord) -> Result<TurnAction, TurnError> {
        let shortened = self.digests.shorten(record);
        let record = shortened.as_ref().unwrap_or(record);
        let mut payload = record.payload.clone();
        let said_in = payload.turn_id().cloned();
        let is_own = said_in.as_deref() == Some(self.agent_turn_id.as_str());
        payload.rename_turn(self.agent_turn_id.as_str(), &self.id);
        let mut next = TurnAction::Continue;
        match &mut payload {
            // Recorded by the session itself.
            Payload::TurnStarted(_) | Payload::UserMessage(_) if is_own => return Ok(TurnAction::Continue),
            Payload::TurnCompleted(completion) if is_own => {
                self.recorder.set_turn_issues(completion.issues.take());
                return Ok(TurnAction::Done);
            }
            Payload::TurnFailed(failed) if is_own => {
                let error = failed.error.clone();
                let turn_id = self.id.clone();
                self.recorder.emit(AgentRunFailed { turn_id, error: error.clone(), usage: None });
                return Err(TurnError::Run(error));
            }
            // Its tokens have the price of the model that answers.
            Payload::LlmCallStarted(call) => {
                if let Some((profile, connector)) = &self.replaced_model
                    && call.model_profile_id == *profile
                {
                    call.model_profile_id = connector.clone();
                }
            }
            Payload::AssistantMessage(message) => {
                let begun = said_in.as_deref().and_then(|turn| self.first_delta.remove(&TurnId::from(turn)));
                message.started_us = message.started_us.or(begun);
            }
            Payload::ToolFailed(failed)
                if separate_execution(record).is_none()
                    && self.recorder.conversation().call(&failed.tool_call_id).is_none() =>
            {
                self.rejected_calls.push(failed.clone());
                return Ok(TurnAction::Continue);
            }
            // A rejected call of a model is still a call.
            Payload::MoveRecorded(recorded) => {
                let made = recorded.tool_call.as_ref();
                let refused =
                    |failed: &ToolFailed| made.is_some_and(|made| made.tool_call_id == failed.tool_call_id);
                if let Some(made) = made
                    && let Some(place) = self.rejected_calls.iter().position(refused)
                {
                    let failed = self.rejected_calls.remove(place);
                    let called = ToolInvocation {
                        turn_id: recorded.turn_id.clone(),
                        tool_call_id: made.tool_call_id.clone(),
                        tool_name: made.tool_id.clone(),
                        input: Some(made.input.clone()),
                        ..ToolInvocation::default()
                    };
                    self.record(record, called);
                    self.record(record, failed);
                }
            }
            Payload::ToolCompleted(ToolCompleted { tool_call_id, origin, .. })
            | Payload::ToolFailed(ToolFailed { tool_call_id, origin, .. })
                if self.answered_calls.contains(tool_call_id) =>
            {
                *origin = Origin::Client;
            }
            // The recorded answer is the client's, not the agent's interpretation of it.
            Payload::InterruptAnswered(told) => {
                let (status, payload) = match self.interrupt_answers.remove(&told.interrupt_id) {
                    Some(InterruptReply::Resolved(payload)) => ("resolved", Some(payload)),
                    Some(InterruptReply::Cancelled) => ("cancelled", None),
                    None => (&*told.status, told.payload.take()),
                };
                (told.status, told.payload) = (status.into(), payload);
            }
            _ => {}
        }
        match &record.payload {
            Payload::ToolInvoked(call) if call.target_type.as_deref() == Some("client") => {
                next = TurnAction::RunTool(call.clone());
            }
            Payload::InterruptRaised(question) => next = TurnAction::Answer(self.answer_approval(question)?),
            _ => {}
        }
        self.record(record, payload);
        match &record.payload {
            Payload::LlmCallCompleted(call) => {
                if let Some(message) = TurnRecorder::finish_reason_note(&call.stop_reason) {
                    self.recorder.emit(Note { turn_id: self.id.clone(), message, event: None });
                }
                Ok(next)
            }
            Payload::LlmCallFailed(failed) => model_of_test_failed(&failed.error).map_or(Ok(next), Err),
            _ => Ok(next),
        }
    }

    /// Records a payload in the execution of the agent's event.
    fn record(&mut self, told: &EventRecord, payload: impl Into<Payload>) {
        let payload = payload.into();
        match separate_execution(told) {
            Some(execution) => {
                if let Some(call) = self.call_of_called_agent(execution, &payload) {
                    self.recorder.emit(call);
                }
                self.recorder.emit_within(execution.clone(), payload);
            }
            None => self.recorder.emit(payload),
        }
    }

    /// Returns an event of a tool call that a called agent makes, as one of this turn.
    fn call_of_called_agent(&mut self, execution: &ExecutionInfo, payload: &Payload) -> Option<Payload> {
        if execution.kind != ExecutionKind::Conversation {
            return None;
        }
        let known = |call: &Arc<str>| self.recorder.conversation().call(call).is_some();
        let mut payload = match payload {
            Payload::TurnStarted(started) => {
                self.called_agents.insert(started.turn_id.clone(), started.agent_id.clone());
                return None;
            }
            Payload::ToolInvoked(call) => Payload::ToolInvoked(ToolInvocation {
                subagent: self.called_agents.get(&call.turn_id).cloned().flatten(),
                ..call.clone()
            }),
            Payload::ToolCompleted(ToolCompleted { tool_call_id, .. })
            | Payload::ToolFailed(ToolFailed { tool_call_id, .. })
                if known(tool_call_id) =>
            {
                payload.clone()
            }
            _ => return None,
        };
        let turn = payload.turn_id()?.clone();
        payload.rename_turn(&turn, &self.id);
        Some(payload)
    }

    /// Runs a call by the script of the test.
    async fn run_tool(
        &mut self,
        call: &ToolInvocation,
        http: &HttpClient,
        limits: TurnLimits<'_>,
    ) -> Result<Told, TurnError> {
        let arguments = call.input.clone().unwrap_or(Value::Null);
        let asked = ClientCall { id: &call.tool_call_id, name: &call.tool_name, arguments: &arguments };
        let result = match client_tools::answer_call(asked, self.script, http, limits).await? {
            ToolReply::Content(output) => Ok(Arc::new(output)),
            ToolReply::Error(message) => Err(ToolFailure::business(ErrorCode::ExecutionFailed, message)),
        };
        self.answered_calls.insert(call.tool_call_id.clone());
        Ok(Told::OperationDone { at: operation_address(&call.turn_id, &call.tool_call_id), result })
    }

    /// Answers an approval request by the script of the test.
    fn answer_approval(&mut self, question: &InterruptRaised) -> Result<Told, AttemptFailure> {
        let tool = question.value.get("toolName").and_then(Value::as_str);
        let asked = InterruptRequest {
            reason: question.reason.as_deref(),
            message: question.message.as_deref(),
            tool,
        };
        let Some(reply) = self.script.interrupt_reply(&asked) else {
            return Err(unanswered_interrupt(&asked, &question.value));
        };
        self.interrupt_answers.insert(question.interrupt_id.clone(), reply.clone());
        let verdict = match reply {
            InterruptReply::Resolved(payload) => ApprovalVerdict::parse(&payload)
                .map_err(|wrong| AttemptFailure::new(FailureKind::TestError, wrong))?,
            InterruptReply::Cancelled => {
                ApprovalVerdict::Unavailable { reason: "the user did not answer".to_string() }
            }
        };
        Ok(Told::Approval { at: operation_address(&question.turn_id, &question.interrupt_id), verdict })
    }
}

/// Returns the execution of an event outside the conversation itself.
fn separate_execution(record: &EventRecord) -> Option<&ExecutionInfo> {
    let execution = record.execution.as_ref();
    execution.filter(|execution| execution.kind == ExecutionKind::Workflow || execution.parent.is_some())
}

/// Returns the address of the first attempt of a call: the client answers each call once.
fn operation_address(turn: &Arc<str>, call: &Arc<str>) -> OperationAddress {
    OperationAddress { turn: TurnId(turn.clone()), call: CallId(call.clone()), attempt: 1 }
}

fn host_failure(error: HostError) -> AttemptFailure {
    AttemptFailure::new(FailureKind::AgentError, error.to_string())
}

impl AgentSession for EmbeddedSession {
    fn conversation_id(&self) -> Arc<str> {
        self.id.clone()
    }

    fn capabilities(&self) -> ProtocolCapabilities {
        ProtocolCapabilities { attachments: false, ..ProtocolCapabilities::ALL }
    }

    fn seed_history(&mut self, messages: &[ConversationMessage]) -> Result<(), AttemptFailure> {
        let (instructions, said): (Vec<&ConversationMessage>, Vec<&ConversationMessage>) = messages
            .iter()
            .partition(|message| matches!(message.role, MessageRole::System | MessageRole::Developer));
        let instructions = instructions.into_iter().map(|message| joined_text(&message.content));
        self.seeded_history.extend(instructions.map(ContextEntry::instructions));
        if !said.is_empty() {
            self.seeded_history.push(ContextEntry::earlier(said.into_iter().map(message_json).collect()));
        }
        Ok(())
    }

    fn send_input<'a>(&'a mut self, input: AgentInput<'a>) -> TurnFuture<'a> {
        Box::pin(self.run_turn(input))
    }
}
