//! Requests that are not answered by a model but by a provider behind a relay, or by a recording.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use hotseat_http::root_cause;
use hotseat_serve::TextCleaner;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::answer_source::{AnswerSource, LaneRecorder, OpenExchange, RecordProblem};
use super::cassette::{RelayedExchange, ReplayTable, UnmatchedRequest, query_without_keys};
use super::conversation::{ConversationState, ModelState};
use super::faults::{FaultKind, kind_of_status};
use super::relay::{ModelRelay, relayed_headers, request_keys};
use super::respond::{connection_cut, cut_response, error_response, garbage_response};
use super::{Dialect, ServedModelEventKind};
use crate::providers::{has_content, is_document, may_answer_with_calls, read_relayed_reply};
use crate::{ModelError, ModelErrorKind, ModelReply, ModelRequest, TokenUsage};

/// Maximum number of pieces of an answer that wait for the client.
const MAX_WAITING_PIECES: usize = 64;

/// A request to a relay or a recording.
pub(super) struct ExchangeRequest {
    pub(super) conversation: Arc<ConversationState>,
    pub(super) model: Arc<ModelState>,
    pub(super) method: Method,
    /// Path below the address, as the client sent it.
    pub(super) path: String,
    /// The path without `v1`.
    pub(super) rest: String,
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) dialect: Option<Dialect>,
    pub(super) arrived: Instant,
    /// Held until the exchange has ended.
    pub(super) _permit: OwnedSemaphorePermit,
}

/// The start of an answer.
enum AnswerHead {
    /// The answer is complete.
    Whole(Box<Response>),
    /// The body follows in pieces.
    Streamed(StatusCode, HeaderMap),
}

/// Where a running exchange sends its answer. The receivers belong to the connection of the client.
struct AnswerSender {
    /// `None` once it was used.
    head: Option<oneshot::Sender<AnswerHead>>,
    pieces: mpsc::Sender<io::Result<Bytes>>,
}

/// The call that a request is, as far as its protocol is known.
struct ObservedCall {
    /// Number of the request in the conversation.
    number: u64,
    request: ModelRequest,
    body: Value,
    fault: Option<FaultKind>,
}

/// An answer that has been read to its end.
struct CompleteAnswer {
    status: StatusCode,
    content_type: Option<HeaderValue>,
    body: Vec<u8>,
}

impl AnswerSender {
    /// Sends a whole answer.
    fn send(&mut self, response: Response) {
        self.send_head(AnswerHead::Whole(Box::new(response)));
    }

    fn send_head(&mut self, head: AnswerHead) {
        if let Some(sender) = self.head.take() {
            // Fails if the client has disconnected.
            let _ = sender.send(head);
        }
    }
}

impl CompleteAnswer {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        response.headers_mut().remove(header::CONTENT_TYPE);
        if let Some(content_type) = self.content_type {
            response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        }
        response
    }

    /// Returns the body as JSON, or as text. `None` if it is neither.
    fn value(&self) -> Option<Value> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let is_json =
            self.content_type.as_ref().is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let parsed = is_json.then(|| serde_json::from_str(text).ok()).flatten();
        Some(parsed.unwrap_or_else(|| Value::String(text.to_owned())))
    }
}

impl ExchangeRequest {
    /// Answers the request. The exchange has its own task, because this one ends when its client disconnects.
    pub(super) async fn answer(self) -> Response {
        let (head, answered) = oneshot::channel();
        let (pieces, arriving) = mpsc::channel(MAX_WAITING_PIECES);
        tokio::spawn(self.run(AnswerSender { head: Some(head), pieces }));
        match answered.await {
            Ok(AnswerHead::Whole(response)) => *response,
            Ok(AnswerHead::Streamed(status, headers)) => {
                let body = Body::from_stream(stream::unfold(arriving, |mut arriving| async move {
                    Some((arriving.recv().await?, arriving))
                }));
                (status, headers, body).into_response()
            }
            Err(_) => cut_response(Vec::new()),
        }
    }

    async fn run(self, mut sender: AnswerSender) {
        let call = self.observe().await;
        let mut closed = self.conversation.closed.subscribe();
        let pieces = sender.pieces.clone();
        let mut passed = None;
        let gone = tokio::select! {
            biased;
            () = self.exchange(&call, &mut sender, &mut passed) => return,
            () = pieces.closed() => "the client disconnected",
            _ = closed.wait_for(|closed| *closed) => "the conversation has ended",
        };
        let left = self.read_cut(&call, ModelError::new(ModelErrorKind::Network, gone), passed).await;
        match left.partial {
            // A client that leaves after a call has read all that it needs.
            Some(reply) if !reply.tool_calls.is_empty() => self.report_reply(&call, *reply).await,
            partial => self.report_failure(&call, ModelError { partial, ..left }).await,
        }
    }

