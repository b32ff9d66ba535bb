//! Observes the exchanges of proxied servers: events, recordings, and calls that ask for input.

use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::faults::SelectedFault;
use super::rpc_request::McpHttpRequest;
use super::state::{
    AnswerSource, AskingCall, ConversationState, MAX_WAITING_CALLS, OpenCall, ServerState, WaitingCall,
};
use super::tasks::TaskCall;
use crate::event::{AwaitedRequest, McpEventKind};
use crate::frame::{Frame, FrameError, RpcError};
use crate::lock;
use crate::recording::{McpExchange, without_meta};
use crate::revision::{ProtocolRevision, error_code};

/// Maximum number of times that one call may ask its client for input.
pub(super) const MAX_INPUT_ROUNDS: u64 = 32;

/// The error of a call that asks for input without end.
pub(super) fn too_many_rounds() -> RpcError {
    let message = format!("the call asked for input more than {MAX_INPUT_ROUNDS} times");
    RpcError::new(error_code::INTERNAL_ERROR, message)
}

/// Notifications before an answer, kept for the recording of the exchange: up to its maximum size, and none without one.
pub(super) struct KeptNotifications {
    messages: Vec<Value>,
    room: usize,
}

impl KeptNotifications {
    pub(super) fn new(conversation: &ConversationState, server: &ServerState) -> KeptNotifications {
        let room = if conversation.records(server) { conversation.limits.max_recorded_bytes } else { 0 };
        KeptNotifications { messages: Vec::new(), room }
    }

    /// Keeps a notification, if there is room for it.
    pub(super) fn push(&mut self, message: &Value) {
        if self.room == 0 {
            return;
        }
        match self.room.checked_sub(message.to_string().len()) {
            Some(room) => {
                self.room = room;
                self.messages.push(message.clone());
            }
            None => self.room = 0,
        }
    }
}

/// Why a proxied server gave no result.
pub(super) struct UpstreamError {
    pub(super) error: RpcError,
    /// True if the server may have carried the request out.
    is_broken_off: bool,
    /// True if the server is at fault, not its client.
    is_server_failure: bool,
}

impl UpstreamError {
    /// The server did not get the request.
    pub(super) fn without_effect(message: impl ToString) -> UpstreamError {
        RpcError::new(error_code::INTERNAL_ERROR, message).into()
    }

    /// The server got the request, and did not answer it.
    pub(super) fn broken_off(message: impl ToString) -> UpstreamError {
        let error = RpcError::new(error_code::INTERNAL_ERROR, message);
        UpstreamError { error, is_broken_off: true, is_server_failure: false }
    }

    /// The same error as one of the test: its server does not work.
    pub(super) fn into_server_failure(self) -> UpstreamError {
        UpstreamError { is_server_failure: true, ..self }
    }
}

impl From<RpcError> for UpstreamError {
    /// The error that the server answered.
    fn from(error: RpcError) -> UpstreamError {
        UpstreamError { error, is_broken_off: false, is_server_failure: false }
    }
}

/// One request to a proxied server until its answer.
pub(super) struct ExchangeObserver {
    conversation: Arc<ConversationState>,
    server: Arc<ServerState>,
    arrived: Instant,
    id: Value,
    method: String,
    params: Map<String, Value>,
    /// Number of the call, if the request is one.
    call: Option<u64>,
    /// Number of any other request.
    request: Option<u64>,
    /// True if the call continues after a question to the user.
    is_continued: bool,
    /// Index of the rule of its fault.
    fault: Option<usize>,
    /// Number of times that the call has asked its client for input, in requests and in answers.
    input_requests: u64,
    notifications: KeptNotifications,
    /// False if the request does not reach the server.
    is_recorded: bool,
    is_ended: bool,
}

