//! State of the servers of a run, of a conversation, and of one server in a conversation.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use hotseat_http::HttpClients;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, mpsc, watch};

use super::catalog::{ToolCatalog, given_cursor};
use super::faults::FaultState;
use super::program_failure::ProgramFailure;
use super::sessions::ClientSession;
use super::signing::StateSigner;
use super::stdio::{LinkUser, StdioLink};
use super::suspended::SuspendedStreams;
use super::tasks::TaskTable;
use super::url_upstream::UrlUpstream;
use crate::answer::{ListChanges, ToolAnswerer};
use crate::definition::{McpLimits, McpOptions, ServerDefinition, UpstreamCommand, UpstreamLauncher};
use crate::event::{AwaitedRequest, LateCall, McpEvent, McpEventKind};
use crate::frame::RpcError;
use crate::lock;
use crate::recording::{McpExchange, RecordedQuestion, ReplayTable};
use crate::revision::{ProtocolRevision, error_code};

/// Maximum number of recorded questions of one call.
const MAX_RECORDED_QUESTIONS: usize = 256;
/// Maximum number of calls after the end of their conversations that are remembered.
const MAX_LATE_CALLS: usize = 100;
/// Maximum number of closed conversations that are remembered.
const MAX_CLOSED_CONVERSATIONS: usize = 4096;
/// Maximum number of different clients of one server that are reported.
const MAX_KNOWN_CLIENTS: usize = 256;
/// Maximum number of tools of a proxied server that are reported.
const MAX_LISTED_TOOLS: usize = 10_000;
/// Maximum number of tools of a proxied server whose schemas are compiled. It takes time, which all conversations share.
const MAX_LEARNED_TOOLS: usize = 1000;
/// Maximum size of these tools, in bytes.
const MAX_LEARNED_BYTES: usize = 1024 * 1024;

/// Maximum number of calls of a server that wait for input at the same time.
pub(super) const MAX_WAITING_CALLS: usize = 256;

/// State of all servers of a run.
pub(super) struct RunState {
    pub(super) limits: McpLimits,
    pub(super) signer: StateSigner,
    /// Settings of the clients of proxied servers.
    clients: HttpClients,
    pub(super) is_recording: bool,
    pub(super) launcher: Option<Arc<dyn UpstreamLauncher>>,
    conversations: Mutex<ConversationTable>,
    late_calls: Mutex<BTreeSet<LateCall>>,
}

#[derive(Default)]
struct ConversationTable {
    open: HashMap<String, Arc<ConversationState>>,
    /// Tokens and names.
    closed: VecDeque<(String, String)>,
}

/// Result of the search for a conversation.
pub(super) enum ConversationLookup {
    /// The conversation exists; it may be closed and still report events.
    Found(Arc<ConversationState>),
    /// The conversation with this name existed.
    Gone(String),
    /// There was no such conversation.
    Unknown,
}

impl RunState {
    pub(super) fn new(options: McpOptions) -> RunState {
        RunState {
            limits: options.limits,
            signer: StateSigner::new(),
            // Credentials in headers must not pass through proxies that the environment names.
            clients: HttpClients::default().without_proxies().without_user_agent(),
            is_recording: options.record,
            launcher: options.launcher,
            conversations: Mutex::default(),
            late_calls: Mutex::default(),
        }
    }

    pub(super) fn insert(&self, conversation: Arc<ConversationState>) {
        lock(&self.conversations).open.insert(conversation.token.clone(), conversation);
    }

    /// Removes a conversation, unless another one has taken its address.
    pub(super) fn remove(&self, conversation: &Arc<ConversationState>, name: &str) {
        let mut table = lock(&self.conversations);
        let token = &conversation.token;
        if table.open.get(token).is_some_and(|open| Arc::ptr_eq(open, conversation)) {
            table.open.remove(token);
            table.closed.push_back((token.clone(), name.to_string()));
            if table.closed.len() > MAX_CLOSED_CONVERSATIONS {
                table.closed.pop_front();
            }
        }
    }

    pub(super) fn find(&self, token: &str) -> ConversationLookup {
        let table = lock(&self.conversations);
        match table.open.get(token) {
            Some(found) => ConversationLookup::Found(found.clone()),
            None => match table.closed.iter().find(|(closed, _)| closed == token) {
                Some((_, name)) => ConversationLookup::Gone(name.clone()),
                None => ConversationLookup::Unknown,
            },
        }
    }

