//! Hotseat's own agent, in this process: what `hotseat serve` serves, with no server between.
//!
//! Each conversation has a host of its own, so no case can see what another one has done. Everything the agent does
//! is in the trace as the agent itself tells it; conversations that it holds with other agents, and runs of its
//! workflows, are told apart by their executions.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotseat_model::{Answering, Delta, Model, ModelError, Request, Sink, Tool};
use hotseat_runtime::conversation::{ApprovalVerdict, ContextEntry, Input as Told, OperationAddress};
use hotseat_runtime::failure::{ErrorCode, Failure as ToolFailure};
use hotseat_runtime::files::{AgentFile, Connector};
use hotseat_runtime::ids::{CallId, TurnId};
use hotseat_runtime::live::{Handle, Host, HostError, HostOptions, Models, Signal, Watcher};
use hotseat_trace::{
    AgentRunFailed, Execution, ExecutionKind, Failure, FailureKind, InterruptRaised, Offset, Origin, Payload,
    Record, ToolFailed, ToolInvocation, ToolInvoked,
};
use serde_json::Value;

use super::client_tools::{self, ClientCall};
use super::http::{self, Http};
use super::template::message_as_json;
use super::{
    AgentSession, Carries, Input, Limits, MOST_REQUESTS, Pending, TurnError, asked_too_often, not_offered,
    unanswered_interrupt,
};
use crate::session::{
    AskedInterrupt, Identity, InterruptReply, Message, Recorder, Role, ToolReply, TurnScript, words,
};

/// An agent in this process.
#[derive(Debug, Clone)]
pub struct Target {
    /// The agent with everything that it needs.
    pub agent: Arc<AgentFile>,
    /// Where it was loaded from.
    pub path: PathBuf,
    /// Id of the conversation; a fresh one where it is not given.
    pub conversation_id: Option<String>,
    /// The state before the first turn; none if the client has none to share.
    pub state: Option<Value>,
    /// What else the client tells the agent.
    pub context: Vec<ContextEntry>,
    /// On whose behalf the agent is spoken to.
    pub identity: Identity,
    /// The models that `options.connector` can name.
    pub connectors: BTreeMap<String, Connector>,
}

/// What of the options of a turn an agent in this process is told; it has no use for any other.
pub const OPTIONS: [&str; 2] = ["connector", "metadata"];

/// Whether a wish of `options.skip` is fulfilled by the mere fact that the agent is in this process: its conversations are
/// kept nowhere, and everything it does is in the trace.
pub fn skips(what: &str, wanted: &Value) -> bool {
    match what {
        "history" => *wanted == Value::Bool(true),
        "trace" => *wanted == Value::Bool(false),
        _ => false,
    }
}

/// A conversation with an agent in this process.
pub struct Session {
    http: Arc<Http>,
    target: Target,
    id: Arc<str>,
    /// What was said before the first turn, as the agent's model is told of it.
    earlier: Vec<ContextEntry>,
    talk: Option<Talk>,
}

/// A conversation that has begun.
struct Talk {
    handle: Handle,
    watcher: Watcher,
    models: Arc<Choice>,
    /// What the agent was told of its situation last.
    context: Vec<ContextEntry>,
    /// A turn that waits for the user, by a call of a tool that asks for something.
    waits: Option<TurnId>,
}

/// The models of the agent, of which one speaks at a time: its own, or one that the options of a turn name. Each of
/// them lives as long as the conversation.
struct Choice {
    own: Arc<dyn Model>,
    others: Vec<(String, Arc<dyn Model>)>,
    /// Which of the others speaks, from 1; 0 is its own.
    speaks: AtomicUsize,
}

impl Choice {
    /// Has the model of this name speak from now on; without a name, the agent's own.
    fn choose(&self, name: Option<&str>) -> Result<(), Failure> {
        let place = match name {
            None => 0,
            Some(name) => match self.others.iter().position(|(known, _)| known == name) {
                Some(place) => place + 1,
                None => {
                    let message = format!("there is no connector `{name}`");
                    return Err(Failure::new(FailureKind::TestError, message));
                }
            },
        };
        self.speaks.store(place, Ordering::SeqCst);
        Ok(())
    }

    fn speaking(&self) -> &Arc<dyn Model> {
        let place = self.speaks.load(Ordering::SeqCst).checked_sub(1);
        place.and_then(|place| self.others.get(place)).map_or(&self.own, |(_, model)| model)
    }
}

impl Model for Choice {
    fn name(&self) -> &str {
        self.speaking().name()
    }

    fn call<'a>(&'a self, request: &'a Request, sink: &'a mut dyn Sink) -> Answering<'a> {
        self.speaking().call(request, sink)
    }
}

