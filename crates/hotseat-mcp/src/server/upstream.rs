//! Proxied servers over HTTP: requests pass unchanged, answers are observed on their way.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, Method, Response, StatusCode, header};
use futures_util::{StreamExt as _, stream};
use hotseat_http::{
    HttpRequestError, IncomingResponse, check_encoding, passed_headers, root_cause, shown_address,
};
use serde_json::Value;

use super::headers;
use super::observer::{ExchangeObserver, KeptNotifications, UpstreamError, read_outcome};
use super::outbound::{HttpOutcome, OutFrame, error_response};
use super::rpc_request::{McpHttpRequest, RpcRequest};
use super::state::{ConversationState, ServerState};
use super::url_upstream::UrlUpstream;
use crate::event::McpEventKind;
use crate::frame::Frame;
use crate::revision::error_code;
use crate::sse::{EventScanner, is_event_stream};

/// Headers that do not pass, beside those of every proxy: no body that passes is encoded, and the origin is that of this
/// server.
const OWN_HEADERS: [HeaderName; 2] = [header::CONTENT_ENCODING, header::ORIGIN];

/// True if the client sends no other request on its connection.
fn closes_connection(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case("close"))
}

/// Sends a request to the proxied server, on a connection of its own if the client does so too: the server may close a connection
/// after an answer, and then a further request there gets none. Fails if it does not answer; it may have got the request.
async fn send(request: &McpHttpRequest, upstream: &UrlUpstream) -> Result<IncomingResponse, UpstreamError> {
    let own_clients =
        closes_connection(&request.headers).then(|| request.conversation.clients.with_own_connections());
    let outgoing = own_clients
        .as_ref()
        .unwrap_or(&request.conversation.clients)
        .request(request.method.clone(), &upstream.url)
        .map_err(|error| UpstreamError::without_effect(error).into_server_failure())?;
    let mut headers = passed_headers(&request.headers, &OWN_HEADERS);
    // They replace those of the client, for example its key.
    for (name, value) in &upstream.headers {
        headers.insert(name, value.clone());
    }
    let address = shown_address(&upstream.url);
    let sent = outgoing.headers(headers).body(request.body.clone()).send();
    let limit = request.conversation.limits.max_open_time;
    match tokio::time::timeout(limit, sent).await {
        Ok(Ok(response)) => match check_encoding(response.headers()) {
            Ok(()) => Ok(response),
            Err(error) => {
                let message = format!("the answer of the proxied server {error}");
                Err(UpstreamError::broken_off(message).into_server_failure())
            }
        },
        Ok(Err(error)) if error.is_unsent() => {
            let message =
                format!("the proxied server cannot be reached at {address}: {}", root_cause(&error));
            Err(UpstreamError::without_effect(message).into_server_failure())
        }
        Ok(Err(error)) => {
            let message = format!("the proxied server at {address} did not answer: {}", root_cause(&error));
            Err(UpstreamError::broken_off(message).into_server_failure())
        }
        Err(_) => {
            let message = format!("the proxied server did not answer within {} s", limit.as_secs());
            Err(UpstreamError::broken_off(message).into_server_failure())
        }
    }
}