impl ExchangeObserver {
    /// Begins to observe a request. Reports clients and calls. Fails if the conversation has too many calls.
    pub(super) async fn begin(
        conversation: Arc<ConversationState>,
        server: Arc<ServerState>,
        arrived: Instant,
        id: Value,
        method: String,
        params: Map<String, Value>,
    ) -> Result<ExchangeObserver, RpcError> {
        let notifications = KeptNotifications::new(&conversation, &server);
        let is_recorded = conversation.records(&server);
        let mut observer = ExchangeObserver {
            conversation,
            server,
            arrived,
            id,
            method,
            params,
            call: None,
            request: None,
            is_continued: false,
            fault: None,
            input_requests: 0,
            notifications,
            is_recorded,
            is_ended: false,
        };
        if observer.method == "tools/call" {
            observer.call = Some(observer.open_call().await?);
            if observer.is_recorded {
                observer.server.begin_recording();
            }
        } else {
            let (server, method) = (observer.server.name().to_string(), observer.method.clone());
            let request = AwaitedRequest { server, method, arrived };
            observer.request = Some(observer.conversation.begin_request(request));
        }
        Ok(observer)
    }

    /// Identifier of the request.
    pub(super) fn id(&self) -> &Value {
        &self.id
    }

    /// True after the answer.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Number of the call.
    pub(super) fn call(&self) -> Option<u64> {
        self.call
    }

    /// Lets the client cancel the call with a message of its own in this session.
    pub(super) fn await_cancellation(&self, session: Option<&str>) {
        if let Some(call) = self.call {
            let open =
                OpenCall { session: session.map(str::to_string), id: self.id.clone(), is_cancelled: false };
            lock(&self.server.open_calls).insert(call, open);
        }
    }

    /// True if the client has cancelled the call with a message of its own.
    fn is_cancelled(&self) -> bool {
        let open = lock(&self.server.open_calls);
        self.call.and_then(|call| open.get(&call)).is_some_and(|open| open.is_cancelled)
    }

    /// Selects the fault of the call. A call that continues keeps its fault.
    pub(super) fn select_fault(&mut self) -> Option<SelectedFault> {
        let call = self.call?;
        let (tool, arguments) = called_tool(&self.params);
        let (faults, rules) = (&self.server.faults, &self.server.definition.faults);
        if self.is_continued {
            return faults.resume(rules, tool, self.fault?);
        }
        // As at a mock, calls with invalid arguments get no fault.
        if let Some(McpEventKind::InvalidArguments { .. }) = self.server.validate(call, tool, &arguments) {
            return None;
        }
        let fault = faults.select(rules, tool, &arguments);
        self.fault = fault.as_ref().map(|fault| fault.rule);
        fault
    }

    async fn open_call(&mut self) -> Result<u64, RpcError> {
        let state = self.params.get("requestState").and_then(Value::as_str);
        // A client that repeats its responses makes another call, which may take effect again.
        let waiting = state.and_then(|state| lock(&self.server.waiting_calls).remove(state));
        if let Some(WaitingCall { number: call, rounds, fault }) = waiting {
            (self.is_continued, self.input_requests, self.fault) = (true, rounds, fault);
            let responses =
                self.params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default();
            self.report(self.arrived, McpEventKind::InputProvided { call, responses }).await;
            return Ok(call);
        }
        let call = self.conversation.begin_call(&self.server, self.arrived).await?;
        let kind = McpEventKind::CallReceived {
            call,
            tool: self.params.get("name").and_then(Value::as_str).unwrap_or_default().to_string(),
            arguments: self.params.get("arguments").cloned().unwrap_or_else(|| serde_json::json!({})),
            meta: self.params.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default(),
        };
        self.report(self.arrived, kind).await;
        let (tool, arguments) = called_tool(&self.params);
        if let Some(kind) = self.server.validate(call, tool, &arguments) {
            self.report(self.arrived, kind).await;
        }
        Ok(call)
    }

    async fn report(&self, at: Instant, kind: McpEventKind) {
        self.conversation.report(self.server.name(), at, kind).await;
    }

