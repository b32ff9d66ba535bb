//! An agent whose MCP servers belong to the test: their events become events of its turns.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hotseat_document::excerpt;
use hotseat_mcp::{
    AnswerFuture, AwaitedRequest, FaultKind, InputRounds, McpAnswer, McpCall, McpConversation, McpEvent,
    McpEventKind, McpToolResult, RpcError, ToolAnswerer, UnansweredInput,
};
use hotseat_targets::AgentSession;
use hotseat_targets::message::{
    PendingReply, ScriptedAnswers, SelectedAnswer, ToolFunctionCaller, ToolReply,
};
use hotseat_trace::{
    AttemptFailure, ErrorInfo, FailureKind, InterruptAnswered, InterruptRaised, McpAnswerLost,
    McpArgumentsInvalid, McpArgumentsUnchecked, McpConnected, McpFaultInjected, Origin, Payload,
    ToolCompleted, ToolFailed, ToolInvocation, format_first,
};
use serde_json::{Map, Value, json};

use super::mcp_call_id::agent_call_id;
use super::resolve_references::test_error;
use super::service_agent::{ConversationSlot, ServiceAgent, ServiceObserver, TurnEvents};
use super::tool_functions::ScriptToolFunctions;
use crate::cases::{ListedTools, MockAnswers, TestCase, ToolReference};

/// Maximum number of bytes of the arguments of a call in a message.
const MAX_SHOWN_ARGUMENTS_BYTES: usize = 4096;
/// Maximum number of requests without an answer that a failure names.
const MAX_AWAITED_REQUESTS: usize = 10;
/// Maximum number of recorded calls that a note lists.
const MAX_LISTED_CALLS: usize = 5;
/// Maximum length of the arguments of each, in characters.
const MAX_LISTED_ARGUMENTS_CHARS: usize = 100;

/// Answers the calls of mocked MCP servers from the scripted answers of a case.
#[derive(Debug, Default)]
pub struct ScriptedServers {
    servers: Mutex<BTreeMap<String, ScriptedServer>>,
}

#[derive(Debug)]
struct ScriptedServer {
    answers: ScriptedAnswers,
    /// Questions that precede the answers of each tool, in their order.
    questions: BTreeMap<String, Vec<InputRounds>>,
}

impl ScriptedServers {
    /// Creates answers for servers by name. Functions compute some of them.
    pub fn new(answers: BTreeMap<String, MockAnswers>, functions: Option<&ScriptToolFunctions>) -> Self {
        let servers = answers.into_iter().map(|(name, MockAnswers { tools, questions })| {
            let functions =
                functions.map(|all| Arc::new(all.for_server(&name)) as Arc<dyn ToolFunctionCaller>);
            let answers = ScriptedAnswers::new(tools).with_functions(functions);
            (name, ScriptedServer { answers, questions })
        });
        ScriptedServers { servers: Mutex::new(servers.collect()) }
    }
}

impl ScriptedServer {
    /// Returns the reply to a call.
    ///
    /// # Errors
    /// The answer in place of it: no reply matches, or the user is asked first.
    fn reply(&mut self, call: &McpCall) -> Result<PendingReply, Box<McpAnswer>> {
        let (tool, arguments) = (&call.tool, &call.arguments);
        let state = call.input_state.as_ref();
        // A call that the client continues has its answer already.
        let selected = match state {
            Some(state) => Some(SelectedAnswer {
                index: state["answer"].as_u64().unwrap_or_default() as usize,
                number: state["number"].as_u64().unwrap_or_default() as usize,
            }),
            None => self.answers.select_answer(tool, arguments),
        };
        let unmatched = |server: &Self| {
            Box::new(McpAnswer::Unmatched { nearest: server.answers.nearest_answer(tool, arguments) })
        };
        let Some(selected) = selected else { return Err(unmatched(self)) };
        let inputs = match self.questions.get(tool).and_then(|questions| questions.get(selected.index)) {
            None => Map::new(),
            Some(ask) => {
                let rounds = state.map(|state| &state["rounds"]);
                let collected = ask.collect(rounds, &call.input_responses, &call.capabilities);
                collected.map_err(|input| Box::new(asked(*input, selected)))?
            }
        };
        let contents = inputs.into_iter().map(|(name, mut response)| {
            let content = response.get_mut("content").map_or_else(|| json!({}), Value::take);
            (name, content)
        });
        self.answers
            .selected_reply(tool, arguments, selected, contents.collect())
            .ok_or_else(|| unmatched(self))
    }
}

