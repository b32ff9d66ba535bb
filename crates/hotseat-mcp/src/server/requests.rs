//! Requests of clients: detection of the revision, sessions, and dispatch by method.

use std::sync::Arc;

use axum::http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use super::observer::report_response;
use super::outbound::{
    HttpOutcome, MAX_WAITING_FRAMES, OutFrame, empty_response, error_response, event_stream, respond,
};
use super::rpc_request::{
    LIST_TTL_MS, McpHttpRequest, RpcRequest, list, mock_content, read_message, refuse, refuse_message,
    report_client, report_protocol_error, server_info,
};
use super::sessions::ClientSession;
use super::state::{AnswerSource, ServerState};
use super::{calls, contents, headers, proxy, replay};
use crate::answer::ListChangeReceivers;
use crate::event::McpEventKind;
use crate::frame::{Frame, RpcError};
use crate::lock;
use crate::revision::{ProtocolRevision, error_code, meta};

/// Answers one HTTP request.
pub(super) async fn handle(request: McpHttpRequest) -> HttpOutcome {
    if matches!(request.server.source, AnswerSource::Url(_)) {
        return proxy::handle(request).await;
    }
    match request.method {
        Method::POST => handle_post(request).await,
        Method::GET => Ok(open_listener(&request).await),
        Method::DELETE => Ok(delete_session(&request)),
        _ => Ok(method_not_allowed()),
    }
}

async fn handle_post(request: McpHttpRequest) -> HttpOutcome {
    match read_message(&request.body) {
        Ok(Frame::Request { id, method, params }) => handle_request(request, id, method, params).await,
        Ok(Frame::Notification { method, params }) => {
            if let SessionLookup::Found(session) = find_session(&request) {
                notify(&session, method, params).await;
            }
            Ok(empty_response(StatusCode::ACCEPTED))
        }
        Ok(Frame::Response { id, outcome }) => match find_session(&request) {
            SessionLookup::Found(session) if session.link.is_some() => {
                report_response(&request, &id, &outcome).await;
                if let Some(link) = &session.link {
                    link.send(&Frame::Response { id, outcome }.to_json()).await;
                }
                Ok(empty_response(StatusCode::ACCEPTED))
            }
            SessionLookup::Found(session) if session.resolve_question(&id, outcome) => {
                Ok(empty_response(StatusCode::ACCEPTED))
            }
            SessionLookup::Ended => Ok(session_ended()),
            _ => {
                let message = "the response answers no open request";
                report_protocol_error(&request, error_code::INVALID_REQUEST, message).await;
                Ok(error_response(StatusCode::BAD_REQUEST, error_code::INVALID_REQUEST, message))
            }
        },
        Err(error) => refuse_message(&request, *error).await,
    }
}

/// Handles a notification of a client with a session.
async fn notify(session: &ClientSession, method: String, params: Map<String, Value>) {
    let cancelled = params.get("requestId").filter(|_| method == "notifications/cancelled");
    match (cancelled, &session.link) {
        // The link cancels the request of the program when its own request is cancelled.
        (Some(id), _) => session.cancel(id),
        (None, Some(link)) => link.send(&Frame::Notification { method, params }.to_json()).await,
        (None, None) => {}
    }
}

async fn handle_request(
    request: McpHttpRequest,
    id: Value,
    method: String,
    params: Map<String, Value>,
) -> HttpOutcome {
    let header_version = headers::text(&request.headers, headers::PROTOCOL_VERSION);
    let lookup = find_session(&request);
    // A proxied program may have announced a revision that no mock speaks.
    let is_negotiated =
        |name: &str| matches!(&lookup, SessionLookup::Found(session) if session.version == name);
    let is_stateless = headers::body_version(&params).is_some()
        || header_version.is_some_and(|name| {
            let is_stateless =
                || ProtocolRevision::from_name(name).is_some_and(ProtocolRevision::is_stateless);
            !is_negotiated(name) && (!headers::is_served(name) || is_stateless())
        });
    if is_stateless {
        return handle_stateless(request, id, method, params).await;
    }
    if method == "initialize" {
        return initialize(request, id, &params).await;
    }
    let session = match lookup {
        SessionLookup::Found(session) => session,
        SessionLookup::Ended => return Ok(session_ended()),
        SessionLookup::Unnamed => {
            let message = "the header `Mcp-Session-Id` is missing: send `initialize` first, or name a revision in `_meta`";
            report_protocol_error(&request, error_code::INVALID_REQUEST, message).await;
            let error = RpcError::new(error_code::INVALID_REQUEST, message);
            return refuse(id, error, StatusCode::BAD_REQUEST).await;
        }
    };
    let (revision, capabilities) = (session.revision, session.capabilities.clone());
    start(request, id, method, params, revision, capabilities, Some(session)).await
}