/// Passes a request on and its response back. The observer reads the messages of the response before the client
/// gets them.
pub(super) async fn pass_through(
    request: McpHttpRequest,
    upstream: &UrlUpstream,
    mut observer: Option<ExchangeObserver>,
) -> HttpOutcome {
    let response = match send(&request, upstream).await {
        Ok(response) => response,
        Err(failed) => {
            let message = failed.error.message.clone();
            match &mut observer {
                Some(observer) => observer.fail(failed).await,
                None => {
                    let kind = McpEventKind::ServerFailed { message: message.clone(), error_output: None };
                    request.conversation.report(request.server.name(), Instant::now(), kind).await;
                }
            }
            return Ok(error_response(StatusCode::BAD_GATEWAY, error_code::INTERNAL_ERROR, message));
        }
    };
    let (status, sent_headers) = (response.status(), passed_headers(response.headers(), &OWN_HEADERS));
    let is_events = is_event_stream(&sent_headers);
    let is_resumed = request.method == Method::GET && request.headers.contains_key(headers::LAST_EVENT_ID);
    let body = match observer {
        observer if is_events && (observer.is_some() || is_resumed) => {
            let state = ObservedStream {
                response,
                session: headers::text(&request.headers, headers::SESSION_ID).map(str::to_string),
                conversation: request.conversation.clone(),
                server: request.server.clone(),
                observer,
                scanner: EventScanner::new(request.conversation.limits.max_answer_bytes),
                permit: request.permit,
                is_ended: false,
            };
            let pieces = stream::unfold(state, |mut state| async move { Some((state.next().await?, state)) });
            Body::from_stream(pieces)
        }
        None => {
            let (conversation, permit) = (request.conversation.clone(), request.permit);
            let closed = Box::pin(async move { conversation.wait_closed().await });
            // The request is open as long as its answer.
            let pieces = response.into_stream().take_until(closed).inspect(move |_| _ = &permit);
            Body::from_stream(pieces)
        }
        Some(mut observer) => {
            let limits = &request.conversation.limits;
            let read =
                tokio::time::timeout(limits.max_open_time, read_answer(response, limits.max_answer_bytes));
            let answer = tokio::select! {
                answer = read => answer.unwrap_or_else(|_| Err(AnswerError::NeverEnds)),
                () = request.conversation.wait_closed() => Err(AnswerError::ConversationClosed),
            };
            let observed = match answer {
                Ok(body) => observer.observe_body(status, &body).await.map(|()| body),
                Err(error) => Err(error.into()),
            };
            match observed {
                Ok(body) => Body::from(body),
                Err(failed) => {
                    observer.fail(failed).await;
                    return Err(super::outbound::AbortedConnection);
                }
            }
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = sent_headers;
    Ok(response)
}

/// Why an answer of a proxied server is incomplete.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error("the proxied server closed the connection within its answer")]
    Closed(#[source] HttpRequestError),
    #[error("the answer of the proxied server has more than {0} bytes")]
    TooLong(usize),
    #[error("the proxied server did not end its answer")]
    NeverEnds,
    #[error("the conversation is closed")]
    ConversationClosed,
}

impl From<AnswerError> for UpstreamError {
    fn from(error: AnswerError) -> UpstreamError {
        let failed = UpstreamError::broken_off(&error);
        match error {
            AnswerError::Closed(_) | AnswerError::TooLong(_) | AnswerError::NeverEnds => {
                failed.into_server_failure()
            }
            AnswerError::ConversationClosed => failed,
        }
    }
}

async fn read_answer(mut response: IncomingResponse, limit: usize) -> Result<Bytes, AnswerError> {
    let mut body = Vec::new();
    loop {
        match response.next_bytes().await {
            Ok(None) => return Ok(body.into()),
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Err(error) => return Err(AnswerError::Closed(error)),
        }
        if body.len() > limit {
            return Err(AnswerError::TooLong(limit));
        }
    }
}

/// A stream of events on its way to the client.
struct ObservedStream {
    response: IncomingResponse,
    /// Session of the client.
    session: Option<String>,
    conversation: Arc<ConversationState>,
    server: Arc<ServerState>,
    /// `None` for a resumed stream, whose messages belong to exchanges that began before.
    observer: Option<ExchangeObserver>,
    scanner: EventScanner,
    /// Held while the stream is open.
    permit: tokio::sync::OwnedSemaphorePermit,
    is_ended: bool,
}

impl ObservedStream {
    async fn next(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        if self.is_ended {
            return None;
        }
        let _ = &self.permit;
        let piece = tokio::select! {
            piece = self.response.next_bytes() => piece,
            () = self.conversation.wait_closed() => {
                self.is_ended = true;
                return None;
            }
        };
        let message = match piece {
            Ok(piece) => match self.scanner.push(piece.as_deref()) {
                Ok(events) => match self.observe(events).await {
                    Ok(()) if piece.is_some() => return piece.map(Ok),
                    Ok(()) => {
                        self.end().await;
                        return None;
                    }
                    Err(failed) => failed.error.message,
                },
                Err(error) => format!("an event of the proxied server {error}"),
            },
            Err(_) => "the proxied server closed the connection within its answer".to_string(),
        };
        self.is_ended = true;
        if let Some(observer) = &mut self.observer {
            observer.fail(UpstreamError::broken_off(message.as_str()).into_server_failure()).await;
        }
        Some(Err(std::io::Error::other(message)))
    }

    /// Observes messages. On a resumed stream they belong to exchanges whose stream ended before their answer.
    async fn observe(&mut self, messages: Vec<Vec<u8>>) -> Result<(), UpstreamError> {
        for data in messages {
            tokio::task::coop::consume_budget().await;
            if let Some(observer) = &mut self.observer {
                observer.observe(&data).await?;
                continue;
            }
            let answered = match Frame::parse(&data) {
                Ok(Frame::Response { id, .. }) => Some(id),
                _ => None,
            };
            let session = self.session.as_deref();
            if let Some(receiver) = self.server.suspended.receiver_of(session, answered.as_ref()) {
                // An exchange that has its answer needs no further messages.
                let _ = receiver.send(data).await;
            }
        }
        Ok(())
    }

    /// Ends a stream. The client may resume one with ids, to get an answer that is missing.
    async fn end(&mut self) {
        let Some(mut observer) = self.observer.take().filter(|observer| !observer.is_ended()) else { return };
        let failed = UpstreamError::broken_off("the proxied server ended its stream without an answer");
        if !self.scanner.is_resumable() {
            return observer.fail(failed.into_server_failure()).await;
        }
        let suspended = self.server.suspended.insert(self.session.clone(), observer.id().clone());
        let Some(mut messages) = suspended else { return observer.fail(failed).await };
        tokio::spawn(async move {
            while let Some(data) = messages.recv().await {
                if let Err(failed) = observer.observe(&data).await {
                    observer.fail(failed).await;
                }
                if observer.is_ended() {
                    return;
                }
            }
        });
        if self.conversation.is_closed() {
            self.server.suspended.clear();
        }
    }
}

/// Sends a request to the proxied server and returns its answer; notifications are forwarded before.
pub(super) async fn request_answer(
    http: &McpHttpRequest,
    upstream: &UrlUpstream,
    request: &RpcRequest,
    notifications: &mut KeptNotifications,
    observer: &mut ExchangeObserver,
) -> Result<Value, UpstreamError> {
    let mut response = send(http, upstream).await?;
    let status = response.status();
    let limit = request.conversation.limits.max_answer_bytes;
    if !is_event_stream(response.headers()) {
        let body = read_answer(response, limit).await?;
        return read_outcome(&request.id, status, &body, !upstream.headers.is_empty());
    }
    let mut scanner = EventScanner::new(limit);
    while let Ok(piece) = response.next_bytes().await {
        let events = scanner.push(piece.as_deref());
        let undecodable = |error| {
            UpstreamError::broken_off(format!("an event of the proxied server {error}")).into_server_failure()
        };
        for data in events.map_err(undecodable)? {
            tokio::task::coop::consume_budget().await;
            match Frame::parse(&data) {
                Ok(Frame::Response { id, outcome }) if id == request.id => return Ok(outcome?),
                Ok(frame) => forward_interim(frame.to_json(), request, notifications, observer).await?,
                Err(error) => observer.report_invalid_message(&error).await,
            }
        }
        if piece.is_none() {
            break;
        }
    }
    let message = "the proxied server closed the connection within its answer";
    Err(UpstreamError::broken_off(message).into_server_failure())
}

/// Forwards a message before the answer. Fails if the call asks for input too often.
pub(super) async fn forward_interim(
    message: Value,
    request: &RpcRequest,
    notifications: &mut KeptNotifications,
    observer: &mut ExchangeObserver,
) -> Result<(), UpstreamError> {
    match (message.get("method"), message.get("id")) {
        (Some(_), Some(_)) => observer.report_input_request(&message).await?,
        (Some(_), None) => notifications.push(&message),
        (None, _) => {}
    }
    // A client that disconnected misses its notifications.
    let _ = request.out.send(OutFrame::Interim(message)).await;
    Ok(())
}