    /// Numbers the call, reports it and selects its fault.
    async fn observe(&self) -> ObservedCall {
        let body = match serde_json::from_slice(&self.body) {
            Ok(body) => body,
            Err(_) if self.body.is_empty() => Value::Null,
            Err(_) => Value::String(String::from_utf8_lossy(&self.body).into_owned()),
        };
        let served = self.dialect.and_then(|dialect| dialect.read_request(&body).ok());
        let mut request = served.map(|served| served.request).unwrap_or_default();
        let requested = body["model"].as_str().unwrap_or_default().to_owned();
        let number = self.conversation.number_call(&requested, &mut request);
        let mut call = ObservedCall { number, request, body, fault: None };
        let Some(dialect) = self.dialect else { return call };
        let received = ServedModelEventKind::CallReceived {
            call: number,
            dialect,
            requested,
            position: call.request.position.clone(),
            input_tokens: TokenUsage::estimate(&call.request, &ModelReply::default()).input_tokens,
            messages: call.request.messages.len(),
            tools: call.request.tools.len(),
            results: call.request.new_results(),
            answered: call.request.answered_calls(),
        };
        self.conversation.report(&self.model.name, received).await;
        if let Some((rule, fault)) = self.model.faults.select_for_exchange(&call.request) {
            let injected = ServedModelEventKind::FaultInjected { call: number, rule, fault: fault.clone() };
            self.conversation.report(&self.model.name, injected).await;
            call.fault = Some(fault);
        }
        call
    }

    async fn exchange(
        &self,
        call: &ObservedCall,
        sender: &mut AnswerSender,
        passed: &mut Option<CompleteAnswer>,
    ) {
        let dialect = self.dialect.unwrap_or(Dialect::ChatCompletions);
        if let Some(error) = call.fault.as_ref().and_then(|fault| fault.error(dialect)) {
            self.report_failure(call, error.clone()).await;
            match call.fault {
                Some(FaultKind::Timeout) => std::future::pending().await,
                Some(FaultKind::Disconnect) => sender.send(cut_response(Vec::new())),
                _ => sender.send(error_response(dialect, &error, None)),
            }
            return;
        }
        if let Some(FaultKind::Delay(delay)) = call.fault {
            tokio::time::sleep(delay).await;
        }
        let failed = match &self.model.source {
            AnswerSource::Model(_) => return,
            AnswerSource::Relay(relay, recorder) => {
                self.relay(call, relay, recorder.as_ref(), sender, passed).await.err()
            }
            AnswerSource::Replay(table) => match self.take_recorded(call, table) {
                Ok(exchange) => {
                    self.report_unread(exchange.status).await;
                    self.deliver(call, CompleteAnswer::from(exchange), sender).await;
                    None
                }
                Err(nearest) => {
                    let message =
                        format!("no recorded exchange fits its request to `{}`\n{nearest}", self.rest);
                    Some(ModelError::new(ModelErrorKind::Unanswered, message))
                }
            },
        };
        if let Some(error) = failed {
            self.report_failure(call, error.clone()).await;
            sender.send(error_response(dialect, &error, None));
        }
    }

    /// Takes the recorded answer to a request. Keys were not recorded; the one of a replay may be any word.
    fn take_recorded(
        &self,
        call: &ObservedCall,
        table: &Mutex<ReplayTable>,
    ) -> Result<RelayedExchange, UnmatchedRequest> {
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        let query = self.query.as_deref().and_then(query_without_keys);
        let method = self.method.as_str();
        table.take(method, &self.rest, query.as_deref(), &call.body).or_else(|unmatched| {
            let keys = request_keys(&self.headers, self.query.as_deref()).collect();
            let keys = TextCleaner::default().without_keys(keys);
            let (request, query) = (keys.value(&call.body), query.map(|query| keys.text(&query)));
            table.take(method, &self.rest, query.as_deref(), &request).map_err(|_| unmatched)
        })
    }