/// Answers with open questions. The client returns the selected answer with its responses.
fn asked(input: UnansweredInput, selected: SelectedAnswer) -> McpAnswer {
    let mut answer = McpAnswer::from(input);
    if let McpAnswer::InputRequired(input) = &mut answer {
        let rounds = input.state.take();
        input.state = Some(json!({"answer": selected.index, "number": selected.number, "rounds": rounds}));
    }
    answer
}

impl ToolAnswerer for ScriptedServers {
    fn answer<'a>(&'a self, call: &'a McpCall) -> AnswerFuture<'a> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = match servers.get_mut(&call.server) {
            None => Err(Box::new(McpAnswer::Unmatched { nearest: None })),
            Some(server) => server.reply(call),
        };
        Box::pin(async move {
            match reply {
                Err(answer) => *answer,
                Ok(reply) => match reply.complete().await {
                    Ok(ToolReply::Content(value)) => McpAnswer::Result(McpToolResult::from_value(value)),
                    Ok(ToolReply::Error(text)) => McpAnswer::Result(McpToolResult::error(text)),
                    Err(AttemptFailure { message, detail, .. }) => McpAnswer::Failed { message, detail },
                },
            }
        })
    }
}

/// What a test expects of the calls at its MCP servers.
#[derive(Debug, Default)]
pub struct ExpectedCalls {
    /// Servers that hand an error to the agent if no answer matches.
    pub answers_unmatched: BTreeSet<String>,
    /// Tools that faults and assertions name.
    pub tools: Vec<ToolReference>,
    /// The case, if only its servers show the calls of the agent.
    pub case: Option<Arc<TestCase>>,
}

impl ExpectedCalls {
    /// Fails if a tool that the test names is not among those that its server listed.
    fn check_tools(&self, server: &str, listed: &[String]) -> Result<(), AttemptFailure> {
        let named = self.tools.iter().filter(|reference| reference.server == server);
        let unknown = named.filter_map(|reference| reference.check(listed)).next();
        unknown.map_or(Ok(()), |unknown| Err(test_error(unknown.into())))
    }

    /// Fails if the case says that a tool is not called, and none of the servers has it.
    fn check_unseen(&self, listed: &ListedTools) -> Result<(), AttemptFailure> {
        let Some(case) = &self.case else { return Ok(()) };
        let of_checks = case.every_check().flat_map(|check| case.unseen_tools(check, listed));
        let of_topics = case.topics.iter().flat_map(|topics| case.unseen_triggers(topics, listed));
        let unseen = of_checks.chain(of_topics).next();
        unseen.map_or(Ok(()), |unseen| Err(test_error(unseen.into())))
    }
}

/// A session with an agent, and its conversation with the MCP servers of the test.
pub type McpAgent = ServiceAgent<McpObserver>;

/// Reads a conversation with MCP servers.
pub type ConversationReader = Box<dyn FnOnce(&McpConversation) + Send>;

impl McpAgent {
    /// Adds a conversation to a session. The conversation is returned to `home`; `on_end` reads it when it is
    /// complete.
    pub fn new(
        agent: Box<dyn AgentSession>,
        conversation: McpConversation,
        expected: ExpectedCalls,
        home: Option<ConversationSlot<McpConversation>>,
        on_end: Option<ConversationReader>,
    ) -> McpAgent {
        let observer = McpObserver { expected, on_end, ..McpObserver::default() };
        ServiceAgent::with_observer(agent, conversation, observer, home)
    }
}

/// Turns events of MCP servers into events of the trace.
#[derive(Default)]
pub struct McpObserver {
    events: TurnEvents,
    /// Turn and id of each call.
    calls: HashMap<u64, ObservedCall>,
    /// Calls without an answer, except those that wait for input of the user.
    open: HashSet<u64>,
    /// Calls of this turn that tasks carry out, and whose results are not known.
    tasks: BTreeSet<u64>,
    /// Number of questions to the user.
    interrupts: usize,
    expected: ExpectedCalls,
    listed: ListedTools,
    /// Reads the conversation once at its end, if it is complete.
    on_end: Option<ConversationReader>,
}

/// A call at an MCP server.
struct ObservedCall {
    turn_id: Arc<str>,
    id: Arc<str>,
    tool: String,
    /// The start of its arguments, for messages.
    arguments: String,
    /// False if a fault keeps the tool from taking effect, or the server waits for input of the user.
    may_take_effect: bool,
    /// Questions to the user that wait for a response: their interrupts by their names.
    questions: BTreeMap<String, Arc<str>>,
    /// Whether the server ended the call without an answer.
    is_broken_off: bool,
}

impl ServiceObserver for McpObserver {
    type Conversation = McpConversation;
    type Event = McpEvent;

