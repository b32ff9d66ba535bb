//! Requests to proxied servers, over HTTP and to programs, with faults.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{Method, StatusCode};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::calls::{deliver_broken, fail_before_effect};
use super::catalog::ToolCatalog;
use super::faults::{SelectedFault, delay};
use super::headers;
use super::observer::{ExchangeObserver, KeptNotifications};
use super::outbound::{HttpOutcome, MAX_WAITING_FRAMES, OutFrame, respond};
use super::rpc_request::{McpHttpRequest, RpcRequest, refuse, report_client};
use super::state::{AnswerSource, CommandUpstream, ConversationState};
use super::stdio::{LinkMessage, StdioLink};
use super::upstream::{pass_through, request_answer};
use super::url_upstream::UrlUpstream;
use crate::definition::McpTool;
use crate::event::McpEventKind;
use crate::frame::{Frame, RpcError};
use crate::revision::{ProtocolRevision, error_code, meta};

/// Maximum number of tools of a program whose schemas are read.
const MAX_LEARNED_TOOLS: usize = 1000;
/// Maximum size of the list of these tools, in bytes.
const MAX_LEARNED_BYTES: usize = 1024 * 1024;

/// Passes a request on to a proxied server over HTTP.
pub(super) async fn handle(request: McpHttpRequest) -> HttpOutcome {
    let server = request.server.clone();
    let AnswerSource::Url(upstream) = &server.source else {
        return Err(super::outbound::AbortedConnection);
    };
    let frame = (request.method == Method::POST).then(|| Frame::parse(&request.body));
    match frame {
        Some(Ok(Frame::Request { id, method, params })) => {
            handle_request(request, upstream, id, method, params).await
        }
        Some(Err(error)) => {
            let (code, message) = (Some(error.error.code), error.error.message);
            let kind = McpEventKind::ProtocolError { code, message };
            request.conversation.report(server.name(), request.arrived, kind).await;
            pass_through(request, upstream, None).await
        }
        _ => pass_through(request, upstream, None).await,
    }
}

async fn handle_request(
    request: McpHttpRequest,
    upstream: &UrlUpstream,
    id: Value,
    method: String,
    params: Map<String, Value>,
) -> HttpOutcome {
    let version = headers::body_version(&params).and_then(ProtocolRevision::from_name);
    if let Some(revision) = version {
        let info = params.get("_meta").and_then(|meta| meta.get(meta::CLIENT_INFO)).cloned();
        report_client(&request, revision, &info.unwrap_or_default()).await;
    }
    let is_call = method == "tools/call";
    let is_observed = is_call || matches!(method.as_str(), "initialize" | "server/discover" | "tools/list");
    if !is_observed && !request.conversation.records(&request.server) {
        return pass_through(request, upstream, None).await;
    }
    let (conversation, server) = (request.conversation.clone(), request.server.clone());
    let (method_name, arguments) = (method.clone(), params.clone());
    let begun =
        ExchangeObserver::begin(conversation, server, request.arrived, id.clone(), method_name, arguments);
    let observer = match begun.await {
        Ok(observer) => observer,
        Err(error) => return refuse(id, error, StatusCode::OK).await,
    };
    let fault = if is_call { select_fault(&request.server, &params) } else { None };
    if fault.is_none() {
        return pass_through(request, upstream, Some(observer)).await;
    }
    let (out, frames) = mpsc::channel(MAX_WAITING_FRAMES);
    let named = headers::text(&request.headers, headers::PROTOCOL_VERSION);
    let revision = version.or_else(|| named.and_then(ProtocolRevision::from_name));
    let rpc = RpcRequest {
        run: request.run.clone(),
        conversation: request.conversation.clone(),
        server: request.server.clone(),
        arrived: request.arrived,
        id,
        method,
        params,
        revision: revision.unwrap_or(ProtocolRevision::NEWEST_WITH_HANDSHAKE),
        capabilities: Map::new(),
        session: None,
        out,
    };
    tokio::spawn(exchange(rpc, ProxiedServer::Url(Box::new(request)), fault, observer));
    respond(frames).await
}

