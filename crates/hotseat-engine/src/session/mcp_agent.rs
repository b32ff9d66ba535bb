//! An agent whose MCP servers belong to the test: their events become events of its turns.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hotseat_mcp::{
    AnswerFuture, McpAnswer, McpCall, McpConversation, McpEvent, McpEventKind, McpToolResult, RpcError,
    ToolAnswerer,
};
use hotseat_targets::message::{ClientTool, ConversationMessage, ScriptedAnswers, ToolReply};
use hotseat_targets::recorder::{EventInbox, TraceRecorder, TrafficMeter};
use hotseat_targets::{AgentInput, AgentSession, BoxFuture, CallVisibility, ProtocolCapabilities, TurnError};
use hotseat_trace::{
    AttemptFailure, ErrorInfo, FailureKind, McpAnswerLost, McpArgumentsInvalid, McpConnected,
    McpFaultInjected, Note, Origin, Payload, ToolCompleted, ToolFailed, ToolInvocation,
};

use super::mcp_call_id::agent_call_id;
use crate::cases::ToolReference;

/// Time that the answers of calls get to be reported after the end of their turn. The server reports an answer
/// right after it has sent it.
const ANSWER_REPORT_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum number of notes about the protocol in one conversation.
const MAX_NOTES: usize = 100;

/// Answers the calls of mocked MCP servers from the scripted answers of a case.
#[derive(Debug, Default)]
pub struct ScriptedServers {
    servers: Mutex<BTreeMap<String, ScriptedAnswers>>,
}

impl ScriptedServers {
    /// Creates answers for servers by name.
    pub fn new(answers: BTreeMap<String, Vec<ClientTool>>) -> Self {
        let servers = answers.into_iter().map(|(name, tools)| (name, ScriptedAnswers::new(tools)));
        ScriptedServers { servers: Mutex::new(servers.collect()) }
    }
}

impl ToolAnswerer for ScriptedServers {
    fn answer<'a>(&'a self, call: &'a McpCall) -> AnswerFuture<'a> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let script = servers.get_mut(&call.server);
        let answer = match script {
            None => McpAnswer::Unmatched { nearest: None },
            Some(script) => match script.tool_reply(&call.tool, &call.arguments) {
                Some(ToolReply::Content(value)) => McpAnswer::Result(McpToolResult::from_value(value)),
                Some(ToolReply::Error(text)) => McpAnswer::Result(McpToolResult::error(text)),
                None => McpAnswer::Unmatched { nearest: script.nearest_answer(&call.tool, &call.arguments) },
            },
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Slot for a conversation that outlives an attempt: one for all conversations of a process.
pub type ConversationSlot = Arc<Mutex<Option<McpConversation>>>;

/// What a test expects of the calls at its MCP servers.
#[derive(Debug, Default)]
pub struct ExpectedCalls {
    /// Servers that hand an error to the agent if no answer matches.
    pub answers_unmatched: BTreeSet<String>,
    /// Tools that faults and assertions name.
    pub tools: Vec<ToolReference>,
}

impl ExpectedCalls {
    /// Fails if a tool that the test names is not among those that its server listed.
    fn check_tools(&self, server: &str, listed: &[String]) -> Result<(), AttemptFailure> {
        let named = self.tools.iter().filter(|reference| reference.server == server);
        match named.filter_map(|reference| reference.check(listed)).next() {
            None => Ok(()),
            Some(wrong) => {
                let place = wrong.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
                let failure = AttemptFailure::new(FailureKind::TestError, wrong.message + &place);
                Err(failure.with_detail(wrong.help.unwrap_or_default()))
            }
        }
    }
}

/// A session with an agent, and its conversation with the MCP servers of the test.
pub struct McpAgent {
    agent: Box<dyn AgentSession>,
    /// `None` only while it is dropped.
    conversation: Option<McpConversation>,
    observer: McpObserver,
    /// Receives the conversation after the end.
    home: Option<ConversationSlot>,
    /// Reads the conversation once before its end.
    on_close: Option<ConversationReader>,
}

/// Reads a conversation with MCP servers.
pub type ConversationReader = Box<dyn FnOnce(&McpConversation) + Send>;

impl McpAgent {
    /// Adds a conversation to a session. The conversation is returned to `home`.
    pub fn new(
        agent: Box<dyn AgentSession>,
        conversation: McpConversation,
        expected: ExpectedCalls,
        home: Option<ConversationSlot>,
    ) -> McpAgent {
        let observer = McpObserver { expected, ..McpObserver::default() };
        McpAgent { agent, conversation: Some(conversation), observer, home, on_close: None }
    }

    /// Lets `reader` read the conversation when the session is closed.
    pub fn on_close(&mut self, reader: ConversationReader) {
        self.on_close = Some(reader);
    }
}

impl Drop for McpAgent {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            *home.lock().unwrap_or_else(PoisonError::into_inner) = self.conversation.take();
        }
    }
}