async fn handle_stateless(
    request: McpHttpRequest,
    id: Value,
    method: String,
    params: Map<String, Value>,
) -> HttpOutcome {
    let tools = request.server.tools();
    if let Err(error) = headers::validate(&request.headers, &method, &params, &tools) {
        report_protocol_error(&request, error.code, &error.message).await;
        return refuse(id, error, StatusCode::BAD_REQUEST).await;
    }
    let revision = ProtocolRevision::V2026July;
    let info = params.get("_meta").and_then(|meta| meta.get(meta::CLIENT_INFO)).cloned().unwrap_or_default();
    report_client(&request, revision, &info).await;
    let capabilities = params.get("_meta").and_then(|meta| meta.get(meta::CLIENT_CAPABILITIES));
    let capabilities = capabilities.and_then(Value::as_object).cloned().unwrap_or_default();
    start(request, id, method, params, revision, capabilities, None).await
}

/// Runs the request as a task, and sends what it produces.
async fn start(
    request: McpHttpRequest,
    id: Value,
    method: String,
    params: Map<String, Value>,
    revision: ProtocolRevision,
    capabilities: Map<String, Value>,
    session: Option<Arc<ClientSession>>,
) -> HttpOutcome {
    let (out, frames) = mpsc::channel(MAX_WAITING_FRAMES);
    let McpHttpRequest { run, conversation, server, arrived, permit, .. } = request;
    let request = RpcRequest {
        run,
        conversation,
        server,
        arrived,
        id,
        method,
        params,
        revision,
        capabilities,
        session,
        out,
    };
    tokio::spawn(async move {
        dispatch(request).await;
        drop(permit);
    });
    respond(frames).await
}

/// Answers a JSON-RPC request by its method.
async fn dispatch(request: RpcRequest) {
    if matches!(request.server.source, AnswerSource::Command(_)) {
        return proxy::forward(request).await;
    }
    let outcome = match request.method.as_str() {
        "tools/call" => return calls::run(request).await,
        "subscriptions/listen" if request.revision.is_stateless() => return listen(request).await,
        "server/discover" if request.revision.is_stateless() => Ok(discover(&request.server)),
        "ping" if !request.revision.is_stateless() => Ok(json!({})),
        "logging/setLevel" if !request.revision.is_stateless() => set_log_level(&request),
        method => match &request.server.source {
            AnswerSource::Replay(table) => replay::answer(&request, table).await,
            _ if method == "tools/list" => list(&request, "tools", request.server.tools().entries()),
            _ => contents::answer(&request),
        },
    };
    request.answer(outcome).await;
}

/// Session that a request names.
enum SessionLookup {
    /// The request names no session.
    Unnamed,
    /// The session exists.
    Found(Arc<ClientSession>),
    /// The session never existed, or has ended.
    Ended,
}

fn find_session(request: &McpHttpRequest) -> SessionLookup {
    match headers::text(&request.headers, headers::SESSION_ID) {
        None => SessionLookup::Unnamed,
        Some(id) => match lock(&request.server.sessions).get(id) {
            Some(session) => SessionLookup::Found(session.clone()),
            None => SessionLookup::Ended,
        },
    }
}

fn session_ended() -> axum::http::Response<axum::body::Body> {
    let message = "the session does not exist, or has ended";
    error_response(StatusCode::NOT_FOUND, error_code::INVALID_REQUEST, message)
}

