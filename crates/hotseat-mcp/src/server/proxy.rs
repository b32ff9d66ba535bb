//! Requests to proxied servers, over HTTP and to programs, with faults.

use std::sync::Arc;
use std::time::Instant;

use axum::http::{Method, StatusCode};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::calls::{deliver_broken, fail_before_effect};
use super::faults::{SelectedFault, delay};
use super::headers;
use super::observer::{ExchangeObserver, KeptNotifications, UpstreamError, asks_for_input, report_response};
use super::outbound::{HttpOutcome, MAX_WAITING_FRAMES, OutFrame, respond};
use super::program_failure::ProgramFailure;
use super::rpc_request::{McpHttpRequest, RpcRequest, read_message, refuse, refuse_message, report_client};
use super::state::{AnswerSource, CommandUpstream, ConversationState};
use super::stdio::{LinkMessage, StdioLink};
use super::tasks::shows_result;
use super::upstream::{forward_interim, pass_through, request_answer};
use super::url_upstream::UrlUpstream;
use crate::frame::{Frame, RpcError};
use crate::revision::{ProtocolRevision, error_code, meta};

/// Passes a request on to a proxied server over HTTP.
pub(super) async fn handle(request: McpHttpRequest) -> HttpOutcome {
    let server = request.server.clone();
    let AnswerSource::Url(upstream) = &server.source else {
        return Err(super::outbound::AbortedConnection);
    };
    let frame = (request.method == Method::POST).then(|| read_message(&request.body));
    match frame {
        Some(Ok(Frame::Request { id, method, params })) => {
            handle_request(request, upstream, id, method, params).await
        }
        Some(Ok(Frame::Response { id, outcome })) => {
            report_response(&request, &id, &outcome).await;
            pass_through(request, upstream, None).await
        }
        Some(Ok(Frame::Notification { method, params })) if method == "notifications/cancelled" => {
            server
                .cancel_calls(headers::text(&request.headers, headers::SESSION_ID), params.get("requestId"));
            pass_through(request, upstream, None).await
        }
        Some(Err(error)) => refuse_message(&request, *error).await,
        Some(Ok(Frame::Notification { .. })) | None => pass_through(request, upstream, None).await,
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
    let is_observed = is_call
        || shows_result(&method)
        || matches!(method.as_str(), "initialize" | "server/discover" | "tools/list");
    if !is_observed && !request.conversation.records(&request.server) {
        return pass_through(request, upstream, None).await;
    }
    let (conversation, server) = (request.conversation.clone(), request.server.clone());
    let (method_name, arguments) = (method.clone(), params.clone());
    let begun =
        ExchangeObserver::begin(conversation, server, request.arrived, id.clone(), method_name, arguments);
    let mut observer = match begun.await {
        Ok(observer) => observer,
        Err(error) => return refuse(id, error, StatusCode::OK).await,
    };
    observer.await_cancellation(headers::text(&request.headers, headers::SESSION_ID));
    let fault = observer.select_fault();
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

/// A proxied server of one request.
enum ProxiedServer {
    /// Over HTTP, with the request as it arrived.
    Url(Box<McpHttpRequest>),
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
        Err(failure) => {
            request.report(Instant::now(), failure.event()).await;
            request.answer(Err(RpcError::new(error_code::INTERNAL_ERROR, failure.message))).await;
            return;
        }
    };
    let (conversation, server) = (request.conversation.clone(), request.server.clone());
    let (id, method, params) = (request.id.clone(), request.method.clone(), request.params.clone());
    let begun = ExchangeObserver::begin(conversation, server, request.arrived, id, method, params);
    match begun.await {
        Ok(mut observer) => {
            let fault = observer.select_fault();
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
    if let (Some(fault), Some(call)) = (&fault, observer.call())
        && !fault.kind.has_effect()
    {
        request.report(Instant::now(), fault.event(call)).await;
        observer.leave_unrecorded();
        if let Some(failed) = fail_before_effect(&request, &fault.kind).await {
            observer.end(failed.outcome.map_err(UpstreamError::from), failed.delivered).await;
        }
        return;
    }
    let cancelled = request.cancellation();
    tokio::pin!(cancelled);
    let mut sent = None;
    let mut notifications = KeptNotifications::new(&request.conversation, &request.server);
    let answer = async {
        match &proxied {
            ProxiedServer::Url(http) => match &request.server.source {
                AnswerSource::Url(upstream) => {
                    request_answer(http, upstream, &request, &mut notifications, &mut observer).await
                }
                _ => Err(UpstreamError::without_effect("the server is no proxy of a URL")),
            },
            ProxiedServer::Program(link) => {
                ask_program(&request, link, &mut sent, &mut notifications, &mut observer).await
            }
        }
    };
    let outcome = tokio::select! {
        outcome = answer => Some(outcome),
        () = &mut cancelled => None,
        () = request.conversation.wait_closed() => None,
    };
    let Some(outcome) = outcome else {
        if let (ProxiedServer::Program(link), Some(sent)) = (&proxied, sent) {
            link.cancel(sent).await;
        }
        return;
    };
    observer.set_notifications(notifications);
    let outcome = outcome.and_then(|result| observer.count_answer(&result).map(|()| result));
    let answer = match &outcome {
        Ok(result) => Ok(result.clone()),
        Err(failed) => Err(failed.error.clone()),
    };
    if observer.call().is_none() {
        observer.end(outcome, true).await;
        request.answer(answer).await;
        return;
    }
    // The fault breaks the answer, not a question before it.
    let fault = fault.filter(|_| !answer.as_ref().is_ok_and(asks_for_input));
    if let (Some(fault), Some(call)) = (&fault, observer.call()) {
        request.report(Instant::now(), fault.event(call)).await;
    }
    // The server has carried the call out; only its answer is late.
    if let Some(delay) = fault.as_ref().and_then(|fault| delay(&fault.kind)) {
        let is_awaited = tokio::select! {
            () = tokio::time::sleep(delay) => true,
            () = &mut cancelled => false,
            () = request.conversation.wait_closed() => false,
        };
        if !is_awaited {
            return observer.end(outcome, false).await;
        }
    }
    let tool = request.params.get("name").and_then(Value::as_str).unwrap_or_default();
    let delivered = deliver_broken(&request, tool, answer, fault.as_ref()).await;
    observer.end(outcome, delivered).await;
}

/// Asks a program. Stores the number of the request in `sent`, to cancel it.
async fn ask_program(
    request: &RpcRequest,
    link: &StdioLink,
    sent: &mut Option<u64>,
    notifications: &mut KeptNotifications,
    observer: &mut ExchangeObserver,
) -> Result<Value, UpstreamError> {
    let user = request.conversation.link_user(&request.server);
    let (number, mut messages) = link.request(user, &request.id, &request.method, &request.params).await?;
    *sent = number;
    while let Some(message) = messages.recv().await {
        match message {
            LinkMessage::Answer(outcome) => return Ok(outcome?),
            LinkMessage::Failed(failure) => {
                request.report(Instant::now(), failure.event()).await;
                break;
            }
            LinkMessage::Interim(message) => {
                let forwarded = forward_interim(message, request, notifications, observer).await;
                if let (Err(_), Some(number)) = (&forwarded, number) {
                    link.cancel(number).await;
                }
                forwarded?;
            }
        }
    }
    let message = "the program of the server has ended";
    Err(match number {
        Some(_) => UpstreamError::broken_off(message),
        None => UpstreamError::without_effect(message),
    })
}

/// Starts the program of a new session and performs its handshake.
pub(super) async fn initialize(
    request: &McpHttpRequest,
    upstream: &CommandUpstream,
    id: &Value,
    params: &Map<String, Value>,
) -> Result<(Value, Arc<StdioLink>), RpcError> {
    let internal = |message: String| RpcError::new(error_code::INTERNAL_ERROR, message);
    let report = async |failure: &ProgramFailure| {
        request.conversation.report(request.server.name(), Instant::now(), failure.event()).await;
    };
    let link = match upstream.start(&request.run) {
        Ok(link) => link,
        Err(failure) => {
            report(&failure).await;
            return Err(internal(failure.message));
        }
    };
    let (conversation, server) = (request.conversation.clone(), request.server.clone());
    let method = "initialize".to_string();
    let begun =
        ExchangeObserver::begin(conversation, server, request.arrived, id.clone(), method, params.clone());
    let mut observer = begun.await?;
    let user = request.conversation.link_user(&request.server);
    let (_, mut messages) = link.request(user, id, "initialize", params).await?;
    let limit = request.conversation.limits.max_open_time;
    let answer = async {
        while let Some(message) = messages.recv().await {
            match message {
                LinkMessage::Interim(_) => {}
                LinkMessage::Answer(outcome) => return outcome,
                LinkMessage::Failed(failure) => {
                    report(&failure).await;
                    break;
                }
            }
        }
        Err(internal("the program of the server has ended".to_string()))
    };
    let outcome = tokio::time::timeout(limit, answer).await;
    let outcome =
        outcome.unwrap_or_else(|_| Err(internal("the program of the server does not answer".to_string())));
    observer.end(outcome.clone().map_err(UpstreamError::from), true).await;
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