impl AgentSession for McpAgent {
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
            let McpAgent { agent, conversation: Some(conversation), observer, .. } = self else {
                return self.agent.send_input(input, recorder).await;
            };
            observer.sink = Some((recorder.inbox().clone(), recorder.traffic().clone()));
            // Calls since the last turn.
            observer.drain(conversation)?;
            observer.turn = Some(input.turn_id.clone());
            let outcome = tokio::select! {
                biased;
                failure = observer.watch(conversation) => Err(failure.into()),
                outcome = agent.send_input(input, recorder) => outcome,
            };
            let settled = observer.settle(conversation).await;
            recorder.flush_inbox();
            settled?;
            outcome
        })
    }

    fn check_trailing_output(&mut self) -> BoxFuture<'_, Result<(), AttemptFailure>> {
        Box::pin(async move {
            self.agent.check_trailing_output().await?;
            match &mut self.conversation {
                Some(conversation) => self.observer.drain(conversation),
                None => Ok(()),
            }
        })
    }

    fn service_addresses(&self) -> BTreeMap<String, String> {
        let mut addresses = self.agent.service_addresses();
        if let Some(conversation) = &self.conversation {
            let named = |name: &str| Some((name.to_string(), conversation.url(name)?));
            addresses.extend(conversation.servers().filter_map(named));
        }
        addresses
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        if let (Some(conversation), Some(read)) = (&self.conversation, self.on_close.take()) {
            read(conversation);
        }
        self.agent.close()
    }

    fn diagnostic_output(&self) -> Option<String> {
        self.agent.diagnostic_output()
    }
}

/// Capabilities of an agent that uses servers of the test: they show calls that the protocol does not.
pub(super) fn shown_by_services(own: ProtocolCapabilities) -> ProtocolCapabilities {
    let calls = match own.calls {
        CallVisibility::Protocol => CallVisibility::Protocol,
        CallVisibility::Services | CallVisibility::Hidden => CallVisibility::Services,
    };
    ProtocolCapabilities { calls, ..own }
}

/// Turns events of MCP servers into events of the trace.
#[derive(Default)]
struct McpObserver {
    sink: Option<(EventInbox, Arc<TrafficMeter>)>,
    /// The current turn; after its end until the next one begins, it is the last one.
    turn: Option<Arc<str>>,
    /// Turn and id of each call.
    calls: HashMap<u64, ObservedCall>,
    /// Calls without an answer.
    open: HashSet<u64>,
    expected: ExpectedCalls,
    notes: usize,
}

/// A call at an MCP server.
struct ObservedCall {
    turn_id: Arc<str>,
    id: Arc<str>,
    tool: String,
    arguments: String,
    has_fault: bool,
}

impl McpObserver {
    /// Processes events until one of them ends the turn, and returns the failure.
    async fn watch(&mut self, conversation: &mut McpConversation) -> AttemptFailure {
        while let Some(event) = conversation.next_event().await {
            if let Err(failure) = self.process(event) {
                return failure;
            }
        }
        std::future::pending().await
    }