fn select_fault(server: &super::state::ServerState, params: &Map<String, Value>) -> Option<SelectedFault> {
    let tool = params.get("name").and_then(Value::as_str).unwrap_or_default();
    let none = Value::Object(Map::new());
    let arguments = params.get("arguments").unwrap_or(&none);
    server.faults.select(&server.definition.faults, tool, arguments)
}

/// A proxied server of one request.
enum ProxiedServer {
    /// Over HTTP, with the request as it arrived.
    Url(Box<McpHttpRequest>),
    /// A program.
    Program(Arc<StdioLink>),
}

/// Forwards a request to a program.
pub(super) async fn forward(request: RpcRequest) {
    let AnswerSource::Command(upstream) = &request.server.source else { return };
    let link = match request.session.as_ref().and_then(|session| session.link.clone()) {
        Some(link) => Ok(link),
        None => upstream.shared(&request.run),
    };
    let link = match link {
        Ok(link) => link,
        Err(error) => {
            let kind = McpEventKind::ProtocolError { code: None, message: error.to_string() };
            request.report(Instant::now(), kind).await;
            request.answer(Err(RpcError::new(error_code::INTERNAL_ERROR, error))).await;
            return;
        }
    };
    let (conversation, server) = (request.conversation.clone(), request.server.clone());
    let (id, method, params) = (request.id.clone(), request.method.clone(), request.params.clone());
    let begun = ExchangeObserver::begin(conversation, server, request.arrived, id, method, params);
    match begun.await {
        Ok(observer) => {
            let is_call = observer.call().is_some();
            let fault = if is_call { select_fault(&request.server, &request.params) } else { None };
            exchange(request, ProxiedServer::Program(link), fault, observer).await;
        }
        Err(error) => {
            request.answer(Err(error)).await;
        }
    }
}

/// Runs one request to its end, with its fault.
async fn exchange(
    request: RpcRequest,
    proxied: ProxiedServer,
    fault: Option<SelectedFault>,
    mut observer: ExchangeObserver,
) {
    if let (Some(fault), Some(call)) = (&fault, observer.call()) {
        let kind = McpEventKind::FaultInjected { call, rule: fault.rule, fault: fault.kind.clone() };
        request.report(Instant::now(), kind).await;
        if !fault.kind.has_effect() {
            if let Some(failed) = fail_before_effect(&request, &fault.kind).await {
                observer.end(failed.outcome, failed.delivered).await;
            }
            return;
        }
    }
    let running = request.session.as_ref().map(|session| session.register_running(&request.id));
    let cancelled = async {
        match &running {
            Some(running) => running.wait_cancelled().await,
            None => request.out.closed().await,
        }
    };
    let mut notifications = KeptNotifications::new(&request.conversation, &request.server);
    let answer = async {
        if let Some(delay) = fault.as_ref().and_then(|fault| delay(&fault.kind)) {
            tokio::time::sleep(delay).await;
        }
        match &proxied {
            ProxiedServer::Url(http) => match &request.server.source {
                AnswerSource::Url(upstream) => {
                    request_answer(http, upstream, &request, &mut notifications).await
                }
                _ => Err(RpcError::new(error_code::INTERNAL_ERROR, "the server is no proxy of a URL")),
            },
            ProxiedServer::Program(link) => ask_program(&request, link, &mut notifications, &observer).await,
        }
    };
    let outcome = tokio::select! {
        outcome = answer => Some(outcome),
        () = cancelled => None,
        () = request.conversation.wait_closed() => None,
    };
    let Some(outcome) = outcome else {
        if let ProxiedServer::Program(link) = &proxied {
            link.cancel(&request.id).await;
        }
        return;
    };
    observer.set_notifications(notifications);
    if observer.call().is_none() {
        learn_tools(&request, &outcome);
        observer.end(outcome.clone(), true).await;
        request.answer(outcome).await;
        return;
    }
    let tool = request.params.get("name").and_then(Value::as_str).unwrap_or_default();
    let delivered = deliver_broken(&request, tool, outcome.clone(), fault.as_ref()).await;
    observer.end(outcome, delivered).await;
}