    /// Relays the request, and the pieces of its answer as they arrive.
    async fn relay(
        &self,
        call: &ObservedCall,
        relay: &ModelRelay,
        recorder: Option<&LaneRecorder>,
        sender: &mut AnswerSender,
        passed: &mut Option<CompleteAnswer>,
    ) -> Result<(), ModelError> {
        let (method, body) = (self.method.clone(), self.body.clone());
        let recording = recorder.map(|recorder| recorder.begin(&self.rest, self.dialect.is_some()));
        let fail_recording = |error: &ModelError| {
            if let Some(recording) = &recording {
                recording.fail(error);
            }
        };
        let sent = relay.send(method, &self.path, self.query.as_deref(), &self.headers, body).await;
        let mut response = sent.inspect_err(fail_recording)?;
        self.report_unread(response.status().as_u16()).await;
        let is_held_back = call.fault.as_ref().is_some_and(FaultKind::needs_whole_reply);
        if !is_held_back {
            let mut headers = relayed_headers(response.headers());
            if let Some(length) = response.content_length() {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            }
            sender.send_head(AnswerHead::Streamed(response.status(), headers));
        }
        let answer = passed.insert(CompleteAnswer {
            status: response.status(),
            content_type: response.headers().get(header::CONTENT_TYPE).cloned(),
            body: Vec::new(),
        });
        let max_bytes = self.conversation.limits.max_recorded_bytes;
        loop {
            match response.next_bytes().await {
                Ok(None) => break,
                Ok(Some(bytes)) => {
                    // One piece more than the limit makes the recording fail.
                    if answer.body.len() <= max_bytes {
                        answer.body.extend_from_slice(&bytes);
                    }
                    if !is_held_back && sender.pieces.send(Ok(bytes)).await.is_err() {
                        // The client has disconnected, so this task ends.
                        std::future::pending::<()>().await;
                    }
                }
                Err(error) => {
                    let cause = root_cause(&error);
                    let message = format!("the answer of the provider at {} broke: {cause}", relay.address());
                    let broken = ModelError::new(ModelErrorKind::Network, message);
                    fail_recording(&broken);
                    match is_held_back {
                        true => {
                            self.report_failure(call, broken).await;
                            sender.send(cut_response(Vec::new()));
                        }
                        false => {
                            let broken = self.read_cut(call, broken, passed.take()).await;
                            self.report_failure(call, broken).await;
                            // Fails if the client has disconnected.
                            drop(sender.pieces.send(Err(connection_cut().await)).await);
                        }
                    }
                    return Ok(());
                }
            }
        }
        let Some(answer) = passed.take() else { return Ok(()) };
        if let Some((recorder, recording)) = recorder.zip(recording) {
            self.record(call, relay, recorder, recording, &answer);
        }
        match is_held_back {
            true => self.deliver(call, answer, sender).await,
            false => self.report_outcome(call, &answer).await,
        }
        Ok(())
    }

    /// Adds an exchange to the recording, without keys.
    fn record(
        &self,
        call: &ObservedCall,
        relay: &ModelRelay,
        recorder: &LaneRecorder,
        recording: OpenExchange<'_>,
        answer: &CompleteAnswer,
    ) {
        let keys = request_keys(&self.headers, self.query.as_deref()).chain(relay.keys());
        let cleaner = recorder.cleaner.without_keys(keys.collect());
        let added = match answer.value() {
            None => Err(RecordProblem::NoText),
            Some(response) => recording.add(
                call.number,
                RelayedExchange {
                    lane: recorder.lane.clone(),
                    model: self.model.name.to_string(),
                    method: Some(self.method.to_string()),
                    path: self.rest.clone(),
                    query: self
                        .query
                        .as_deref()
                        .and_then(query_without_keys)
                        .map(|query| cleaner.text(&query)),
                    request: cleaner.value(&call.body),
                    status: answer.status.as_u16(),
                    content_type: answer
                        .content_type
                        .as_ref()
                        .and_then(|kind| Some(kind.to_str().ok()?.to_owned())),
                    response: cleaner.value(&response),
                    took_ms: u64::try_from(self.arrived.elapsed().as_millis()).unwrap_or(u64::MAX),
                },
                self.conversation.limits.max_recorded_bytes,
            ),
        };
        if let Err(problem) = added {
            recorder.fail(problem.to_string());
        }
    }

    /// Reports a complete answer and sends it, broken if there is a fault.
    async fn deliver(&self, call: &ObservedCall, answer: CompleteAnswer, sender: &mut AnswerSender) {
        let lost = match call.fault {
            Some(FaultKind::LostAnswer) => "the answer was lost",
            Some(FaultKind::Garbage) => "the answer was no JSON",
            Some(FaultKind::Truncate) => "the answer ended in its middle",
            _ => {
                self.report_outcome(call, &answer).await;
                return sender.send(answer.into_response());
            }
        };
        let message = format!("the test injected a fault: {lost}");
        self.report_failure(call, ModelError::new(ModelErrorKind::Network, message.as_str())).await;
        sender.send(match call.fault {
            Some(FaultKind::Garbage) => garbage_response(&ModelError::new(ModelErrorKind::Decode, message)),
            Some(FaultKind::Truncate) => {
                let mut body = answer.body;
                body.truncate(body.len() / 2);
                cut_response(body)
            }
            _ => cut_response(Vec::new()),
        });
    }