    /// Observes a message of the server. Fails if the call asks for input too often.
    pub(super) async fn observe(&mut self, data: &[u8]) -> Result<(), UpstreamError> {
        match Frame::parse(data) {
            Ok(Frame::Response { id, .. }) if id == self.id && self.is_ended => {
                let message = "the proxied server answered a request twice".to_string();
                self.report(Instant::now(), McpEventKind::ServerFailed { message, error_output: None }).await;
            }
            Ok(Frame::Response { id, outcome }) if id == self.id => {
                if let Ok(result) = &outcome {
                    self.count_answer(result)?;
                }
                self.end(outcome.map_err(UpstreamError::from), true).await;
            }
            Ok(frame @ Frame::Notification { .. }) => self.notifications.push(&frame.to_json()),
            Ok(frame @ Frame::Request { .. }) => self.report_input_request(&frame.to_json()).await?,
            Ok(Frame::Response { id, outcome: Ok(_) }) => {
                self.fail(UpstreamError::broken_off(foreign_id(&id)).into_server_failure()).await;
            }
            Ok(Frame::Response { outcome: Err(_), .. }) => {}
            Err(error) => self.report_invalid_message(&error).await,
        }
        Ok(())
    }

    /// Reports a message of the server that is none. The answer may follow it.
    pub(super) async fn report_invalid_message(&self, error: &FrameError) {
        let message = format!("the proxied server sent an invalid message: {}", error.error.message);
        self.report(Instant::now(), McpEventKind::ServerFailed { message, error_output: None }).await;
    }

    /// Reports a request of the server to its client, if it belongs to a call and the client asks its user or model. Clients answer
    /// other requests themselves. Fails if the call asks too often.
    pub(super) async fn report_input_request(&mut self, message: &Value) -> Result<(), UpstreamError> {
        let method = message["method"].as_str().unwrap_or_default();
        let is_question = method != "ping" && !method.starts_with("tasks/");
        if let Some(call) = self.call.filter(|_| is_question) {
            self.count_input_request()?;
            let request = serde_json::json!({"method": message["method"], "params": message["params"]});
            let name = message["id"].to_string();
            {
                let mut asking = lock(&self.server.asking_calls);
                if asking.len() < MAX_WAITING_CALLS {
                    asking.insert(name.clone(), AskingCall { call, request: request.clone() });
                }
            }
            let requests = Map::from_iter([(name, request)]);
            self.report(Instant::now(), McpEventKind::InputRequested { call, requests }).await;
        }
        Ok(())
    }

    /// Counts an answer that asks the client for input. Fails if the call asks too often.
    pub(super) fn count_answer(&mut self, result: &Value) -> Result<(), UpstreamError> {
        if self.call.is_some() && asks_for_input(result) {
            self.count_input_request()?;
        }
        Ok(())
    }

    fn count_input_request(&mut self) -> Result<(), UpstreamError> {
        self.input_requests += 1;
        if self.input_requests > MAX_INPUT_ROUNDS {
            return Err(UpstreamError::broken_off(too_many_rounds().message).into_server_failure());
        }
        Ok(())
    }

    /// Observes a JSON body. Fails if the call asks for input too often.
    pub(super) async fn observe_body(
        &mut self,
        status: StatusCode,
        body: &[u8],
    ) -> Result<(), UpstreamError> {
        let sends_key =
            matches!(&self.server.source, AnswerSource::Url(upstream) if !upstream.headers.is_empty());
        let outcome = read_outcome(&self.id, status, body, sends_key);
        if let Ok(result) = &outcome {
            self.count_answer(result)?;
        }
        self.end(outcome, true).await;
        Ok(())
    }