/// Remembers the tools of a program, whose schemas name the headers that repeat arguments.
fn learn_tools(request: &RpcRequest, outcome: &Result<Value, RpcError>) {
    let Ok(result) = outcome else { return };
    if request.method != "tools/list" || result.get("nextCursor").is_some() {
        return;
    }
    let Some(entries) = result.get("tools").and_then(Value::as_array) else { return };
    // Compiling schemas takes time, which all conversations share.
    if entries.len() > MAX_LEARNED_TOOLS || result.to_string().len() > MAX_LEARNED_BYTES {
        return;
    }
    let entries = entries.iter();
    let tools: Result<Vec<_>, _> = entries.map(McpTool::from_json).collect();
    // Invalid tools are a matter between the program and its client.
    if let Some(catalog) = tools.ok().and_then(|tools| ToolCatalog::new(&tools).ok()) {
        request.server.learn_tools(catalog);
    }
}

async fn ask_program(
    request: &RpcRequest,
    link: &StdioLink,
    notifications: &mut KeptNotifications,
    observer: &ExchangeObserver,
) -> Result<Value, RpcError> {
    let mut messages = link.request(&request.id, &request.method, &request.params).await?;
    while let Some(message) = messages.recv().await {
        match message {
            LinkMessage::Answer(outcome) => return outcome,
            LinkMessage::Interim(message) => {
                match message.get("id") {
                    None => notifications.push(&message),
                    Some(_) => observer.report_input_request(&message).await,
                }
                // A client that disconnected misses its notifications.
                let _ = request.out.send(OutFrame::Interim(message)).await;
            }
        }
    }
    Err(RpcError::new(error_code::INTERNAL_ERROR, "the program of the server has ended"))
}

/// Starts the program of a new session and performs its handshake.
pub(super) async fn initialize(
    request: &McpHttpRequest,
    upstream: &CommandUpstream,
    id: &Value,
    params: &Map<String, Value>,
) -> Result<(Value, Arc<StdioLink>), RpcError> {
    let internal = |message: String| RpcError::new(error_code::INTERNAL_ERROR, message);
    let link = upstream.start(&request.run).map_err(|error| internal(error.to_string()))?;
    let (conversation, server) = (request.conversation.clone(), request.server.clone());
    let method = "initialize".to_string();
    let begun =
        ExchangeObserver::begin(conversation, server, request.arrived, id.clone(), method, params.clone());
    let mut observer = begun.await?;
    let mut messages = link.request(id, "initialize", params).await?;
    let limit = request.conversation.limits.max_open_time;
    let answer = async {
        while let Some(message) = messages.recv().await {
            if let LinkMessage::Answer(outcome) = message {
                return outcome;
            }
        }
        Err(internal("the program of the server has ended".to_string()))
    };
    let outcome = tokio::time::timeout(limit, answer).await;
    let outcome =
        outcome.unwrap_or_else(|_| Err(internal("the program of the server does not answer".to_string())));
    observer.end(outcome.clone(), true).await;
    Ok((outcome?, link))
}

/// Forwards the messages of a program that belong to no request.
pub(super) async fn forward_listener(
    mut messages: mpsc::Receiver<Value>,
    conversation: &ConversationState,
    out: &mpsc::Sender<OutFrame>,
) {
    let forward = async {
        while let Some(message) = messages.recv().await {
            if out.send(OutFrame::Interim(message)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = forward => {}
        () = conversation.wait_closed() => {}
        () = out.closed() => {}
    }
}