    /// Remembers a call after the end of a conversation, up to a number of different ones.
    pub(super) fn note_late_call(&self, call: LateCall) {
        let mut calls = lock(&self.late_calls);
        if calls.len() < MAX_LATE_CALLS {
            calls.insert(call);
        }
    }

    pub(super) fn late_calls(&self) -> Vec<LateCall> {
        lock(&self.late_calls).iter().cloned().collect()
    }
}

/// State of one conversation.
pub(super) struct ConversationState {
    /// Unguessable part of the addresses.
    pub(super) token: String,
    pub(super) servers: BTreeMap<String, Arc<ServerState>>,
    pub(super) answerer: Arc<dyn ToolAnswerer>,
    pub(super) limits: McpLimits,
    is_recording: bool,
    /// Clients of proxied servers.
    pub(super) clients: HttpClients,
    /// Permits for open requests.
    pub(super) open_requests: Arc<Semaphore>,
    events: mpsc::Sender<McpEvent>,
    calls: AtomicU64,
    /// Rounds of calls that their clients have continued: number of the call and of the round.
    continued_rounds: Mutex<HashSet<(u64, u64)>>,
    awaited: Mutex<AwaitedTable>,
    closed: watch::Sender<bool>,
}

/// Requests without an answer.
#[derive(Default)]
struct AwaitedTable {
    /// Those that the client waits for, by number.
    open: BTreeMap<u64, AwaitedRequest>,
    /// Those for which it gave up waiting since the last request, with the time.
    cancelled: Vec<(AwaitedRequest, Instant)>,
    last: u64,
}

impl ConversationState {
    pub(super) fn new(
        token: String,
        servers: BTreeMap<String, Arc<ServerState>>,
        answerer: Arc<dyn ToolAnswerer>,
        run: &RunState,
        events: mpsc::Sender<McpEvent>,
    ) -> ConversationState {
        let (limits, is_recording) = (run.limits.clone(), run.is_recording);
        let open_requests =
            Arc::new(Semaphore::new(limits.max_open_requests.clamp(1, Semaphore::MAX_PERMITS)));
        let (closed, calls) = (watch::Sender::new(false), AtomicU64::new(0));
        ConversationState {
            token,
            servers,
            answerer,
            limits,
            is_recording,
            clients: run.clients.with_own_connections(),
            open_requests,
            events,
            calls,
            continued_rounds: Mutex::default(),
            awaited: Mutex::default(),
            closed,
        }
    }

    /// Whether the exchanges of a server are recorded.
    pub(super) fn records(&self, server: &ServerState) -> bool {
        self.is_recording || server.definition.record
    }

    /// Reports an event. Waits while too many events wait for the receiver.
    pub(super) async fn report(&self, server: &str, at: Instant, kind: McpEventKind) {
        // Without a receiver there is no one to report to.
        let _ = self.events.send(McpEvent { at, server: server.to_string(), kind }).await;
    }

    /// Returns what a program needs to report to this conversation.
    pub(super) fn link_user(&self, server: &ServerState) -> LinkUser {
        LinkUser { events: self.events.downgrade(), server: server.name().to_string() }
    }