/// One turn of it.
struct Turn<'a> {
    /// Its id here.
    id: Arc<str>,
    /// Its id at the agent.
    own: TurnId,
    /// When the first piece of a message of a turn arrived, by the turn's id at the agent.
    begun: HashMap<TurnId, Offset>,
    /// How often the client was asked for something.
    asked: usize,
    /// What the client answered to the agent's questions, by their ids.
    answered: HashMap<Arc<str>, InterruptReply>,
    /// Calls that the agent has refused to its model; what they were is told by their move, which comes next.
    refused: Vec<ToolFailed>,
    script: &'a mut TurnScript,
    recorder: &'a mut Recorder,
}

/// What is to be done after an event.
enum Next {
    GoOn,
    /// The client answers.
    Answer(Told),
    /// The client carries out the call of a tool that it offers.
    CarryOut(ToolInvocation),
    /// The turn is over.
    Done,
}

impl Session {
    /// Opens a conversation. The agent is told nothing yet.
    pub fn open(http: Arc<Http>, target: Target) -> Self {
        let id = target.conversation_id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        Session { http, target, id: id.into(), earlier: Vec::new(), talk: None }
    }

    async fn hold_turn(&mut self, input: Input<'_>, recorder: &mut Recorder) -> Result<(), TurnError> {
        let Input { turn_id, text, options, script, limits, .. } = input;
        let context = self.context(options);
        let talk = match &mut self.talk {
            Some(talk) => {
                talk.tell(context, script).await?;
                talk
            }
            none => none.insert(begin(&self.target, &self.id, context, script).await?),
        };
        if let Some(turn) = talk.waits.take() {
            // What the user says next is no result of the call.
            let reason = "the user went on without an answer".to_string();
            talk.handle.send(Told::CancelTurn { turn, reason }).await.map_err(lost)?;
        }
        talk.models.choose(options.and_then(|options| options.get("connector")?.as_str()))?;
        let user = self.target.identity.user.text.clone();
        let said = Told::UserMessage { user, content: text.to_string(), reply_to: None };
        let sent = talk.handle.send(said).await.map_err(lost)?;
        let Some(own) = sent.turn else {
            let reason = sent.ignored.unwrap_or_default();
            return Err(
                Failure::new(FailureKind::AgentError, format!("the agent took no turn: {reason}")).into()
            );
        };
        let mut turn = Turn {
            id: turn_id,
            own: own.clone(),
            begun: HashMap::new(),
            asked: 0,
            answered: HashMap::new(),
            refused: Vec::new(),
            script,
            recorder,
        };
        let held = talk.hold(&mut turn, &self.http, limits).await;
        if held.is_err() {
            // What the agent still does in this turn belongs to none.
            let reason = "the test has given the turn up".to_string();
            let _ = talk.handle.send(Told::CancelTurn { turn: own, reason }).await;
        }
        held
    }

