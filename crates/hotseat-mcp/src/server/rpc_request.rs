//! One request of a client, with everything that its answer needs, and the ways to answer it.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::catalog::list_page;
use super::outbound::{AnswerDelivery, FinalAnswer, HttpOutcome, MAX_WAITING_FRAMES, OutFrame, respond};
use super::sessions::ClientSession;
use super::state::{AnswerSource, ConversationState, RunState, ServerState};
use crate::answer::{CallNotifier, LOG_LEVELS};
use crate::definition::{MockContent, ServerKind};
use crate::event::McpEventKind;
use crate::frame::{Frame, FrameError, RpcError};
use crate::lock;
use crate::revision::{ProtocolRevision, error_code, meta};

/// Time for which clients may use lists without asking again, in milliseconds.
pub(super) const LIST_TTL_MS: u64 = 0;

/// A request over HTTP to one server of a conversation.
pub(super) struct McpHttpRequest {
    pub(super) run: Arc<RunState>,
    pub(super) conversation: Arc<ConversationState>,
    pub(super) server: Arc<ServerState>,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) arrived: Instant,
    /// Held while the request is open.
    pub(super) permit: OwnedSemaphorePermit,
}

/// A JSON-RPC request with everything that its answer needs.
pub(super) struct RpcRequest {
    pub(super) run: Arc<RunState>,
    pub(super) conversation: Arc<ConversationState>,
    pub(super) server: Arc<ServerState>,
    pub(super) arrived: Instant,
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
    pub(super) revision: ProtocolRevision,
    /// Capabilities of the client.
    pub(super) capabilities: Map<String, Value>,
    /// Session of a client with a handshake.
    pub(super) session: Option<Arc<ClientSession>>,
    pub(super) out: mpsc::Sender<OutFrame>,
}

impl RpcRequest {
    /// Waits until the client cancels the request. Without a session, it does so by closing its connection. With one, the request still
    /// needs a response over HTTP: a stream without an answer.
    pub(super) fn cancellation(&self) -> impl Future<Output = ()> {
        let running = self.session.as_ref().map(|session| session.register_running(&self.id));
        async move {
            match &running {
                Some(running) => {
                    running.wait_cancelled().await;
                    // Without room for it, the stream has begun, and ends with this request.
                    let _ = self.out.try_send(OutFrame::End);
                }
                None => self.out.closed().await,
            }
        }
    }

    /// Sends the answer as the protocol demands. Returns whether the client was still connected.
    pub(super) async fn answer(&self, outcome: Result<Value, RpcError>) -> bool {
        self.deliver(outcome, AnswerDelivery::Plain).await
    }

    /// Sends the answer in this way. Returns whether the client gets an answer.
    pub(super) async fn deliver(&self, outcome: Result<Value, RpcError>, delivery: AnswerDelivery) -> bool {
        let status = match &outcome {
            Err(error) if self.revision.is_stateless() => error_status(error.code),
            _ => StatusCode::OK,
        };
        let outcome = outcome.map(|result| self.complete(result));
        let message = Frame::Response { id: self.id.clone(), outcome }.to_json();
        let is_lost = matches!(delivery, AnswerDelivery::Abort);
        let sent = self.out.send(OutFrame::Final(FinalAnswer { message, status, delivery })).await;
        sent.is_ok() && !is_lost
    }

    /// Adds the members that all results of the revision have.
    fn complete(&self, mut result: Value) -> Value {
        if self.revision.is_stateless()
            && let Some(members) = result.as_object_mut()
        {
            members.entry("resultType").or_insert_with(|| json!("complete"));
            let meta = members.entry("_meta").or_insert_with(|| json!({}));
            let is_own = matches!(self.server.source, AnswerSource::Mock | AnswerSource::Replay(_));
            if let Some(meta) = meta.as_object_mut().filter(|_| is_own) {
                meta.entry(meta::SERVER_INFO).or_insert_with(|| server_info(&self.server));
            }
        }
        result
    }