    /// Returns the number of the next call. Reports and fails if there were too many.
    pub(super) async fn begin_call(&self, server: &ServerState, arrived: Instant) -> Result<u64, RpcError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if number <= self.limits.max_calls {
            return Ok(number);
        }
        let limit = format!("{} calls", self.limits.max_calls);
        let message = format!("the limit of {limit} of the conversation is reached");
        self.report(server.name(), arrived, McpEventKind::LimitReached { limit }).await;
        Err(RpcError::new(error_code::LIMIT_REACHED, message))
    }

    /// Returns a number for a request that is not answered yet.
    pub(super) fn begin_request(&self, request: AwaitedRequest) -> u64 {
        let mut awaited = lock(&self.awaited);
        awaited.cancelled.clear();
        awaited.last += 1;
        let number = awaited.last;
        awaited.open.insert(number, request);
        number
    }

    /// Ends a request, with its answer or because the client no longer waits.
    pub(super) fn end_request(&self, number: u64, is_answered: bool) {
        let mut awaited = lock(&self.awaited);
        if let Some(request) = awaited.open.remove(&number).filter(|_| !is_answered) {
            awaited.cancelled.push((request, Instant::now()));
        }
    }

    /// Returns the requests that were not answered at this time.
    pub(super) fn awaited_requests(&self, at: Instant) -> Vec<AwaitedRequest> {
        let awaited = lock(&self.awaited);
        let cancelled = awaited.cancelled.iter().filter(|(_, cancelled)| *cancelled >= at);
        let all = cancelled.map(|(request, _)| request).chain(awaited.open.values());
        all.filter(|request| request.arrived < at).cloned().collect()
    }

    /// Continues a call after one of its rounds. Returns false if its client has done so before.
    pub(super) fn continue_call(&self, call: u64, round: u64) -> bool {
        lock(&self.continued_rounds).insert((call, round))
    }

    pub(super) fn close(&self) {
        self.closed.send_replace(true);
        for server in self.servers.values() {
            lock(&server.sessions).clear();
            server.suspended.clear();
            if let AnswerSource::Command(upstream) = &server.source {
                upstream.stop();
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Resolves when the conversation is closed.
    pub(super) async fn wait_closed(&self) {
        let mut closed = self.closed.subscribe();
        // The sender lives as long as `self`.
        let _ = closed.wait_for(|closed| *closed).await;
    }
}

/// Source of the answers of one server in one conversation.
pub(super) enum AnswerSource {
    Mock,
    Replay(Mutex<ReplayTable>),
    Url(UrlUpstream),
    Command(CommandUpstream),
}

/// A program that is started with the first request.
pub(super) struct CommandUpstream {
    pub(super) command: UpstreamCommand,
    /// Program of all clients without a session.
    shared: Mutex<Option<Arc<StdioLink>>>,
}

impl CommandUpstream {
    pub(super) fn new(command: UpstreamCommand) -> CommandUpstream {
        CommandUpstream { command, shared: Mutex::default() }
    }

    /// Starts a program of its own for a session.
    pub(super) fn start(&self, run: &RunState) -> Result<Arc<StdioLink>, ProgramFailure> {
        let launcher = run.launcher.as_deref();
        StdioLink::start(&self.command, launcher, run.limits.max_answer_bytes).map(Arc::new)
    }

    /// Returns the program of clients without a session; starts it if it is not running.
    pub(super) fn shared(&self, run: &RunState) -> Result<Arc<StdioLink>, ProgramFailure> {
        let mut shared = lock(&self.shared);
        match shared.as_ref().filter(|link| !link.is_ended()) {
            Some(link) => Ok(link.clone()),
            None => Ok(shared.insert(self.start(run)?).clone()),
        }
    }

    fn stop(&self) {
        lock(&self.shared).take();
    }
}

/// Exchanges of a proxied server, up to a size.
#[derive(Default)]
struct RecordedExchanges {
    exchanges: Vec<McpExchange>,
    bytes: usize,
    /// Number of calls that the server has not answered yet.
    open_calls: usize,
    /// Why exchanges are missing.
    gap: Option<String>,
}

/// Tools of a proxied server, as far as its pages arrived.
#[derive(Default)]
pub(super) struct ListedTools {
    names: Vec<String>,
    /// Entries whose schemas are compiled after the last page.
    entries: Vec<Value>,
    bytes: usize,
    /// Whether the server announced that the list may change.
    pub(super) may_change: bool,
}

impl ListedTools {
    /// Adds the answer to `tools/list`. Returns the names and the entries of all pages after the last one.
    pub(super) fn add_page(
        &mut self,
        params: &Map<String, Value>,
        result: &Value,
    ) -> Option<(Vec<String>, Vec<Value>)> {
        if given_cursor(params.get("cursor")).is_none() {
            (self.names, self.entries, self.bytes) = Default::default();
        }
        let entries = || result.get("tools").and_then(Value::as_array).into_iter().flatten();
        let names = entries().filter_map(|tool| Some(tool.get("name")?.as_str()?.to_string()));
        let room = MAX_LISTED_TOOLS.saturating_sub(self.names.len());
        self.names.extend(names.take(room));
        for entry in entries() {
            self.bytes += entry.to_string().len();
            if self.entries.len() < MAX_LEARNED_TOOLS && self.bytes <= MAX_LEARNED_BYTES {
                self.entries.push(entry.clone());
            }
        }
        let is_complete =
            given_cursor(result.get("nextCursor")).is_none() && self.names.len() < MAX_LISTED_TOOLS;
        is_complete.then(|| (self.names.clone(), std::mem::take(&mut self.entries)))
    }
}

/// A call of a proxied or recorded server that waits for input.
pub(super) struct WaitingCall {
    pub(super) number: u64,
    /// Number of times that it has asked for input.
    pub(super) rounds: u64,
    /// Index of the rule of its fault.
    pub(super) fault: Option<usize>,
}

/// A call of a proxied server that waits for the response to a request within it.
pub(super) struct AskingCall {
    pub(super) call: u64,
    /// Method and parameters.
    pub(super) request: Value,
}

/// A call of a proxied server over HTTP.
pub(super) struct OpenCall {
    /// Session of its client.
    pub(super) session: Option<String>,
    /// Identifier of the request.
    pub(super) id: Value,
    pub(super) is_cancelled: bool,
}

/// State of one server in one conversation.
pub(super) struct ServerState {
    pub(super) definition: ServerDefinition,
    pub(super) source: AnswerSource,
    /// Calls of a proxied server that wait for input, by the state that their client sends again.
    pub(super) waiting_calls: Mutex<HashMap<String, WaitingCall>>,
    /// Calls of a proxied or recorded server that tasks carry out.
    pub(super) tasks: TaskTable,
    /// Calls of a proxied server by the identifiers of its requests to a client with a session.
    pub(super) asking_calls: Mutex<HashMap<String, AskingCall>>,
    /// Recorded questions of calls of a proxied server that have no answer yet.
    questions: Mutex<HashMap<u64, Vec<RecordedQuestion>>>,
    /// Open calls of a proxied server over HTTP, by their numbers. Their clients may cancel them with a message of their own.
    pub(super) open_calls: Mutex<HashMap<u64, OpenCall>>,
    /// Streams of a proxied server over HTTP that ended before their answers.
    pub(super) suspended: SuspendedStreams,
    recorded: Mutex<RecordedExchanges>,
    /// Tools that a proxied server listed.
    pub(super) listed: Mutex<ListedTools>,
    /// Tools of a mock; replaced as a whole.
    pub(super) tools: RwLock<Arc<ToolCatalog>>,
    /// Sessions of clients with a handshake, by their identifiers.
    pub(super) sessions: Mutex<HashMap<String, Arc<ClientSession>>>,
    pub(super) faults: FaultState,
    pub(super) changes: ListChanges,
    tool_calls: Mutex<HashMap<String, u64>>,
    clients: Mutex<HashSet<(ProtocolRevision, String)>>,
}

impl ServerState {
    pub(super) fn new(definition: ServerDefinition, source: AnswerSource, tools: ToolCatalog) -> ServerState {
        ServerState {
            faults: FaultState::new(&definition.faults),
            tools: RwLock::new(Arc::new(tools)),
            sessions: Mutex::default(),
            changes: ListChanges::new(),
            tool_calls: Mutex::default(),
            clients: Mutex::default(),
            waiting_calls: Mutex::default(),
            tasks: TaskTable::default(),
            asking_calls: Mutex::default(),
            questions: Mutex::default(),
            open_calls: Mutex::default(),
            suspended: SuspendedStreams::default(),
            recorded: Mutex::default(),
            listed: Mutex::default(),
            source,
            definition,
        }
    }

    /// Adds an exchange to the recording, if there is room.
    pub(super) fn record(&self, exchange: McpExchange, max_bytes: usize) {
        let size = |value: &serde_json::Map<String, Value>| {
            serde_json::to_string(value).map_or(0, |text| text.len())
        };
        let answer = exchange.outcome.as_ref().map_or(0, |result| result.to_string().len());
        let mut recorded = lock(&self.recorded);
        let asked = exchange.questions.iter();
        let asked = asked.map(|asked| asked.params.to_string().len() + asked.response.to_string().len());
        recorded.bytes += size(&exchange.params) + answer + asked.sum::<usize>();
        match recorded.bytes <= max_bytes {
            true => recorded.exchanges.push(exchange),
            false => {
                let gap = || format!("the exchanges are longer than {max_bytes} bytes");
                recorded.gap.get_or_insert_with(gap);
            }
        }
    }

    /// Records a request to the client within a call, with its response.
    pub(super) fn record_question(&self, call: u64, request: &Value, response: &Value) {
        let mut questions = lock(&self.questions);
        let known = questions.entry(call).or_default();
        if known.len() >= MAX_RECORDED_QUESTIONS {
            let gap = || format!("a call has more than {MAX_RECORDED_QUESTIONS} questions to its client");
            lock(&self.recorded).gap.get_or_insert_with(gap);
            return;
        }
        known.push(RecordedQuestion {
            method: request["method"].as_str().unwrap_or_default().to_string(),
            params: request["params"].clone(),
            response: response.clone(),
        });
    }

    /// Removes the recorded questions of a call.
    pub(super) fn take_questions(&self, call: u64) -> Vec<RecordedQuestion> {
        lock(&self.questions).remove(&call).unwrap_or_default()
    }

    /// Counts a call whose answer is to be recorded.
    pub(super) fn begin_recording(&self) {
        lock(&self.recorded).open_calls += 1;
    }

    /// Ends the recording of a call, and notes why it is missing.
    pub(super) fn end_recording(&self, gap: Option<String>) {
        let mut recorded = lock(&self.recorded);
        recorded.open_calls = recorded.open_calls.saturating_sub(1);
        recorded.gap = recorded.gap.take().or(gap);
    }

    /// Returns why exchanges are missing in the recording.
    pub(super) fn recording_gap(&self) -> Option<String> {
        let recorded = lock(&self.recorded);
        let is_open = recorded.open_calls > 0;
        let open = || is_open.then(|| "a call has no answer yet".to_string());
        recorded.gap.clone().or_else(open)
    }

    pub(super) fn recorded(&self) -> Vec<McpExchange> {
        lock(&self.recorded).exchanges.clone()
    }

    pub(super) fn name(&self) -> &str {
        &self.definition.name
    }

    pub(super) fn tools(&self) -> Arc<ToolCatalog> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Learns the tools of a proxied server. Invalid ones are a matter between the server and its client.
    pub(super) fn learn_entries(&self, entries: &[Value]) {
        self.learn_tools(ToolCatalog::from_entries(entries));
    }

    /// Validates the arguments of a call. Returns the event to report, unless they are valid.
    pub(super) fn validate(&self, call: u64, tool: &str, arguments: &Value) -> Option<McpEventKind> {
        let tools = self.tools();
        match tools.find(tool) {
            Some(tool) => tool.validate(call, arguments),
            None => {
                let problem = tools.problem(tool).map(str::to_string);
                Some(McpEventKind::UncheckedArguments { call, problem })
            }
        }
    }

    /// Replaces the tools without a notification.
    pub(super) fn learn_tools(&self, tools: impl Into<Arc<ToolCatalog>>) {
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools.into();
    }

    /// Remembers a call of a proxied or recorded server that asks for input, by the state that its client sends again. Returns the
    /// event to report.
    pub(super) fn wait_for_input(&self, result: &Value, call: WaitingCall) -> McpEventKind {
        let requests = result.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
        let kind = McpEventKind::InputRequested { call: call.number, requests };
        if let Some(state) = result.get("requestState").and_then(Value::as_str) {
            let mut waiting = lock(&self.waiting_calls);
            if waiting.len() < MAX_WAITING_CALLS {
                waiting.insert(state.to_string(), call);
            }
        }
        kind
    }

    /// Offers the tools that wait for the effect of a tool, and notifies the clients.
    pub(super) fn take_effect(&self, tool: &str) {
        let changed = {
            let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
            let next = tools.after_effect(tool);
            next.map(|next| *tools = Arc::new(next)).is_some()
        };
        if changed {
            self.changes.tools.send_modify(|version| *version += 1);
        }
    }

    /// Counts a call of a tool and returns its number. Unknown tools are not counted one by one.
    pub(super) fn count_call(&self, tool: &str) -> u64 {
        let mut calls = lock(&self.tool_calls);
        let count = calls.entry(tool.to_string()).or_default();
        *count += 1;
        *count
    }

    /// Marks the open calls that their client cancels with a message of its own.
    pub(super) fn cancel_calls(&self, session: Option<&str>, id: Option<&Value>) {
        let mut open = lock(&self.open_calls);
        for call in
            open.values_mut().filter(|call| call.session.as_deref() == session && Some(&call.id) == id)
        {
            call.is_cancelled = true;
        }
    }

    /// Whether a client with this name has not connected with this revision before.
    pub(super) fn is_new_client(&self, revision: ProtocolRevision, info: &Value) -> bool {
        let mut clients = lock(&self.clients);
        clients.len() < MAX_KNOWN_CLIENTS && clients.insert((revision, info.to_string()))
    }
}
