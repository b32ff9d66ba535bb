//! The HTTP listener: connections, access checks, paths and bodies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::TcpListener;

use super::connections::ConnectionRoom;
use super::outbound::{AbortedConnection, HttpOutcome, error_response, text_response};
use super::requests;
use super::rpc_request::McpHttpRequest;
use super::state::{ConversationLookup, ConversationState, RunState};
use crate::event::McpEventKind;
use crate::frame::Frame;
use crate::revision::error_code;

/// Maximum size of the head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum time until the head of a request has arrived, and maximum time between requests of a connection. Agents keep their
/// connections for a whole conversation.
const HEAD_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum time until the body of a request has arrived.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay after a failed accept, for example if too many files are open.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Answers requests until the future is dropped.
pub(super) async fn accept(listener: TcpListener, run: Arc<RunState>) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let room = ConnectionRoom::new(run.limits.max_connections);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let Some(open) = room.enter().await else { return };
        // Small answers must not wait for acknowledgements of earlier ones.
        let _ = stream.set_nodelay(true);
        let (run, used) = (run.clone(), open.clone());
        let service = service_fn(move |request| {
            let (run, busy) = (run.clone(), used.clone().begin_request());
            async move {
                Ok::<_, AbortedConnection>(answer(run, request).await?.map(|body| busy.until_sent(body)))
            }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // Errors of a connection are disconnects, or faults of ours.
            tokio::select! {
                _ = connection => {}
                () = open.wait_closed() => {}
            }
        });
    }
}

async fn answer(run: Arc<RunState>, request: Request<hyper::body::Incoming>) -> HttpOutcome {
    let arrived = Instant::now();
    let (parts, body) = request.into_parts();
    if let Err(message) = check_origin(&parts.headers) {
        return Ok(error_response(StatusCode::FORBIDDEN, error_code::INVALID_REQUEST, message));
    }
    let mut path = parts.uri.path().trim_start_matches('/').split('/');
    let (Some("mcp"), Some(server), Some(token), None) = (path.next(), path.next(), path.next(), path.next())
    else {
        return Ok(text_response(StatusCode::NOT_FOUND, "MCP servers are at /mcp/SERVER/CONVERSATION\n"));
    };
    let conversation = match run.find(token) {
        ConversationLookup::Found(conversation) => conversation,
        ConversationLookup::Gone => return Ok(closed_response()),
        ConversationLookup::Unknown => {
            return Ok(text_response(StatusCode::NOT_FOUND, "there is no such conversation\n"));
        }
    };
    let Some(server) = conversation.servers.get(server).cloned() else {
        let known: Vec<_> = conversation.servers.keys().map(String::as_str).collect();
        let text = format!("there is no such server; the conversation has: {}\n", known.join(", "));
        return Ok(text_response(StatusCode::NOT_FOUND, text));
    };
    if conversation.is_closed() {
        let body = read_body(body, &conversation).await.unwrap_or_default();
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
    let body = match read_body(body, &conversation).await {
        Some(body) => body,
        None => {
            let limit = format!("{} bytes of a message", conversation.limits.max_message_bytes);
            let message = format!("the limit of {limit} is exceeded, or the body is incomplete");
            conversation.report(server.name(), arrived, McpEventKind::LimitReached { limit }).await;
            return Ok(error_response(StatusCode::PAYLOAD_TOO_LARGE, error_code::LIMIT_REACHED, message));
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

/// Reads a body, unless it is too long, too slow or incomplete.
async fn read_body(body: hyper::body::Incoming, conversation: &ConversationState) -> Option<Bytes> {
    let read = axum::body::to_bytes(Body::new(body), conversation.limits.max_message_bytes);
    tokio::time::timeout(BODY_TIMEOUT, read).await.ok()?.ok()
}

/// Pages of foreign sites must not reach the servers through a browser, even by a name that resolves to
/// this machine.
fn check_origin(headers: &HeaderMap) -> Result<(), String> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_loopback(host) {
        return Err("the header `Host` must name this machine".to_string());
    }
    match headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default()) {
        None => Ok(()),
        Some(origin) if origin.split_once("://").is_some_and(|(_, host)| is_loopback(host)) => Ok(()),
        Some(_) => Err("pages of other sites must not use this server".to_string()),
    }
}

/// Whether an authority, with or without port, is the loopback interface.
fn is_loopback(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    matches!(host, "127.0.0.1" | "localhost" | "[::1]")
}

fn closed_response() -> axum::http::Response<Body> {
    error_response(StatusCode::NOT_FOUND, error_code::INVALID_REQUEST, "the conversation is closed")
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