/// Opens a session.
async fn initialize(request: McpHttpRequest, id: Value, params: &Map<String, Value>) -> HttpOutcome {
    let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let mut revision = ProtocolRevision::from_name(wanted)
        .filter(|revision| revision.is_served() && !revision.is_stateless())
        .unwrap_or(ProtocolRevision::NEWEST_WITH_HANDSHAKE);
    if lock(&request.server.sessions).len() >= request.conversation.limits.max_sessions {
        let limit = format!("{} sessions", request.conversation.limits.max_sessions);
        let error = RpcError::new(error_code::LIMIT_REACHED, format!("the limit of {limit} is reached"));
        let kind = McpEventKind::LimitReached { limit };
        request.conversation.report(request.server.name(), request.arrived, kind).await;
        return refuse(id, error, StatusCode::SERVICE_UNAVAILABLE).await;
    }
    let (result, link) = match &request.server.source {
        AnswerSource::Command(upstream) => match proxy::initialize(&request, upstream, &id, params).await {
            Ok((result, link)) => {
                let version = result.get("protocolVersion").and_then(Value::as_str);
                revision = version.and_then(ProtocolRevision::from_name).unwrap_or(revision);
                (result, Some(link))
            }
            Err(error) => {
                report_protocol_error(&request, error.code, &error.message).await;
                return refuse(id, error, StatusCode::OK).await;
            }
        },
        _ => (handshake(&request.server, revision), None),
    };
    let info = params.get("clientInfo").cloned().unwrap_or_default();
    report_client(&request, revision, &info).await;
    let capabilities = params.get("capabilities").and_then(Value::as_object).cloned().unwrap_or_default();
    let session_id = uuid::Uuid::new_v4().simple().to_string();
    let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or(revision.name());
    let session = Arc::new(ClientSession::new(revision, version, capabilities, link));
    lock(&request.server.sessions).insert(session_id.clone(), session);
    let message = Frame::Response { id, outcome: Ok(result) }.to_json();
    let mut response =
        super::outbound::json_response(StatusCode::OK, axum::body::Body::from(message.to_string()));
    if let Ok(value) = HeaderValue::from_str(&session_id) {
        response.headers_mut().insert(headers::SESSION_ID, value);
    }
    Ok(response)
}

/// Result of `initialize`.
fn handshake(server: &ServerState, revision: ProtocolRevision) -> Value {
    let mut result = json!({
        "protocolVersion": revision.name(),
        "capabilities": capabilities_of(server, revision),
        "serverInfo": server_info(server),
    });
    if let Some(instructions) = instructions(server) {
        result["instructions"] = json!(instructions);
    }
    result
}

/// Ends a session.
fn delete_session(request: &McpHttpRequest) -> axum::http::Response<axum::body::Body> {
    match headers::text(&request.headers, headers::SESSION_ID) {
        None => method_not_allowed(),
        Some(id) => match lock(&request.server.sessions).remove(id) {
            Some(_) => empty_response(StatusCode::NO_CONTENT),
            None => session_ended(),
        },
    }
}

fn method_not_allowed() -> axum::http::Response<axum::body::Body> {
    let mut response = empty_response(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(axum::http::header::ALLOW, HeaderValue::from_static("POST"));
    response
}

/// Opens the stream of a session on which the server reports changes.
async fn open_listener(request: &McpHttpRequest) -> axum::http::Response<axum::body::Body> {
    match find_session(request) {
        SessionLookup::Ended => session_ended(),
        SessionLookup::Unnamed => {
            let message = "a stream without a session was requested: the transport HTTP+SSE of revision 2024-11-05 is not supported; send `initialize` by POST first";
            report_protocol_error(request, error_code::INVALID_REQUEST, message).await;
            method_not_allowed()
        }
        SessionLookup::Found(session) => {
            let (out, frames) = mpsc::channel(MAX_WAITING_FRAMES);
            let conversation = request.conversation.clone();
            // Before the client gets the head of the response, so that it misses no change.
            let changes = request.server.changes.subscribe();
            tokio::spawn(async move {
                let all = ["tools", "prompts", "resources"];
                let wanted = Map::from_iter(all.map(|list| (format!("{list}ListChanged"), json!(true))));
                let no_meta = Map::new();
                if let Some(link) = session.link.as_ref().map(|link| link.listen()) {
                    drop(session);
                    return proxy::forward_listener(link, &conversation, &out).await;
                }
                tokio::select! {
                    () = send_wanted_changes(changes, &wanted, &out, &no_meta) => {}
                    () = conversation.wait_closed() => {}
                    () = out.closed() => {}
                }
            });
            event_stream(None, frames)
        }
    }
}

/// Sends a notification for each change of a list. Ends when the client disconnects.
async fn send_changes(
    list: &str,
    mut versions: watch::Receiver<u64>,
    out: &mpsc::Sender<OutFrame>,
    meta: &Map<String, Value>,
) {
    while versions.changed().await.is_ok() {
        let mut params = Map::new();
        if !meta.is_empty() {
            params.insert("_meta".to_string(), Value::Object(meta.clone()));
        }
        let method = format!("notifications/{list}/list_changed");
        if out.send(OutFrame::Interim(Frame::Notification { method, params }.to_json())).await.is_err() {
            return;
        }
    }
}

/// Sends the changes of all lists that the client wants to know.
async fn send_wanted_changes(
    changes: ListChangeReceivers,
    wanted: &Map<String, Value>,
    out: &mpsc::Sender<OutFrame>,
    meta: &Map<String, Value>,
) {
    let one = |list: &'static str, versions| async move {
        match is_wanted(wanted, list) {
            true => send_changes(list, versions, out, meta).await,
            false => std::future::pending().await,
        }
    };
    tokio::select! {
        () = one("tools", changes.tools) => {}
        () = one("prompts", changes.prompts) => {}
        () = one("resources", changes.resources) => {}
    }
}