    /// Reports the answer. `delivered` says whether the client gets it. The error of a call that its client has cancelled is no
    /// answer: the server may have carried the call out.
    pub(super) async fn end(&mut self, outcome: Result<Value, UpstreamError>, delivered: bool) {
        if outcome.is_err() && self.is_cancelled() {
            return;
        }
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        let is_broken_off = outcome.as_ref().is_err_and(|failed| failed.is_broken_off);
        if let Err(failed) = &outcome
            && failed.is_server_failure
        {
            let kind =
                McpEventKind::ServerFailed { message: failed.error.message.clone(), error_output: None };
            self.report(Instant::now(), kind).await;
        }
        let outcome = outcome.map_err(|failed| failed.error);
        let duration = self.arrived.elapsed();
        self.record(&outcome);
        self.end_recording(None);
        if self.method == "initialize" {
            let version = outcome.as_ref().ok().and_then(|result| result.get("protocolVersion"));
            let revision = version.and_then(Value::as_str).and_then(ProtocolRevision::from_name);
            let info = self.params.get("clientInfo").cloned().unwrap_or_default();
            if let Some(revision) = revision {
                self.report_client(revision, &info).await;
            }
        }
        if let Ok(result) = &outcome {
            self.observe_tools(result).await;
        }
        let Some(call) = self.call else {
            for kind in self.server.tasks.observe(&self.method, &self.params, &outcome) {
                self.report(Instant::now(), kind).await;
            }
            return;
        };
        let task = TaskCall { number: call, arrived: self.arrived };
        let started = outcome.as_ref().ok().and_then(|answer| self.server.tasks.begin(answer, task));
        if let Some(kind) = started {
            return self.report(Instant::now(), kind).await;
        }
        if let Ok(result) = &outcome
            && asks_for_input(result)
        {
            let kind = self.server.wait_for_input(
                result,
                WaitingCall { number: call, rounds: self.input_requests, fault: self.fault },
            );
            return self.report(Instant::now(), kind).await;
        }
        if let Ok(result) = &outcome {
            let tool = self.params.get("name").and_then(Value::as_str).unwrap_or_default();
            self.server.faults.remember(&self.server.definition.faults, tool, result);
        }
        if is_broken_off {
            self.report(Instant::now(), McpEventKind::CallBrokenOff { call }).await;
        }
        for kind in McpEventKind::of_answer(call, outcome, duration, delivered) {
            self.report(Instant::now(), kind).await;
        }
    }

    /// Observes the capabilities of a server, and reports its tools.
    async fn observe_tools(&self, result: &Value) {
        match self.method.as_str() {
            "initialize" | "server/discover" => {
                let announced = result.pointer("/capabilities/tools/listChanged");
                lock(&self.server.listed).may_change |= announced == Some(&Value::Bool(true));
            }
            "tools/list" => {
                let (listed, may_change) = {
                    let mut listed = lock(&self.server.listed);
                    (listed.add_page(&self.params, result), listed.may_change)
                };
                if let Some((tools, entries)) = listed {
                    self.server.learn_entries(&entries);
                    self.report(Instant::now(), McpEventKind::ToolsListed { tools, may_change }).await;
                }
            }
            _ => {}
        }
    }

    /// Reports the client of a request.
    pub(super) async fn report_client(&self, revision: ProtocolRevision, info: &Value) {
        if self.server.is_new_client(revision, info) {
            let text = |key: &str| info.get(key).and_then(Value::as_str).map(str::to_string);
            let (client, client_version) = (text("name"), text("version"));
            let kind = McpEventKind::ClientConnected { revision, client, client_version };
            self.report(self.arrived, kind).await;
        }
    }

    /// Keeps the exchange out of the recording: the fault of a call that does not reach the server is no answer of it.
    pub(super) fn leave_unrecorded(&mut self) {
        self.end_recording(None);
        self.is_recorded = false;
    }

    fn end_recording(&self, gap: Option<String>) {
        if self.is_recorded && self.call.is_some() {
            self.server.end_recording(gap);
        }
    }

    fn record(&self, outcome: &Result<Value, RpcError>) {
        if self.is_recorded {
            let exchange = McpExchange {
                conversation: None,
                method: self.method.clone(),
                params: without_meta(&self.params),
                outcome: outcome.clone(),
                notifications: self.notifications.messages.clone(),
                questions: self.call.map(|call| self.server.take_questions(call)).unwrap_or_default(),
                duration_ms: u64::try_from(self.arrived.elapsed().as_millis()).unwrap_or(u64::MAX),
            };
            self.server.record(exchange, self.conversation.limits.max_recorded_bytes);
        }
    }