    fn next_event(conversation: &mut McpConversation) -> impl Future<Output = Option<McpEvent>> + Send {
        conversation.next_event()
    }

    fn try_next_event(conversation: &mut McpConversation) -> Option<McpEvent> {
        conversation.try_next_event()
    }

    fn awaited_requests(conversation: &McpConversation, at: Instant) -> Vec<String> {
        let awaited = conversation.awaited_requests(at);
        let describe = |AwaitedRequest { server, method, arrived }: AwaitedRequest| {
            let waited = at.saturating_duration_since(arrived).as_millis();
            format!("MCP server `{server}` had not answered `{method}` for {waited} ms")
        };
        awaited.into_iter().take(MAX_AWAITED_REQUESTS).map(describe).collect()
    }

    fn addresses(conversation: &McpConversation) -> Vec<(String, String)> {
        let named = |name: &str| Some((name.to_string(), conversation.url(name)?));
        conversation.servers().filter_map(named).collect()
    }

    fn listed_tools(&self) -> ListedTools {
        self.listed.clone()
    }

    fn turn_events(&mut self) -> &mut TurnEvents {
        &mut self.events
    }

    fn has_open_calls(&self) -> bool {
        !self.open.is_empty()
    }

    fn end_turn(&mut self) {
        // Calls that are still open belong to this turn and are not waited for again.
        self.open.clear();
        for call in std::mem::take(&mut self.tasks) {
            if let Some(known) = self.calls.get(&call) {
                // The agent did not fetch the result. If the conversation exceeds a limit, the turn fails anyway.
                let _ = self.events.emit(Instant::now(), known.lost_answer(true));
            }
        }
    }

    /// Calls after the last turn are none of the conversation, however long the test lasts: they become warnings of the run.
    fn end_conversation(&mut self, conversation: &mut McpConversation) -> Result<(), AttemptFailure> {
        self.note_unused(conversation)?;
        if let Some(read) = self.on_end.take() {
            read(conversation);
        }
        Ok(())
    }

    fn process(&mut self, event: McpEvent) -> Result<(), AttemptFailure> {
        let McpEvent { at, server, kind } = event;
        match kind {
            McpEventKind::ClientConnected { revision, client, client_version } => {
                let version = client_version.map_or_else(String::new, |version| format!(" {version}"));
                let client = client.map(|client| client + &version);
                let (turn_id, server) = (self.events.turn.clone(), server.into());
                self.events.emit(at, McpConnected { turn_id, server, revision: revision.to_string(), client })
            }
            McpEventKind::ToolsListed { tools, may_change } => match may_change {
                true => Ok(()),
                false => {
                    self.expected.check_tools(&server, &tools)?;
                    if self.listed.get(&server).is_some_and(|known| **known == *tools) {
                        return Ok(());
                    }
                    self.listed.insert(server, tools.into());
                    self.expected.check_unseen(&self.listed)
                }
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
                self.events.note(at, format!("MCP server `{server}`: the client {cancelled}"))?;
                match self.calls.get(&call).filter(|call| call.may_take_effect) {
                    Some(known) => self.events.emit(at, known.lost_answer(true)),
                    None => Ok(()),
                }
            }
            McpEventKind::InvalidArguments { call, violations } => {
                let Some(known) = self.calls.get(&call) else { return Ok(()) };
                let (turn_id, tool_call_id) = (known.turn_id.clone(), known.id.clone());
                self.events.emit(at, McpArgumentsInvalid { turn_id, tool_call_id, errors: violations })
            }
            McpEventKind::UncheckedArguments { call, problem } => {
                let Some(known) = self.calls.get(&call) else { return Ok(()) };
                let (turn_id, tool_call_id) = (known.turn_id.clone(), known.id.clone());
                self.events.emit(
                    at,
                    McpArgumentsUnchecked { turn_id, tool_call_id, problem: problem.map(Arc::from) },
                )
            }
            McpEventKind::UnknownTool { tool, offered_after, .. } => {
                let message = match offered_after {
                    None => format!("MCP server `{server}` has no tool `{tool}`"),
                    Some(after) => {
                        format!("MCP server `{server}` offers `{tool}` only after `{after}` took effect")
                    }
                };
                self.events.note(at, message)
            }
            McpEventKind::Unmatched { call, method, nearest } => {
                self.report_unmatched(at, &server, call, &method, nearest)
            }
            McpEventKind::AnswerFailed { message, detail, .. } => {
                let failure = AttemptFailure::new(FailureKind::ScriptError, message);
                Err(failure.with_detail(detail.unwrap_or_default()))
            }
            McpEventKind::InputRequested { call, requests } => self.ask(at, &server, call, &requests),
            McpEventKind::InputProvided { call, responses } => self.receive_responses(at, call, &responses),
            McpEventKind::TaskStarted { call } => {
                self.open.remove(&call);
                self.tasks.insert(call);
                Ok(())
            }
            McpEventKind::CallBrokenOff { call } => {
                if let Some(known) = self.calls.get_mut(&call) {
                    known.is_broken_off = true;
                }
                Ok(())
            }
            McpEventKind::FaultInjected { call, rule, fault } => {
                self.record_fault(at, server, call, rule, &fault)
            }
            McpEventKind::ServerFailed { message, error_output } => {
                let message = format!("MCP server `{server}` failed: {message}");
                let detail = error_output.map_or_else(String::new, |text| {
                    format!("standard error of MCP server `{server}`:\n{text}")
                });
                Err(AttemptFailure::new(FailureKind::TestError, message).with_detail(detail))
            }
            McpEventKind::ProtocolError { message, .. } => {
                self.events.note(at, format!("MCP server `{server}`: {message}"))
            }
            McpEventKind::CallAfterClose { request } => {
                let message =
                    format!("the agent sent `{request}` to MCP server `{server}` after the conversation");
                Err(AttemptFailure::new(FailureKind::AgentError, message))
            }
            McpEventKind::RequestBroken { message } => {
                let message = format!("the agent sent a broken request to MCP server `{server}`: {message}");
                Err(AttemptFailure::new(FailureKind::AgentError, message))
            }
            McpEventKind::LimitReached { limit } => {
                let message = format!("the agent reached a limit of MCP server `{server}`: {limit}");
                Err(AttemptFailure::new(FailureKind::Limit, message))
            }
        }
    }
}