    /// Reports an answer in a protocol that is not read, if it may contain tool calls.
    async fn report_unread(&self, status: u16) {
        let may_have_calls =
            self.dialect.is_none() && may_answer_with_calls(self.method == Method::POST, &self.rest);
        if may_have_calls && (200..300).contains(&status) {
            let kind = ServedModelEventKind::UnreadAnswer { path: self.path.clone() };
            self.conversation.report(&self.model.name, kind).await;
        }
    }

    async fn report_outcome(&self, call: &ObservedCall, answer: &CompleteAnswer) {
        let Some(dialect) = self.dialect else { return };
        if !answer.status.is_success() {
            let status = answer.status.as_u16();
            let message = format!("the provider answered with status {status}");
            let error = ModelError::new(kind_of_status(status), message);
            return self.report_failure(call, ModelError { status: Some(status), ..error }).await;
        }
        let max_bytes = self.conversation.limits.max_recorded_bytes;
        if answer.body.len() > max_bytes {
            let message = format!("the answer of the provider is longer than {max_bytes} bytes");
            return self.report_failure(call, ModelError::new(ModelErrorKind::Decode, message)).await;
        }
        if !has_content(&answer.body) {
            let empty = ModelError::new(ModelErrorKind::Decode, "the answer of the provider is empty");
            return self.report_failure(call, empty).await;
        }
        match read_relayed_reply(dialect, &answer.body, &call.request).await {
            Ok(reply) => self.report_reply(call, reply).await,
            Err(error) => {
                // All bytes arrived, so the only break that the parser can find is a missing end.
                let may_be_accepted = error.kind == ModelErrorKind::Network;
                self.report_failed_call(call, error, may_be_accepted).await;
            }
        }
    }

    /// Adds to a failure what the client had received of the answer until then.
    async fn read_cut(
        &self,
        call: &ObservedCall,
        error: ModelError,
        passed: Option<CompleteAnswer>,
    ) -> ModelError {
        let (Some(dialect), Some(passed)) = (self.dialect, passed) else { return error };
        // A part of a document is of no use to the client.
        let is_held_back = call.fault.as_ref().is_some_and(FaultKind::needs_whole_reply);
        if is_document(&passed.body) || is_held_back || !passed.status.is_success() {
            return error;
        }
        // A line without its end was cut by the connection, not by the provider.
        let ends_line = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let lines = passed.body.iter().rposition(ends_line).map_or(&[][..], |end| &passed.body[..=end]);
        match read_relayed_reply(dialect, lines, &call.request).await {
            Ok(reply) => ModelError { partial: Some(Box::new(reply)), ..error },
            Err(unreadable) if unreadable.kind == ModelErrorKind::Decode => unreadable,
            Err(cut) => ModelError { partial: cut.partial, ..error },
        }
    }

    async fn report_reply(&self, call: &ObservedCall, reply: ModelReply) {
        let (reply, duration) = (Box::new(reply), self.arrived.elapsed());
        let kind = ServedModelEventKind::CallAnswered { call: call.number, reply, duration };
        self.conversation.report(&self.model.name, kind).await;
    }

    async fn report_failure(&self, call: &ObservedCall, error: ModelError) {
        self.report_failed_call(call, error, false).await;
    }

    /// Reports a call that failed. Of requests in other protocols only those without a recorded answer are reported.
    async fn report_failed_call(&self, call: &ObservedCall, error: ModelError, may_be_accepted: bool) {
        if self.dialect.is_none() && error.kind != ModelErrorKind::Unanswered {
            return;
        }
        let kind = ServedModelEventKind::CallFailed { call: call.number, error, may_be_accepted };
        self.conversation.report(&self.model.name, kind).await;
    }
}

impl From<RelayedExchange> for CompleteAnswer {
    fn from(exchange: RelayedExchange) -> CompleteAnswer {
        let body = match exchange.response {
            Value::String(text) => text.into_bytes(),
            document => document.to_string().into_bytes(),
        };
        CompleteAnswer {
            status: StatusCode::from_u16(exchange.status).unwrap_or(StatusCode::BAD_GATEWAY),
            content_type: exchange.content_type.and_then(|kind| HeaderValue::try_from(kind).ok()),
            body,
        }
    }
}