    /// What the agent is told of its situation in a turn.
    fn context(&self, options: Option<&Value>) -> Vec<ContextEntry> {
        let Target { context, identity, .. } = &self.target;
        let mut entries = [&self.earlier[..], context].concat();
        let mut tell = |description: &str, value: String| {
            entries.push(ContextEntry { description: description.to_string(), value });
        };
        let words = [("user", &identity.user), ("team", &identity.team), ("locale", &identity.locale)];
        for (name, given) in words {
            if let Some(given) = given.given() {
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

/// Begins the conversation: the client offers what it has.
async fn begin(
    target: &Target,
    id: &str,
    context: Vec<ContextEntry>,
    script: &TurnScript,
) -> Result<Talk, Failure> {
    let Target { agent, state, connectors, .. } = target;
    let unusable = |error: ModelError| {
        Failure::new(FailureKind::TestError, format!("a model of the agent cannot be used: {error}"))
    };
    let mut opened = agent.models().map_err(unusable)?;
    let profile = agent.profile();
    let own = opened
        .remove(&profile)
        .ok_or_else(|| Failure::new(FailureKind::TestError, "no model speaks for the agent".to_string()))?;
    let others = connectors.iter().map(|(name, connector)| Ok((name.clone(), connector.open()?)));
    let others = others.collect::<Result<_, _>>().map_err(unusable)?;
    let choice = Arc::new(Choice { own, others, speaks: AtomicUsize::new(0) });
    let models =
        opened.into_iter().fold(Models::default(), |models, (profile, model)| models.with(&profile, model));
    let models = models.with(&profile, choice.clone());
    let options = HostOptions { limits: agent.limits, ..HostOptions::default() };
    let host = Host::new(agent.definitions.clone(), models, options);
    let handle = host.conversation(&id.into(), &agent.id).await.map_err(lost)?;
    let watcher = handle.watch();
    let tools = offered(script);
    if !tools.is_empty() || !context.is_empty() || state.is_some() {
        let (context, state) = (context.clone(), state.clone());
        handle.send(Told::ClientOffer { tools, context, state }).await.map_err(lost)?;
    }
    Ok(Talk { handle, watcher, models: choice, context, waits: None })
}

/// The tools that the test offers.
fn offered(script: &TurnScript) -> Vec<Tool> {
    let offered = script.tools().iter().map(|tool| Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.parameters.clone(),
    });
    offered.collect()
}

impl Talk {
    /// Tells the agent of its situation, where that has changed.
    async fn tell(&mut self, context: Vec<ContextEntry>, script: &TurnScript) -> Result<(), Failure> {
        if context != self.context {
            self.context.clone_from(&context);
            let offer = Told::ClientOffer { tools: offered(script), context, state: None };
            self.handle.send(offer).await.map_err(lost)?;
        }
        Ok(())
    }

    async fn hold(&mut self, turn: &mut Turn<'_>, http: &Http, limits: Limits<'_>) -> Result<(), TurnError> {
        loop {
            if let Some(failure) = limits.over() {
                return Err(failure.into());
            }
            // What it tells is not stamped before it is taken in, and it may tell without end.
            if limits.deadline <= tokio::time::Instant::now() {
                return Err(TurnError::Deadline);
            }
            let silent = tokio::time::Instant::now() + limits.idle;
            let next = tokio::time::timeout_at(limits.deadline.min(silent), self.watcher.next()).await;
            let signal = match next {
                Ok(Some(signal)) => signal,
                Ok(None) => return Err(lost(HostError::Gone).into()),
                Err(_) if silent < limits.deadline => return Err(http::silent(limits.idle).into()),
                Err(_) => return Err(TurnError::Deadline),
            };
            let next = match signal {
                Signal::Delta { at, delta, .. } => {
                    if let Delta::Text { text, .. } = &delta {
                        limits.receive(text.len());
                        let now = turn.recorder.now();
                        turn.begun.entry(at.turn).or_insert(now);
                    }
                    Next::GoOn
                }
                Signal::Event(record) => turn.take(&record)?,
            };
            if !matches!(next, Next::GoOn | Next::Done) {
                turn.asked += 1;
                if turn.asked > MOST_REQUESTS {
                    return Err(asked_too_often().into());
                }
            }
            let answer = match next {
                Next::GoOn => continue,
                Next::Done => return Ok(()),
                Next::Answer(answer) => answer,
                Next::CarryOut(call) if !turn.script.has_tool(&call.tool_name) => {
                    not_offered(&call.tool_name, turn.script)?;
                    self.waits = Some(turn.own.clone());
                    return Ok(());
                }
                Next::CarryOut(call) => turn.carry_out(&call, http, limits).await?,
            };
            self.handle.send(answer).await.map_err(lost)?;
        }
    }
}

impl Turn<'_> {
    /// Records what the agent tells, in the words of this trace.
    fn take(&mut self, record: &Record) -> Result<Next, TurnError> {
        let mut payload = record.payload.clone();
        let said_in = payload.turn_id().cloned();
        let is_own = said_in.as_deref() == Some(self.own.as_str());
        payload.rename_turn(self.own.as_str(), &self.id);
        let mut next = Next::GoOn;
        match &mut payload {
            // The session has said so already, or will.
            Payload::TurnStarted(_) | Payload::UserMessage(_) if is_own => return Ok(Next::GoOn),
            Payload::TurnCompleted(_) if is_own => return Ok(Next::Done),
            Payload::TurnFailed(failed) if is_own => {
                let error = failed.error.clone();
                self.recorder.emit(AgentRunFailed { turn_id: self.id.clone(), error: error.clone() });
                return Err(TurnError::Run(error));
            }
            Payload::AssistantMessage(message) => {
                let begun = said_in.as_deref().and_then(|turn| self.begun.remove(&TurnId::from(turn)));
                message.started_us = message.started_us.or(begun);
            }
            Payload::ToolFailed(failed)
                if within(record).is_none()
                    && self.recorder.conversation().call(&failed.tool_call_id).is_none() =>
            {
                self.refused.push(failed.clone());
                return Ok(Next::GoOn);
            }
            // What a model calls is a call, whatever becomes of it.
            Payload::MoveRecorded(recorded) => {
                let made = recorded.tool_call.as_ref();
                let refused =
                    |failed: &ToolFailed| made.is_some_and(|made| made.tool_call_id == failed.tool_call_id);
                if let Some(made) = made
                    && let Some(place) = self.refused.iter().position(refused)
                {
                    let failed = self.refused.remove(place);
                    let called = ToolInvoked {
                        turn_id: recorded.turn_id.clone(),
                        tool_call_id: made.tool_call_id.clone(),
                        tool_name: made.tool_id.clone(),
                        target_type: None,
                        target_id: None,
                        r#async: false,
                        input: Some(made.input.clone()),
                        started_us: None,
                        origin: Origin::Stream,
                        subagent: None,
                        message_id: None,
                    };
                    self.record(record, called);
                    self.record(record, failed);
                }
            }
            // The agent tells how it understood the answer; here it counts what was answered.
            Payload::InterruptAnswered(told) => {
                let (status, payload) = match self.answered.remove(&told.interrupt_id) {
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
                next = Next::CarryOut(call.clone());
            }
            Payload::InterruptRaised(question) => next = Next::Answer(self.approve(question)?),
            _ => {}
        }
        self.record(record, payload);
        Ok(next)
    }

    /// Records something where the agent has told it.
    fn record(&mut self, told: &Record, payload: impl Into<Payload>) {
        match within(told) {
            Some(execution) => self.recorder.emit_within(execution.clone(), payload.into()),
            None => self.recorder.emit(payload.into()),
        }
    }

    /// The client carries a call out, as the test says.
    async fn carry_out(
        &mut self,
        call: &ToolInvocation,
        http: &Http,
        limits: Limits<'_>,
    ) -> Result<Told, TurnError> {
        let arguments = call.input.clone().unwrap_or(Value::Null);
        let asked = ClientCall { id: &call.tool_call_id, name: &call.tool_name, arguments: &arguments };
        let result = match client_tools::answer(asked, self.script, http, limits).await? {
            ToolReply::Content(output) => Ok(output),
            ToolReply::Error(message) => Err(ToolFailure::business(ErrorCode::ExecutionFailed, message)),
        };
        Ok(Told::OperationDone { at: address(&call.turn_id, &call.tool_call_id), result })
    }

    /// A person says whether a call may be made, as the test says.
    fn approve(&mut self, question: &InterruptRaised) -> Result<Told, Failure> {
        let tool = question.value.get("toolName").and_then(Value::as_str);
        let asked =
            AskedInterrupt { reason: question.reason.as_deref(), message: question.message.as_deref(), tool };
        let Some(reply) = self.script.interrupt_reply(&asked) else {
            return Err(unanswered_interrupt(&asked, &question.value));
        };
        self.answered.insert(question.interrupt_id.clone(), reply.clone());
        let verdict = match reply {
            InterruptReply::Resolved(payload) => ApprovalVerdict::read(&payload)
                .map_err(|wrong| Failure::new(FailureKind::TestError, wrong))?,
            InterruptReply::Cancelled => {
                ApprovalVerdict::Declined { reason: "the user did not answer".to_string() }
            }
        };
        Ok(Told::Approval { at: address(&question.turn_id, &question.interrupt_id), verdict })
    }
}

/// Where something happened that did not happen in the conversation itself.
fn within(record: &Record) -> Option<&Execution> {
    let execution = record.execution.as_ref();
    execution.filter(|execution| execution.kind == ExecutionKind::Workflow || execution.parent.is_some())
}

/// The first attempt at a call: who answers a call does not leave it to be tried again.
fn address(turn: &Arc<str>, call: &Arc<str>) -> OperationAddress {
    OperationAddress { turn: TurnId(turn.clone()), call: CallId(call.clone()), attempt: 1 }
}

fn lost(error: HostError) -> Failure {
    Failure::new(FailureKind::AgentError, error.to_string())
}

impl AgentSession for Session {
    fn conversation_id(&self) -> Arc<str> {
        self.id.clone()
    }

    fn carries(&self) -> Carries {
        Carries { history: true, attachments: false, options: true }
    }

    fn remember(&mut self, messages: &[Message]) -> Result<(), Failure> {
        let (instructions, said): (Vec<&Message>, Vec<&Message>) =
            messages.iter().partition(|message| matches!(message.role, Role::System | Role::Developer));
        let instructions = instructions.into_iter().map(|message| words(&message.content));
        self.earlier.extend(instructions.map(ContextEntry::instructions));
        if !said.is_empty() {
            self.earlier.push(ContextEntry::earlier(said.into_iter().map(message_as_json).collect()));
        }
        Ok(())
    }

    fn say<'a>(
        &'a mut self,
        input: Input<'a>,
        recorder: &'a mut Recorder,
    ) -> Pending<'a, Result<(), TurnError>> {
        Box::pin(self.hold_turn(input, recorder))
    }
}