    /// Processes the events that are there.
    fn drain(&mut self, conversation: &mut McpConversation) -> Result<(), AttemptFailure> {
        let mut first = Ok(());
        while let Some(event) = conversation.try_next_event() {
            first = first.and(self.process(event));
        }
        first
    }

    /// Processes the events of a turn that has ended. Waits a short time for answers that are about to be
    /// reported.
    async fn settle(&mut self, conversation: &mut McpConversation) -> Result<(), AttemptFailure> {
        let mut first = self.drain(conversation);
        let until = tokio::time::Instant::now() + ANSWER_REPORT_TIMEOUT;
        while !self.open.is_empty() {
            match tokio::time::timeout_at(until, conversation.next_event()).await {
                Ok(Some(event)) => first = first.and(self.process(event)),
                Ok(None) | Err(_) => break,
            }
        }
        // Calls that are still open belong to this turn and are not waited for again.
        self.open.clear();
        first
    }

    fn emit(&self, at: Instant, payload: impl Into<Payload>) -> Result<(), AttemptFailure> {
        match &self.sink {
            Some((inbox, traffic)) => inbox.push(at, payload.into(), traffic),
            None => Ok(()),
        }
    }

    fn process(&mut self, event: McpEvent) -> Result<(), AttemptFailure> {
        let McpEvent { at, server, kind } = event;
        match kind {
            McpEventKind::ClientConnected { revision, client, client_version } => {
                let version = client_version.map_or_else(String::new, |version| format!(" {version}"));
                let client = client.map(|client| client + &version);
                let (turn_id, server) = (self.turn.clone(), server.into());
                self.emit(at, McpConnected { turn_id, server, revision: revision.to_string(), client })
            }
            McpEventKind::ToolsListed { tools, may_change } => match may_change {
                true => Ok(()),
                false => self.expected.check_tools(&server, &tools),
            },
            McpEventKind::CallReceived { call, tool, arguments, meta } => {
                self.receive_call(at, &server, call, tool, arguments, agent_call_id(&meta))
            }
            McpEventKind::CallAnswered { call, outcome, delivered, .. } => {
                self.answer_call(at, call, outcome, delivered)
            }
            McpEventKind::CallCancelled { call, duration } => {
                self.open.remove(&call);
                let tool = self.calls.get(&call).map_or("a tool", |call| &call.tool);
                let cancelled = format!("cancelled its call of {tool} after {} ms", duration.as_millis());
                self.note(at, format!("MCP server `{server}`: the client {cancelled}"))
            }
            McpEventKind::InvalidArguments { call, violations } => {
                let Some(known) = self.calls.get(&call) else { return Ok(()) };
                let (turn_id, tool_call_id) = (known.turn_id.clone(), known.id.clone());
                self.emit(at, McpArgumentsInvalid { turn_id, tool_call_id, errors: violations })
            }
            McpEventKind::UnknownTool { tool, .. } => {
                self.note(at, format!("MCP server `{server}` has no tool `{tool}`"))
            }
            McpEventKind::Unmatched { call, method, nearest } => {
                self.report_unmatched(at, &server, call, &method, nearest)
            }
            McpEventKind::InputRequested { requests, .. } => {
                let names: Vec<&str> = requests.keys().map(String::as_str).collect();
                self.note(at, format!("MCP server `{server}` asked for input: {}", names.join(", ")))
            }
            McpEventKind::InputProvided { .. } => Ok(()),
            McpEventKind::FaultInjected { call, rule, fault } => {
                let Some(known) = self.calls.get_mut(&call) else { return Ok(()) };
                known.has_fault = true;
                let injected = McpFaultInjected {
                    turn_id: known.turn_id.clone(),
                    tool_call_id: known.id.clone(),
                    server: server.into(),
                    tool: known.tool.as_str().into(),
                    fault: fault.name().into(),
                    rule,
                    effect: fault.has_effect(),
                };
                self.emit(at, injected)
            }
            McpEventKind::ProtocolError { message, .. } => {
                self.note(at, format!("MCP server `{server}`: {message}"))
            }
            McpEventKind::CallAfterClose { request } => {
                let message =
                    format!("the agent sent `{request}` to MCP server `{server}` after the conversation");
                Err(AttemptFailure::new(FailureKind::AgentError, message))
            }
            McpEventKind::LimitReached { limit } => {
                let message = format!("the agent reached a limit of MCP server `{server}`: {limit}");
                Err(AttemptFailure::new(FailureKind::Limit, message))
            }
        }
    }

