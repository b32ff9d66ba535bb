//! The bridge of `hotseat mcp NAME`: messages on lines, forwarded to a server of the running Hotseat.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{Method, header};
use bytes::Bytes;
use hotseat_http::{ClientError, EventError, HttpClients, IncomingResponse, OutgoingRequest};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use url::Url;

use crate::frame::{Frame, RpcError};
use crate::revision::{ProtocolRevision, error_code};
use crate::sse::{EventScanner, has_media_type, is_event_stream};

/// Header that tells the server that messages had no headers before the bridge.
pub(crate) const BRIDGE_HEADER: &str = "x-hotseat-bridge";
/// Header of the response to a request to a server that the conversation does not have.
pub(crate) const UNKNOWN_SERVER_HEADER: &str = "x-hotseat-unknown-server";
/// Time for running requests after the end of the input.
const END_GRACE: Duration = Duration::from_secs(5);
/// Maximum number of lines that wait for output.
const MAX_WAITING_LINES: usize = 64;

/// Error that ends a bridge.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The address in the environment is not usable.
    #[error("the address of the running Hotseat is invalid: {0}")]
    Address(String),
    /// The client cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The conversation has no server of this name. The message names those that it has.
    #[error("{0}")]
    UnknownServer(String),
    /// The server closed the connection, for example because of a fault.
    #[error("the server closed the connection without an answer")]
    ConnectionLost,
    /// The server sent a message that is too long.
    #[error("the server sent a message of more than {0} bytes")]
    OversizedMessage(usize),
    /// The server sent an event that cannot be decoded.
    #[error("the server sent an event that {0}")]
    InvalidEvent(#[from] EventError),
}

/// Forwards messages between a client on standard input and output and a server.
///
/// `address` is the value of [`BRIDGE_VARIABLE`](crate::BRIDGE_VARIABLE). `input` receives lines without
/// their ends. Lines of the server are sent to `output`, also without ends. Returns when the input ends.
/// Fails if the address is invalid, the conversation has no server of this name, or the server closes a connection without an answer.
pub async fn run_bridge(
    address: &str,
    server: &str,
    mut input: mpsc::Receiver<Vec<u8>>,
    output: mpsc::Sender<Vec<u8>>,
    max_message_bytes: usize,
) -> Result<(), BridgeError> {
    let url = address.replace("{server}", server);
    let url = Url::parse(&url).map_err(|_| BridgeError::Address(address.to_string()))?;
    let clients = HttpClients::default().without_proxies();
    let (failed, mut failure) = mpsc::channel(1);
    let bridge = Arc::new(BridgeState {
        clients,
        url,
        output,
        max_message_bytes,
        session: Mutex::default(),
        running: Mutex::default(),
        failed,
    });
    let mut tasks = JoinSet::new();
    let forwarded = loop {
        let line = tokio::select! {
            line = input.recv() => line,
            Some(error) = failure.recv() => break Err(error),
        };
        while tasks.try_join_next().is_some() {}
        match line {
            None => {
                let ended = bridge.end(&mut tasks).await;
                break failure.try_recv().map_or(ended, Err);
            }
            Some(line) if line.iter().all(u8::is_ascii_whitespace) => {}
            Some(line) => {
                if let Err(error) = bridge.clone().accept(line, &mut tasks).await {
                    break Err(error);
                }
            }
        }
    };
    // Waits for the tasks to be dropped: the client must see the end of the output, which they hold.
    tasks.shutdown().await;
    forwarded
}

struct BridgeState {
    clients: HttpClients,
    url: Url,
    output: mpsc::Sender<Vec<u8>>,
    max_message_bytes: usize,
    /// Session and revision after a handshake.
    session: Mutex<Option<(String, String)>>,
    /// Running requests by their identifiers as JSON.
    running: Mutex<HashMap<String, AbortHandle>>,
    /// Receives the first error of a request.
    failed: mpsc::Sender<BridgeError>,
}