impl McpObserver {
    /// Records a fault of a call.
    fn record_fault(
        &mut self,
        at: Instant,
        server: String,
        call: u64,
        rule: usize,
        fault: &FaultKind,
    ) -> Result<(), AttemptFailure> {
        let Some(known) = self.calls.get_mut(&call) else { return Ok(()) };
        known.may_take_effect &= fault.has_effect();
        let injected = McpFaultInjected {
            turn_id: known.turn_id.clone(),
            tool_call_id: known.id.clone(),
            server: server.into(),
            tool: known.tool.as_str().into(),
            fault: fault.name().into(),
            rule,
            effect: fault.has_effect(),
        };
        self.events.emit(at, injected)
    }

    /// Notes the recorded calls that the agent did not make.
    fn note_unused(&mut self, conversation: &McpConversation) -> Result<(), AttemptFailure> {
        let mut by_server: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (server, exchange) in conversation.unused_exchanges() {
            if exchange.method == "tools/call" {
                let tool = exchange.params.get("name").and_then(Value::as_str).unwrap_or_default();
                let arguments = exchange.params.get("arguments").map_or_else(String::new, json_start);
                let arguments = excerpt(&arguments, MAX_LISTED_ARGUMENTS_CHARS);
                by_server.entry(server).or_default().push(format!("{tool}({arguments})"));
            }
        }
        for (server, calls) in by_server {
            let listed = format_first(&calls, MAX_LISTED_CALLS);
            let message = format!("recorded calls at MCP server `{server}` were not made: {listed}");
            self.events.note(Instant::now(), message)?;
        }
        Ok(())
    }
}

/// Returns a value as JSON; only the start of a long one is written.
fn json_start(value: &Value) -> String {
    let mut start = [0; MAX_SHOWN_ARGUMENTS_BYTES];
    let mut rest = &mut start[..];
    let is_whole = serde_json::to_writer(&mut rest, value).is_ok();
    let unused = rest.len();
    let written = &start[..MAX_SHOWN_ARGUMENTS_BYTES - unused];
    let text = written.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if is_whole { text.to_string() } else { format!("{text}…") }
}

impl ObservedCall {
    /// The event of an answer that the client does not get.
    fn lost_answer(&self, success: bool) -> McpAnswerLost {
        McpAnswerLost { turn_id: self.turn_id.clone(), tool_call_id: self.id.clone(), success }
    }
}

