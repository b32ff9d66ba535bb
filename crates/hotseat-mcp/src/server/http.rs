//! The HTTP listener: paths and bodies of requests.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use hotseat_document::excerpt;
use hotseat_serve::{AcceptLimits, BodyError, LoopbackServer, check_access, read_body};
use hyper::service::service_fn;
use serde_json::Value;

use super::outbound::{HttpOutcome, error_response, text_response};
use super::requests;
use super::rpc_request::McpHttpRequest;
use super::state::{ConversationLookup, ConversationState, RunState};
use crate::bridge::UNKNOWN_SERVER_HEADER;
use crate::event::{LateCall, McpEventKind};
use crate::frame::Frame;
use crate::revision::error_code;

/// Maximum time until the head of a request has arrived, and maximum time between requests of a connection. Agents keep their
/// connections for a whole conversation.
const HEAD_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum time until the body of a request has arrived.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of a name in a message.
const MAX_SHOWN_NAME_CHARS: usize = 100;

/// Starts the listener.
pub(super) fn start(run: Arc<RunState>, port: u16) -> io::Result<LoopbackServer> {
    let max_connections = run.limits.max_connections;
    let limits = AcceptLimits { max_connections, head_timeout: HEAD_TIMEOUT, ..AcceptLimits::default() };
    LoopbackServer::start("mcp", port, service_fn(move |request| answer(run.clone(), request)), limits)
}

async fn answer(run: Arc<RunState>, request: Request<hyper::body::Incoming>) -> HttpOutcome {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    if let Err(error) = check_access(&parts.headers) {
        return Ok(error_response(error.status(), error_code::INVALID_REQUEST, error));
    }
    let mut path = parts.uri.path().trim_start_matches('/').split('/');
    let (Some("mcp"), Some(server), Some(token), None) = (path.next(), path.next(), path.next(), path.next())
    else {
        return Ok(text_response(StatusCode::NOT_FOUND, "MCP servers are at /mcp/SERVER/CONVERSATION\n"));
    };
    let conversation = match run.find(token) {
        ConversationLookup::Found(conversation) => conversation,
        ConversationLookup::Gone(conversation) => {
            let max_bytes = run.limits.max_message_bytes;
            let body = read_body(Body::new(body), max_bytes, BODY_TIMEOUT).await.unwrap_or_default();
            if let Some(tool) = called_tool(&body) {
                run.note_late_call(LateCall { conversation, server: server.to_string(), tool });
            }
            return Ok(closed_response());
        }
        ConversationLookup::Unknown => {
            return Ok(text_response(StatusCode::NOT_FOUND, "there is no such conversation\n"));
        }
    };
    let Some(server) = conversation.servers.get(server).cloned() else {
        return Ok(refuse_unknown_server(&conversation, server, arrived).await);
    };
    if conversation.is_closed() {
        let max_bytes = conversation.limits.max_message_bytes;
        let body = read_body(Body::new(body), max_bytes, BODY_TIMEOUT).await.unwrap_or_default();
        let request = describe(&parts.method, &body);
        conversation.report(server.name(), arrived, McpEventKind::CallAfterClose { request }).await;
        return Ok(closed_response());
    }
    let Ok(permit) = conversation.open_requests.clone().try_acquire_owned() else {
        let limit = format!("{} open requests", conversation.limits.max_open_requests);
        let message = format!("the limit of {limit} is reached");
        conversation.report(server.name(), arrived, McpEventKind::LimitReached { limit }).await;
        return Ok(error_response(StatusCode::SERVICE_UNAVAILABLE, error_code::LIMIT_REACHED, message));
    };
    let max_bytes = conversation.limits.max_message_bytes;
    let body = match read_body(Body::new(body), max_bytes, BODY_TIMEOUT).await {
        Ok(body) => body,
        Err(error) => {
            let message = error.to_string();
            let (kind, code) = match error {
                BodyError::TooLong(max_bytes) => {
                    let limit = format!("{max_bytes} bytes of a message");
                    (McpEventKind::LimitReached { limit }, error_code::LIMIT_REACHED)
                }
                BodyError::TooSlow(_) | BodyError::Broken(_) => {
                    (McpEventKind::RequestBroken { message: message.clone() }, error_code::INVALID_REQUEST)
                }
            };
            conversation.report(server.name(), arrived, kind).await;
            return Ok(error_response(error.status(), code, message));
        }
    };
    let request = McpHttpRequest {
        run,
        conversation,
        server,
        method: parts.method,
        headers: parts.headers,
        body,
        arrived,
        permit,
    };
    requests::handle(request).await
}

/// Refuses a request to a server that the conversation does not have, and reports it.
async fn refuse_unknown_server(
    conversation: &ConversationState,
    server: &str,
    arrived: Instant,
) -> Response<Body> {
    let known: Vec<_> = conversation.servers.keys().map(|name| format!("`{name}`")).collect();
    let server = excerpt(server, MAX_SHOWN_NAME_CHARS);
    let problem = format!("there is no server of this name; the conversation has: {}", known.join(", "));
    let text = format!("MCP server `{server}`: {problem}");
    let kind = McpEventKind::ProtocolError { code: None, message: problem };
    conversation.report(&server, arrived, kind).await;
    let mut response = text_response(StatusCode::NOT_FOUND, text);
    response.headers_mut().insert(UNKNOWN_SERVER_HEADER, HeaderValue::from_static("1"));
    response
}

fn closed_response() -> Response<Body> {
    error_response(StatusCode::NOT_FOUND, error_code::INVALID_REQUEST, "the conversation is closed")
}

/// Returns the tool that a request calls.
fn called_tool(body: &[u8]) -> Option<String> {
    match Frame::parse(body) {
        Ok(Frame::Request { method, params, .. }) if method == "tools/call" => {
            params.get("name").and_then(Value::as_str).map(str::to_string)
        }
        _ => None,
    }
}

/// Describes a request for people: its method, and the tool if it is a call.
fn describe(method: &Method, body: &[u8]) -> String {
    match Frame::parse(body) {
        Ok(Frame::Request { method, params, .. }) => match params.get("name").and_then(Value::as_str) {
            Some(name) => format!("{method} {name}"),
            None => method,
        },
        Ok(Frame::Notification { method, .. }) => method,
        Ok(Frame::Response { .. }) => "response".to_string(),
        Err(_) => method.to_string(),
    }
}