impl BridgeState {
    /// Forwards one message. Requests run in parallel, except the handshake.
    async fn accept(self: Arc<Self>, line: Vec<u8>, tasks: &mut JoinSet<()>) -> Result<(), BridgeError> {
        match Frame::parse(&line) {
            Ok(Frame::Request { id, method, .. }) if method == "initialize" => {
                let sent = self.exchange(line, Some(id)).await;
                if let Some((session, _)) = self.session()
                    && sent.is_ok()
                {
                    let bridge = self.clone();
                    tasks.spawn(async move { bridge.listen(&session).await });
                }
                sent
            }
            Ok(Frame::Request { id, .. }) => {
                let (bridge, key) = (self.clone(), id.to_string());
                let task = tasks.spawn(async move {
                    let sent = bridge.exchange(line, Some(id.clone())).await;
                    bridge.forget(&id.to_string());
                    if let Err(error) = sent {
                        // The first error ends the bridge.
                        let _ = bridge.failed.try_send(error);
                    }
                });
                self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(key, task);
                Ok(())
            }
            Ok(Frame::Notification { method, params }) if method == "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                match self.session() {
                    // Without a session, a closed connection cancels the request.
                    None => self.forget(&id).map_or(Ok(()), |task| {
                        task.abort();
                        Ok(())
                    }),
                    Some(_) => self.exchange(line, None).await,
                }
            }
            // The server answers invalid messages with an error.
            Ok(_) | Err(_) => self.exchange(line, None).await,
        }
    }

    fn session(&self) -> Option<(String, String)> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn forget(&self, id: &str) -> Option<AbortHandle> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    fn with_headers(&self, request: OutgoingRequest) -> OutgoingRequest {
        let request =
            request.header(BRIDGE_HEADER, "1").header("accept", "application/json, text/event-stream");
        match self.session() {
            None => request,
            Some((id, revision)) => {
                request.header("mcp-session-id", id).header("mcp-protocol-version", revision)
            }
        }
    }

    /// Sends a message, and forwards everything that the server answers.
    async fn exchange(&self, line: Vec<u8>, id: Option<Value>) -> Result<(), BridgeError> {
        let request = self.clients.request(Method::POST, &self.url)?;
        let request = request.header(header::CONTENT_TYPE, "application/json").body(line);
        let response = self.with_headers(request).send().await.map_err(|_| BridgeError::ConnectionLost)?;
        let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok());
        let session = session.map(str::to_string);
        let status = response.status();
        match response_type(&response) {
            ResponseType::Events => self.forward_events(response).await,
            ResponseType::Json => {
                let body = self.read_body(response).await?;
                if let Some(session) = session {
                    self.remember_session(session, &body);
                }
                self.write(&body).await;
                Ok(())
            }
            ResponseType::Other if response.headers().contains_key(UNKNOWN_SERVER_HEADER) => {
                let problem = String::from_utf8_lossy(&self.read_body(response).await?).into_owned();
                if let Some(id) = id {
                    let outcome = Err(RpcError::new(error_code::INVALID_REQUEST, &problem));
                    self.write(Frame::Response { id, outcome }.to_json().to_string().as_bytes()).await;
                }
                Err(BridgeError::UnknownServer(problem))
            }
            // HTTP statuses do not exist on standard output; the client gets an error.
            ResponseType::Other if !status.is_success() && id.is_some() => {
                let error = RpcError::new(error_code::LIMIT_REACHED, format!("HTTP status {status}"));
                let frame = Frame::Response { id: id.unwrap_or_default(), outcome: Err(error) };
                self.write(frame.to_json().to_string().as_bytes()).await;
                Ok(())
            }
            ResponseType::Other => Ok(()),
        }
    }

    fn remember_session(&self, session: String, body: &[u8]) {
        if let Ok(Frame::Response { outcome: Ok(result), .. }) = Frame::parse(body) {
            let default = ProtocolRevision::NEWEST_WITH_HANDSHAKE.name();
            let revision = result.get("protocolVersion").and_then(Value::as_str).unwrap_or(default);
            let known = Some((session, revision.to_string()));
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = known;
        }
    }

    async fn read_body(&self, mut response: IncomingResponse) -> Result<Vec<u8>, BridgeError> {
        let mut body = Vec::new();
        while let Some(piece) = next_piece(&mut response).await? {
            body.extend_from_slice(&piece);
            if body.len() > self.max_message_bytes {
                return Err(BridgeError::OversizedMessage(self.max_message_bytes));
            }
        }
        Ok(body)
    }

    async fn forward_events(&self, mut response: IncomingResponse) -> Result<(), BridgeError> {
        let mut scanner = EventScanner::new(self.max_message_bytes);
        loop {
            let piece = next_piece(&mut response).await?;
            for data in scanner.push(piece.as_deref())? {
                self.write(&data).await;
            }
            if piece.is_none() {
                return Ok(());
            }
        }
    }

    /// Writes a message as one line.
    async fn write(&self, message: &[u8]) {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let line = message.iter().map(|byte| if is_end(byte) { b' ' } else { *byte }).collect();
        // A closed output ends the bridge with its input.
        let _ = self.output.send(line).await;
    }

    /// Forwards the messages that the server sends on its own, until the session ends.
    async fn listen(&self, session: &str) {
        let Ok(request) = self.clients.request(Method::GET, &self.url) else { return };
        let request = request.header("mcp-session-id", session).header(BRIDGE_HEADER, "1");
        if let Ok(response) = request.header("accept", "text/event-stream").send().await
            && matches!(response_type(&response), ResponseType::Events)
        {
            // The end of this stream is no error of a request.
            let _ = self.forward_events(response).await;
        }
    }

    /// Waits for running requests for a short time, and ends the session.
    async fn end(&self, tasks: &mut JoinSet<()>) -> Result<(), BridgeError> {
        let requests_end = async {
            while !self.running.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
                && tasks.join_next().await.is_some()
            {}
        };
        let _ = tokio::time::timeout(END_GRACE, requests_end).await;
        tasks.abort_all();
        if let Some((session, _)) = self.session() {
            let request = self.clients.request(Method::DELETE, &self.url)?.header("mcp-session-id", session);
            // The conversation may be closed already.
            let _ = tokio::time::timeout(END_GRACE, request.send()).await;
        }
        Ok(())
    }
}

/// Returns the next bytes of a response.
async fn next_piece(response: &mut IncomingResponse) -> Result<Option<Bytes>, BridgeError> {
    response.next_bytes().await.map_err(|_| BridgeError::ConnectionLost)
}

/// Form of a response.
enum ResponseType {
    Json,
    Events,
    Other,
}

fn response_type(response: &IncomingResponse) -> ResponseType {
    match response.headers() {
        headers if has_media_type(headers, "application/json") => ResponseType::Json,
        headers if is_event_stream(headers) => ResponseType::Events,
        _ => ResponseType::Other,
    }
}

/// Returns a channel for lines of a bridge.
pub fn bridge_lines() -> (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>) {
    mpsc::channel(MAX_WAITING_LINES)
}