    fn receive_call(
        &mut self,
        at: Instant,
        server: &str,
        call: u64,
        tool: String,
        arguments: serde_json::Value,
        agent_call_id: Option<Arc<str>>,
    ) -> Result<(), AttemptFailure> {
        let Some(turn_id) = self.turn.clone() else {
            let message = format!("the agent called {tool} of MCP server `{server}` before the first turn");
            return Err(AttemptFailure::new(FailureKind::AgentError, message));
        };
        let id: Arc<str> = format!("mcp-{call}").into();
        let shown = arguments.to_string();
        let known = ObservedCall {
            turn_id: turn_id.clone(),
            id: id.clone(),
            tool: tool.clone(),
            arguments: shown,
            has_fault: false,
        };
        self.calls.insert(call, known);
        self.open.insert(call);
        let invoked = ToolInvocation {
            turn_id,
            tool_call_id: id,
            tool_name: tool.into(),
            target_type: None,
            target_id: None,
            r#async: false,
            input: Some(arguments),
            started_us: None,
            origin: Origin::Stream,
            subagent: None,
            message_id: None,
            invocation_mode: None,
            server: Some(server.into()),
            agent_call_id,
        };
        self.emit(at, Payload::ToolInvoked(invoked))
    }

    fn answer_call(
        &mut self,
        at: Instant,
        call: u64,
        outcome: Result<McpToolResult, RpcError>,
        delivered: bool,
    ) -> Result<(), AttemptFailure> {
        self.open.remove(&call);
        let Some(known) = self.calls.get(&call) else { return Ok(()) };
        let (turn_id, tool_call_id) = (known.turn_id.clone(), known.id.clone());
        let success = outcome.as_ref().is_ok_and(|result| !result.is_error);
        if !delivered {
            return self.emit(at, McpAnswerLost { turn_id, tool_call_id, success });
        }
        let origin = Origin::Stream;
        let failed = |code: Option<String>, message: String| ToolFailed {
            turn_id: turn_id.clone(),
            tool_call_id: tool_call_id.clone(),
            error: ErrorInfo { code, message, retriable: None },
            origin,
        };
        match outcome {
            Ok(result) if result.is_error => self.emit(at, failed(None, result.text())),
            Ok(result) => {
                let output = result.value();
                self.emit(at, ToolCompleted { turn_id, tool_call_id, output, origin })
            }
            Err(error) => self.emit(at, failed(Some(error.code.to_string()), error.message)),
        }
    }

    fn report_unmatched(
        &mut self,
        at: Instant,
        server: &str,
        call: Option<u64>,
        method: &str,
        nearest: Option<String>,
    ) -> Result<(), AttemptFailure> {
        let known = call.and_then(|call| self.calls.get(&call));
        let request =
            known.map_or_else(|| method.to_string(), |call| format!("{} with {}", call.tool, call.arguments));
        let message = format!("MCP server `{server}` has no answer for {request}");
        if self.expected.answers_unmatched.contains(server) {
            return self.note(at, message);
        }
        let nearest = nearest.unwrap_or_else(|| "the tool has no answers".to_string());
        let failure = AttemptFailure::new(FailureKind::TestError, format!("{message}; nearest: {nearest}"));
        let help = "add an answer under `answers` of the tool, or record a replay again, or set `unmatched: error_result`";
        Err(failure.with_detail(help))
    }

    fn note(&mut self, at: Instant, message: String) -> Result<(), AttemptFailure> {
        let Some(turn_id) = self.turn.clone().filter(|_| self.notes < MAX_NOTES) else { return Ok(()) };
        self.notes += 1;
        self.emit(at, Note { turn_id, message, event: None })
    }
}