    /// Sets the notifications that another part forwarded.
    pub(super) fn set_notifications(&mut self, notifications: KeptNotifications) {
        self.notifications = notifications;
    }

    /// Reports a call that the server did not answer properly.
    pub(super) async fn fail(&mut self, failed: UpstreamError) {
        self.end(Err(failed), false).await;
    }
}

impl Drop for ExchangeObserver {
    /// A request whose observer is dropped early was cancelled by its client.
    fn drop(&mut self) {
        if let Some(request) = self.request {
            self.conversation.end_request(request, self.is_ended);
        }
        let Some(call) = self.call else { return };
        lock(&self.server.open_calls).remove(&call);
        if self.is_ended {
            return;
        }
        let tool = self.params.get("name").and_then(Value::as_str).unwrap_or_default();
        self.end_recording(Some(format!("a call of {tool} was cancelled")));
        let (conversation, server) = (self.conversation.clone(), self.server.clone());
        let kind = McpEventKind::CallCancelled { call, duration: self.arrived.elapsed() };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { conversation.report(server.name(), Instant::now(), kind).await });
        }
    }
}

/// True if a result asks for input of the user.
pub(super) fn asks_for_input(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// Reports the response of a client to a request of a proxied server, if the request belongs to a call.
pub(super) async fn report_response(request: &McpHttpRequest, id: &Value, outcome: &Result<Value, RpcError>) {
    let name = id.to_string();
    let asking = lock(&request.server.asking_calls).remove(&name);
    let Some(AskingCall { call, request: question }) = asking else { return };
    // A client that refuses the request has cancelled it.
    let response = outcome.clone().unwrap_or_else(|_| json!({"action": "cancel"}));
    if request.conversation.records(&request.server) {
        request.server.record_question(call, &question, &response);
    }
    let kind = McpEventKind::InputProvided { call, responses: Map::from_iter([(name, response)]) };
    request.conversation.report(request.server.name(), request.arrived, kind).await;
}

/// Returns the tool of a call and its arguments. Absent arguments are an empty object.
pub(super) fn called_tool(params: &Map<String, Value>) -> (&str, Value) {
    let tool = params.get("name").and_then(Value::as_str).unwrap_or_default();
    match params.get("arguments") {
        None | Some(Value::Null) => (tool, Value::Object(Map::new())),
        Some(arguments) => (tool, arguments.clone()),
    }
}

/// Reads a JSON body as the outcome of the request `id`. `sends_key` says whether the test adds headers to requests.
///
/// Errors of the client are part of the protocol: it may have to log in, or to start another session.
pub(super) fn read_outcome(
    id: &Value,
    status: StatusCode,
    body: &[u8],
    sends_key: bool,
) -> Result<Value, UpstreamError> {
    match Frame::parse(body) {
        // An error about a message that the server could not read has no id.
        Ok(Frame::Response { id: answered, outcome })
            if answered == *id || (answered.is_null() && outcome.is_err()) =>
        {
            Ok(outcome?)
        }
        Ok(Frame::Response { id: answered, .. }) => {
            Err(UpstreamError::broken_off(foreign_id(&answered)).into_server_failure())
        }
        invalid => {
            let reason = match invalid {
                Err(error) if status.is_success() => format!(": {}", error.error.message),
                _ => String::new(),
            };
            let message = format!(
                "the proxied server answered with HTTP status {status} and no JSON-RPC response{reason}"
            );
            let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            match status.is_client_error() {
                true if is_refused && sends_key => {
                    Err(UpstreamError::without_effect(message).into_server_failure())
                }
                true => Err(UpstreamError::without_effect(message)),
                false if status == StatusCode::SERVICE_UNAVAILABLE => {
                    Err(UpstreamError::without_effect(message).into_server_failure())
                }
                false => Err(UpstreamError::broken_off(message).into_server_failure()),
            }
        }
    }
}

fn foreign_id(id: &Value) -> String {
    format!("the proxied server answered with the id {id}, which no request has")
}