    /// `_meta` of the request.
    pub(super) fn meta(&self) -> Map<String, Value> {
        self.params.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// Notifier of this request, with the channel that receives its notifications.
    pub(super) fn notifier(&self) -> (CallNotifier, mpsc::Receiver<Value>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_FRAMES);
        let meta = self.params.get("_meta");
        let level = meta.and_then(|meta| meta.get(meta::LOG_LEVEL)).and_then(Value::as_str);
        let min_log_level = match &self.session {
            Some(session) => Some(session.log_level()),
            None => level.and_then(|level| LOG_LEVELS.iter().position(|known| *known == level)),
        };
        let progress_token = meta.and_then(|meta| meta.get("progressToken")).cloned();
        let changes = self.server.changes.clone();
        (CallNotifier { sender: Some(sender), progress_token, min_log_level, changes }, receiver)
    }

    /// Reports an event of this request.
    pub(super) async fn report(&self, at: Instant, kind: McpEventKind) {
        self.conversation.report(self.server.name(), at, kind).await;
    }
}

/// HTTP status of an error in revision 2026-07-28.
fn error_status(code: i64) -> StatusCode {
    match code {
        error_code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        error_code::HEADER_MISMATCH
        | error_code::MISSING_CLIENT_CAPABILITY
        | error_code::UNSUPPORTED_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// Reads the message of a request. Fails also for a call without an id: its answer could not be seen, and lenient servers execute it.
pub(super) fn read_message(body: &[u8]) -> Result<Frame, Box<FrameError>> {
    match Frame::parse(body)? {
        Frame::Notification { method, .. } if method == "tools/call" => {
            let error = RpcError::new(error_code::INVALID_REQUEST, "a call of a tool needs an `id`");
            Err(Box::new(FrameError { id: Value::Null, error }))
        }
        frame => Ok(frame),
    }
}

/// Refuses a message that cannot be read, and reports it.
pub(super) async fn refuse_message(request: &McpHttpRequest, error: FrameError) -> HttpOutcome {
    report_protocol_error(request, error.error.code, &error.error.message).await;
    refuse(error.id, error.error, StatusCode::BAD_REQUEST).await
}

pub(super) async fn report_protocol_error(request: &McpHttpRequest, code: i64, message: &str) {
    let kind = McpEventKind::ProtocolError { code: Some(code), message: message.to_string() };
    request.conversation.report(request.server.name(), request.arrived, kind).await;
}

/// Answers with an error before the request is dispatched.
pub(super) async fn refuse(id: Value, error: RpcError, status: StatusCode) -> HttpOutcome {
    let message = Frame::Response { id, outcome: Err(error) }.to_json();
    let (out, frames) = mpsc::channel(1);
    let answer = FinalAnswer { message, status, delivery: AnswerDelivery::Plain };
    // The channel has room for one frame.
    let _ = out.send(OutFrame::Final(answer)).await;
    respond(frames).await
}

pub(super) async fn report_client(request: &McpHttpRequest, revision: ProtocolRevision, info: &Value) {
    if request.server.is_new_client(revision, info) {
        let text = |key: &str| info.get(key).and_then(Value::as_str).map(str::to_string);
        let kind =
            McpEventKind::ClientConnected { revision, client: text("name"), client_version: text("version") };
        request.conversation.report(request.server.name(), request.arrived, kind).await;
    }
}

/// Answers a request for a list.
pub(super) fn list(request: &RpcRequest, member: &str, entries: &[Value]) -> Result<Value, RpcError> {
    let page_size = mock_content(&request.server).and_then(|content| content.page_size);
    let mut result = list_page(member, entries, page_size, request.params.get("cursor"))?;
    if request.revision.is_stateless() {
        result["ttlMs"] = json!(LIST_TTL_MS);
        result["cacheScope"] = json!("private");
    }
    Ok(result)
}

pub(super) fn mock_content(server: &ServerState) -> Option<&MockContent> {
    match &server.definition.kind {
        ServerKind::Mock(content) => Some(content),
        ServerKind::Proxy(_) | ServerKind::Replay(_) => None,
    }
}

/// Name and version of a server: of a replay those that were recorded.
pub(super) fn server_info(server: &ServerState) -> Value {
    if let AnswerSource::Replay(table) = &server.source
        && let Some(info) = lock(table).server_info()
    {
        return info.clone();
    }
    json!({"name": server.name(), "version": env!("CARGO_PKG_VERSION")})
}
