//! The lists of a real server, as a recording from which mocks take their tools.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use hotseat_http::{
    ClientError, EventError, HttpClients, HttpRequestError, IncomingResponse, UnsupportedEncoding,
    check_encoding,
};
use serde_json::{Value, json};
use url::Url;

use crate::definition::{McpOptions, ServerDefinition, ServerKind, Upstream};
use crate::definition_file::FixedAnswerer;
use crate::frame::{Frame, RpcError};
use crate::recording::McpRecording;
use crate::revision::ProtocolRevision;
use crate::server::{McpConversation, McpError, McpServers};
use crate::sse::{EventScanner, is_event_stream};

/// Maximum number of pages of one list.
const MAX_PAGES: usize = 1000;
/// Maximum time for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Lists of a server, with the capability that announces them and the member of the answer.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools", "tools/list", "tools"),
    ("resources", "resources/list", "resources"),
    ("resources", "resources/templates/list", "resourceTemplates"),
    ("prompts", "prompts/list", "prompts"),
];

/// A server whose lists cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum ListingError {
    #[error(transparent)]
    Proxy(#[from] McpError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Interrupted(#[source] HttpRequestError),
    #[error("the server cannot be reached: {0}")]
    Unreachable(#[source] HttpRequestError),
    #[error("the server did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Timeout,
    #[error("the server did not answer `{0}`")]
    NoAnswer(String),
    #[error("the answer to `{0}` {1}")]
    Encoded(String, #[source] UnsupportedEncoding),
    #[error("the answer to `{0}` {1}")]
    Undecodable(String, #[source] EventError),
    #[error("`{method}`: {source}")]
    Refused { method: String, source: Box<RpcError> },
    #[error("the server answered `{method}` with HTTP status {status} and no JSON-RPC response")]
    NoResponse { method: String, status: StatusCode },
    #[error("the answer to `{method}` has no list `{member}`")]
    NoList { method: &'static str, member: &'static str },
    #[error("`{0}` has more than {MAX_PAGES} pages")]
    TooManyPages(&'static str),
    #[error("{0}")]
    Failed(String),
    #[error("nothing was recorded")]
    Nothing,
}

/// Asks a server for its lists, page by page, and returns the exchanges. Fails if the server cannot be
/// reached, or refuses the handshake or a list that it announces.
pub async fn list_contents(upstream: Upstream) -> Result<McpRecording, ListingError> {
    let definition = ServerDefinition::new("server", ServerKind::Proxy(upstream));
    let options = McpOptions { record: true, ..McpOptions::default() };
    let servers = McpServers::start(vec![definition], options)?;
    let mut conversation =
        servers.open_conversation("record", Arc::new(FixedAnswerer::default()), Vec::new())?;
    let url =
        conversation.url("server").and_then(|url| Url::parse(&url).ok()).ok_or(ListingError::Nothing)?;
    let client = ListingClient { clients: HttpClients::default(), url, session: None };
    if let Err(error) = client.list().await {
        return Err(server_failure(&mut conversation).map_or(error, ListingError::Failed));
    }
    conversation.recording("server").ok_or(ListingError::Nothing)
}

/// Describes the failure of the server, if it has failed.
fn server_failure(conversation: &mut McpConversation) -> Option<String> {
    while let Some(event) = conversation.try_next_event() {
        if let Some(failure) = event.kind.server_failure() {
            return Some(failure);
        }
    }
    None
}

/// A client with a session.
struct ListingClient {
    clients: HttpClients,
    url: Url,
    session: Option<String>,
}

impl ListingClient {
    /// Requests all pages of all lists.
    async fn list(mut self) -> Result<(), ListingError> {
        let params = json!({
            "protocolVersion": ProtocolRevision::NEWEST_WITH_HANDSHAKE.name(),
            "capabilities": {},
            "clientInfo": {"name": "hotseat", "version": env!("CARGO_PKG_VERSION")},
        });
        let announced = self.request("initialize", params).await?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        for (capability, method, member) in LISTS {
            if announced["capabilities"].get(capability).is_some() {
                self.request_pages(method, member).await?;
            }
        }
        Ok(())
    }

    /// Requests all pages of a list.
    async fn request_pages(
        &mut self,
        method: &'static str,
        member: &'static str,
    ) -> Result<(), ListingError> {
        let mut cursor = Value::Null;
        for _ in 0..MAX_PAGES {
            let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            let page = self.request(method, params).await?;
            if !page[member].is_array() {
                return Err(ListingError::NoList { method, member });
            }
            cursor = page.get("nextCursor").cloned().unwrap_or_default();
            if cursor.is_null() {
                return Ok(());
            }
        }
        Err(ListingError::TooManyPages(method))
    }

    async fn send(&self, message: &Value) -> Result<IncomingResponse, ListingError> {
        let mut request = self
            .clients
            .request(Method::POST, &self.url)?
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let sent = tokio::time::timeout(ANSWER_TIMEOUT, request.body(message.to_string()).send()).await;
        match sent {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(ListingError::Unreachable(error)),
            Err(_) => Err(ListingError::Timeout),
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<Value, ListingError> {
        let message = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        let response = self.send(&message).await?;
        if let Some(session) = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()) {
            self.session = Some(session.to_string());
        }
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, read_answer(response, method)).await;
        answered.map_err(|_| ListingError::NoAnswer(method.to_string()))?
    }
}

async fn read_answer(mut response: IncomingResponse, method: &str) -> Result<Value, ListingError> {
    check_encoding(response.headers()).map_err(|error| ListingError::Encoded(method.to_string(), error))?;
    let refused = |error| ListingError::Refused { method: method.to_string(), source: Box::new(error) };
    let status = response.status();
    let is_stream = is_event_stream(response.headers());
    let mut scanner = EventScanner::new(MAX_ANSWER_BYTES);
    let mut body = Vec::new();
    loop {
        let piece = response.next_bytes().await.map_err(ListingError::Interrupted)?;
        let events = if is_stream { scanner.push(piece.as_deref()) } else { Ok(Vec::new()) };
        let undecodable = |error| ListingError::Undecodable(method.to_string(), error);
        for data in events.map_err(undecodable)? {
            if let Ok(Frame::Response { outcome, .. }) = Frame::parse(&data) {
                return outcome.map_err(refused);
            }
        }
        let Some(piece) = piece else { break };
        if !is_stream {
            body.extend_from_slice(&piece);
        }
        if body.len() > MAX_ANSWER_BYTES {
            return Err(undecodable(EventError::TooLong(MAX_ANSWER_BYTES)));
        }
    }
    match Frame::parse(&body) {
        Ok(Frame::Response { outcome, .. }) => outcome.map_err(refused),
        _ => Err(ListingError::NoResponse { method: method.to_string(), status }),
    }
}