fn is_wanted(wanted: &Map<String, Value>, list: &str) -> bool {
    wanted.get(&format!("{list}ListChanged")).and_then(Value::as_bool).unwrap_or(false)
}

/// Answers `subscriptions/listen`: a stream of the changes that the client wants to know.
async fn listen(request: RpcRequest) {
    let none = Map::new();
    let wanted = request.params.get("notifications").and_then(Value::as_object).unwrap_or(&none);
    let known = ["tools", "prompts", "resources"];
    let honoured: Map<String, Value> = known
        .iter()
        .filter(|list| is_wanted(wanted, list))
        .map(|list| (format!("{list}ListChanged"), json!(true)))
        .collect();
    let meta = Map::from_iter([(meta::SUBSCRIPTION_ID.to_string(), request.id.clone())]);
    let acknowledgement = json!({
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": meta, "notifications": honoured},
    });
    let changes = request.server.changes.subscribe();
    if request.out.send(OutFrame::Interim(acknowledgement)).await.is_err() {
        return;
    }
    tokio::select! {
        () = send_wanted_changes(changes, wanted, &request.out, &meta) => {}
        () = request.out.closed() => {}
        () = request.conversation.wait_closed() => {
            request.answer(Ok(json!({"_meta": meta}))).await;
        }
    }
}

fn set_log_level(request: &RpcRequest) -> Result<Value, RpcError> {
    let level = request.params.get("level").and_then(Value::as_str).unwrap_or_default();
    match request.session.as_ref().is_some_and(|session| session.set_log_level(level)) {
        true => Ok(json!({})),
        false => Err(RpcError::new(error_code::INVALID_PARAMS, format!("unknown level `{level}`"))),
    }
}

fn discover(server: &ServerState) -> Value {
    let versions: Vec<_> = ProtocolRevision::NEWEST_FIRST.iter().map(|revision| revision.name()).collect();
    let mut result = json!({
        "supportedVersions": versions,
        "capabilities": capabilities_of(server, ProtocolRevision::V2026July),
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "private",
    });
    if let Some(instructions) = instructions(server) {
        result["instructions"] = json!(instructions);
    }
    result
}

fn instructions(server: &ServerState) -> Option<String> {
    match &server.source {
        AnswerSource::Replay(table) => {
            lock(table).announced("instructions").and_then(Value::as_str).map(str::to_string)
        }
        _ => mock_content(server).and_then(|content| content.instructions.clone()),
    }
}

fn capabilities_of(server: &ServerState, revision: ProtocolRevision) -> Value {
    if let AnswerSource::Replay(table) = &server.source {
        return lock(table).announced("capabilities").cloned().unwrap_or_else(|| json!({"tools": {}}));
    }
    let mut capabilities = json!({"tools": {"listChanged": true}});
    if !revision.is_stateless() {
        capabilities["logging"] = json!({});
    }
    let content = mock_content(server);
    if content.is_some_and(|content| !content.resources.is_empty()) {
        capabilities["resources"] = json!({"listChanged": true, "subscribe": !revision.is_stateless()});
    }
    if content.is_some_and(|content| !content.prompts.is_empty()) {
        capabilities["prompts"] = json!({"listChanged": true});
        capabilities["completions"] = json!({});
    }
    capabilities
}