impl McpObserver {
    /// Reports the questions of a server to the user of its client. Meanwhile the call has no effect.
    fn ask(
        &mut self,
        at: Instant,
        server: &str,
        call: u64,
        requests: &Map<String, Value>,
    ) -> Result<(), AttemptFailure> {
        // The client may answer in a later turn.
        self.open.remove(&call);
        let Some(known) = self.calls.get_mut(&call) else { return Ok(()) };
        known.may_take_effect = false;
        let mut raised = Vec::new();
        for (name, request) in requests {
            // A client that gave no response is asked again.
            if known.questions.contains_key(name) {
                continue;
            }
            self.interrupts += 1;
            let interrupt_id: Arc<str> = format!("{}-question-{}", known.id, self.interrupts).into();
            known.questions.insert(name.clone(), interrupt_id.clone());
            let (method, params) = (&request["method"], &request["params"]);
            raised.push(InterruptRaised {
                turn_id: known.turn_id.clone(),
                interrupt_id,
                reason: method.as_str().map(str::to_string),
                message: params["message"].as_str().map(str::to_string),
                tool_call_id: Some(known.id.clone()),
                server: Some(server.into()),
                value: json!({"name": name, "method": method, "params": params}),
            });
        }
        raised.into_iter().try_for_each(|event| self.events.emit(at, event))
    }

    /// Reports the responses of a client to questions of a server.
    fn receive_responses(
        &mut self,
        at: Instant,
        call: u64,
        responses: &Map<String, Value>,
    ) -> Result<(), AttemptFailure> {
        let Some(known) = self.calls.get_mut(&call) else { return Ok(()) };
        known.may_take_effect = true;
        self.open.insert(call);
        let mut answered = Vec::new();
        for (name, response) in responses {
            let Some(interrupt_id) = known.questions.remove(name) else { continue };
            let (status, payload) = match response["action"].as_str() {
                Some("accept") => ("resolved", response.get("content").cloned()),
                Some("decline") => ("declined", None),
                Some("cancel") => ("cancelled", None),
                _ => ("resolved", Some(response.clone())),
            };
            let turn_id = known.turn_id.clone();
            answered.push(InterruptAnswered { turn_id, interrupt_id, status: status.into(), payload });
        }
        answered.into_iter().try_for_each(|event| self.events.emit(at, event))
    }

    fn receive_call(
        &mut self,
        at: Instant,
        server: &str,
        call: u64,
        tool: String,
        arguments: Value,
        agent_call_id: Option<Arc<str>>,
    ) -> Result<(), AttemptFailure> {
        let Some(turn_id) = self.events.turn.clone() else {
            let message = format!("the agent called {tool} of MCP server `{server}` before the first turn");
            return Err(AttemptFailure::new(FailureKind::AgentError, message));
        };
        let id: Arc<str> = format!("mcp-{call}").into();
        let shown = json_start(&arguments);
        let known = ObservedCall {
            turn_id: turn_id.clone(),
            id: id.clone(),
            tool: tool.clone(),
            arguments: shown,
            may_take_effect: true,
            questions: BTreeMap::new(),
            is_broken_off: false,
        };
        self.calls.insert(call, known);
        self.open.insert(call);
        let invoked = ToolInvocation {
            input: Some(arguments),
            server: Some(server.into()),
            agent_call_id,
            ..ToolInvocation::new(turn_id, id, tool)
        };
        self.events.emit(at, Payload::ToolInvoked(invoked))
    }

    fn answer_call(
        &mut self,
        at: Instant,
        call: u64,
        outcome: Result<McpToolResult, RpcError>,
        delivered: bool,
    ) -> Result<(), AttemptFailure> {
        self.open.remove(&call);
        self.tasks.remove(&call);
        let Some(known) = self.calls.get(&call) else { return Ok(()) };
        let (turn_id, tool_call_id) = (known.turn_id.clone(), known.id.clone());
        let success = outcome.as_ref().is_ok_and(|result| !result.is_error);
        if !delivered {
            return self.events.emit(at, known.lost_answer(success || known.is_broken_off));
        }
        if known.is_broken_off {
            self.events.emit(at, known.lost_answer(true))?;
        }
        let origin = Origin::Server;
        let failed = |code: Option<String>, message: String| ToolFailed {
            turn_id: turn_id.clone(),
            tool_call_id: tool_call_id.clone(),
            error: ErrorInfo { code, message, retriable: None },
            origin,
        };
        match outcome {
            Ok(result) if result.is_error => self.events.emit(at, failed(None, result.error_text())),
            Ok(result) => {
                let output = result.value();
                self.events.emit(at, ToolCompleted { turn_id, tool_call_id, output, origin })
            }
            Err(error) => self.events.emit(at, failed(Some(error.code.to_string()), error.message)),
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
            return self.events.note(at, message);
        }
        let nearest = nearest.unwrap_or_else(|| "the tool has no answers".to_string());
        let failure = AttemptFailure::new(FailureKind::TestError, format!("{message}; nearest: {nearest}"));
        let help = "add an answer under `answers` of the tool, record the replay or the cassette again, or set `unmatched: error_result`";
        Err(failure.with_detail(help))
    }
}
