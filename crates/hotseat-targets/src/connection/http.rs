//! HTTP requests with streamed responses.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hotseat_document::excerpt;
use hotseat_http::{ClientError, HttpRequestError, OutgoingRequest, root_cause};
use hotseat_trace::{AttemptFailure, FailureKind};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use http::{Method, StatusCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

pub use crate::connection::arrivals::ReadError;
pub use crate::connection::arrivals::ReaderError;
use crate::connection::arrivals::{ArrivalReceiver, ReaderThread, arrival_channel};
use crate::connection::shared_connections::{OwnConnections, SharedConnections};
use crate::connection::{TurnError, TurnLimits, refused_completion_advice};

/// Maximum number of bytes read from the body of an error.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
/// Maximum number of characters of it shown.
const MAX_SHOWN_CHARS: usize = 2000;
/// Maximum number of bytes kept of the beginning of a stream.
const MAX_BEGINNING_BYTES: usize = 4096;
/// Maximum waiting time for the body of an error.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum waiting time for any answer of a server that may not be ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends requests to agents. All connections belong to the reader thread, which timestamps received data.
#[derive(Debug, Default)]
pub struct HttpClient {
    reader: Arc<ReaderThread>,
    connections: Arc<SharedConnections>,
    /// Connections of a conversation.
    own: Option<OwnConnections>,
}

impl HttpClient {
    /// Returns a client for one conversation, on the same thread.
    pub fn for_conversation(&self) -> HttpClient {
        let (reader, connections) = (self.reader.clone(), self.connections.clone());
        HttpClient { reader, own: Some(OwnConnections::new(connections.clone())), connections }
    }

    pub(crate) fn reader(&self) -> &ReaderThread {
        &self.reader
    }

    /// Sends a request and waits for the response head. Redirects are not followed and requests are never
    /// repeated. Fails if the agent cannot be reached, a limit passes, or the response status is an error.
    pub async fn send(
        &self,
        outgoing: HttpRequest<'_>,
        limits: TurnLimits<'_>,
    ) -> Result<HttpResponse, TurnError> {
        let (url, peer) = (outgoing.url, outgoing.peer);
        let response = self.exchange(outgoing, limits).await.map_err(TurnError::from)?;
        // Nobody asked for a part.
        if response.status().is_success() && response.status() != StatusCode::PARTIAL_CONTENT {
            return Ok(response);
        }
        Err(error_response(url, peer, response, limits).await.into())
    }

    /// Like [`HttpClient::send`], but accepts any status. Fails if the server cannot be reached or a limit
    /// passes.
    pub async fn exchange(
        &self,
        outgoing: HttpRequest<'_>,
        limits: TurnLimits<'_>,
    ) -> Result<HttpResponse, ExchangeError> {
        let HttpRequest { method, url, headers, body, peer: _ } = outgoing;
        let own = self.own.as_ref();
        let clients = own.map_or_else(|| self.connections.clients().clone(), |own| own.clients_for(url));
        let request = clients.request(method, url)?.headers(headers).body(body.unwrap_or_default());
        let until = limits.deadline.min(Instant::now() + limits.idle);
        let head = self.start_request(request)?;
        let answered = timeout_at(until, head).await;
        match (own, &answered) {
            (Some(own), Ok(Ok(Ok(response)))) if response.reuses_connection => own.record_kept(url),
            (Some(own), Ok(Ok(Err(source)))) if source.is_closed_after_response() => own.record_closed(url),
            _ => {}
        }
        match answered {
            Ok(Ok(Ok(response))) if response.last_arrival() <= until => Ok(response),
            Ok(Ok(Err(source))) => Err(ExchangeError::from_request(url, source)),
            Ok(Err(_)) => Err(ExchangeError::ReaderEnded { url: without_credentials(url) }),
            Ok(Ok(Ok(_))) | Err(_) if limits.deadline <= Instant::now() => Err(ExchangeError::Deadline),
            Ok(Ok(Ok(_))) | Err(_) => Err(ExchangeError::Idle(limits.idle)),
        }
    }

    /// Sends a request on the reader thread, which forwards the response. Dropping the receiver cancels it.
    fn start_request(
        &self,
        request: OutgoingRequest,
    ) -> Result<oneshot::Receiver<ResponseResult>, ReaderError> {
        let (mut told, head) = oneshot::channel();
        let sent = request.send();
        // A task is copied several times; the future is large.
        self.reader.handle()?.spawn(Box::pin(async move {
            let answered = tokio::select! {
                answered = sent => answered,
                () = told.closed() => return,
            };
            let mut answered = match answered {
                Ok(answered) => answered,
                Err(error) => return drop(told.send(Err(error))),
            };
            let (arriving, body) = arrival_channel(Instant::now());
            let (status, reuses_connection) = (answered.status(), answered.reuses_connection());
            let headers = std::mem::take(answered.headers_mut());
            let deliver =
                |body| told.send(Ok(HttpResponse { status, headers, reuses_connection, body })).is_ok();
            arriving.forward_with(answered, body, deliver).await;
        }));
        Ok(head)
    }

    /// Asks a server that may not be ready. Fails unless it responds, with any status.
    pub async fn probe(&self, url: &Url) -> Result<(), ExchangeError> {
        let head = self.start_request(self.connections.clients().request(Method::GET, url)?)?;
        match timeout(PROBE_TIMEOUT, head).await {
            Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err(source))) => Err(ExchangeError::from_request(url, source)),
            Ok(Err(_)) => Err(ExchangeError::ReaderEnded { url: without_credentials(url) }),
            Err(_) => Err(ExchangeError::Slow { url: without_credentials(url) }),
        }
    }
}

/// Error of a request that got no response.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum ExchangeError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Reader(#[from] ReaderError),
    #[error("cannot reach {url}: {}", root_cause(source))]
    Unreachable { url: String, source: HttpRequestError },
    #[error("{url} accepted the connection but did not answer: {}", root_cause(source))]
    NoAnswer { url: String, source: HttpRequestError },
    #[error("{url} sent an answer that cannot be read as HTTP: {}", root_cause(source))]
    InvalidAnswer { url: String, source: HttpRequestError },
    #[error(
        "{url} closed a connection after an earlier answer and did not answer this request: {}; a server that closes its connections must send `Connection: close`",
        root_cause(source)
    )]
    Closed { url: String, source: HttpRequestError },
    #[error("{url}: the reader thread has ended")]
    ReaderEnded { url: String },
    #[error("{url} did not answer within {} s", PROBE_TIMEOUT.as_secs())]
    Slow { url: String },
    #[error("{}", idle_timeout(*.0).message)]
    Idle(Duration),
    #[error("the deadline has passed")]
    Deadline,
}

impl ExchangeError {
    fn from_request(url: &Url, source: HttpRequestError) -> ExchangeError {
        let url = without_credentials(url);
        match source {
            source if source.is_unsent() => ExchangeError::Unreachable { url, source },
            source if source.is_closed_after_response() => ExchangeError::Closed { url, source },
            source if source.is_invalid_response() => ExchangeError::InvalidAnswer { url, source },
            source => ExchangeError::NoAnswer { url, source },
        }
    }
}

impl From<ExchangeError> for TurnError {
    fn from(error: ExchangeError) -> TurnError {
        let kind = match error {
            ExchangeError::Deadline => return TurnError::Deadline,
            ExchangeError::Idle(_) | ExchangeError::Slow { .. } => FailureKind::Timeout,
            ExchangeError::NoAnswer { .. }
            | ExchangeError::InvalidAnswer { .. }
            | ExchangeError::Closed { .. } => FailureKind::ProtocolError,
            ExchangeError::Client(_)
            | ExchangeError::Reader(_)
            | ExchangeError::Unreachable { .. }
            | ExchangeError::ReaderEnded { .. } => FailureKind::Unreachable,
        };
        AttemptFailure::new(kind, error.to_string()).into()
    }
}

/// Response head with the body that follows, or the error.
type ResponseResult = Result<HttpResponse, HttpRequestError>;

/// A response whose body is still arriving.
#[derive(Debug)]
pub struct HttpResponse {
    status: StatusCode,
    headers: HeaderMap,
    /// True if its connection carried another response before.
    reuses_connection: bool,
    body: ArrivalReceiver,
}

impl HttpResponse {
    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the arrival time of the last data taken, including the head.
    pub fn last_arrival(&self) -> Instant {
        self.body.last_arrival()
    }
}

/// A request to an agent.
#[derive(Debug)]
pub struct HttpRequest<'a> {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: &'a Url,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, if it has one.
    pub body: Option<Vec<u8>>,
    /// Who answers it.
    pub peer: HttpPeer,
}

/// Who answers a request, for error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpPeer {
    /// An agent at its `endpoint`.
    Agent,
    /// An agent that is asked for chat completions at its `base_url`.
    ChatCompletions,
    /// A tool of the client.
    Tool,
    /// A process of the project.
    Process,
    /// The server that a script asks.
    ScriptRequest,
}

impl HttpPeer {
    /// Returns the name of the setting that holds the URL.
    fn address_key(self) -> &'static str {
        match self {
            HttpPeer::Agent => "`endpoint` of the agent",
            HttpPeer::ChatCompletions => "`base_url` of the agent",
            HttpPeer::Tool => "`url` of the tool",
            HttpPeer::Process => "`url` of the process",
            HttpPeer::ScriptRequest => "the address",
        }
    }
}

/// Reads the rest of a response, but stops after `max_bytes` bytes. Fails if the connection breaks or a limit
/// passes.
pub async fn rest_of_body(
    response: &mut HttpResponse,
    max_bytes: usize,
    limits: TurnLimits<'_>,
) -> Result<Vec<u8>, ReadError> {
    let mut body = Vec::new();
    while body.len() <= max_bytes
        && let Some(bytes) = next_bytes(response, limits).await?
    {
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// Returns the next bytes of a response; `None` at its regular end. Fails if the connection breaks or a limit
/// passes.
pub async fn next_bytes(
    response: &mut HttpResponse,
    limits: TurnLimits<'_>,
) -> Result<Option<Bytes>, ReadError> {
    if let Some(failure) = limits.exceeded_limit() {
        return Err(ReadError::Limit(failure));
    }
    let bytes = response.body.next_bytes(limits).await?;
    limits.count_received(bytes.as_ref().map_or(0, Bytes::len));
    Ok(bytes)
}

/// Returns the failure of an agent that exceeds the idle limit.
pub fn idle_timeout(idle: Duration) -> AttemptFailure {
    let message = format!("the agent sent nothing for {} ms (target.idle_timeout_ms)", idle.as_millis());
    AttemptFailure::new(FailureKind::Timeout, message)
}

/// Returns pretty-printed JSON, or the text itself, truncated for error messages.
pub fn display_body(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(json) => serde_json::to_string_pretty(&json).unwrap_or_default(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    excerpt(&text, MAX_SHOWN_CHARS).into_owned()
}

/// Beginning of the body of a stream, shown if the stream has no event.
#[derive(Debug, Default)]
pub struct StreamBeginning(Vec<u8>);

impl StreamBeginning {
    /// Adds received bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = MAX_BEGINNING_BYTES.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Returns the failure of a stream that `problem` describes. `advice` tells what to do if the body is JSON.
    pub fn failure(&self, response: &HttpResponse, problem: &str, advice: &str) -> AttemptFailure {
        let media_type = bare_header(response, "content-type");
        let named = if media_type.is_empty() { "no content type".to_string() } else { media_type };
        let mut message = format!("{problem}: HTTP {} with {named}", response.status());
        match self.0.trim_ascii().first() {
            None => message.push_str(" and an empty body"),
            Some(b'{' | b'[') => {
                let _ = write!(message, "; the body is JSON, not server-sent events: {advice}");
            }
            Some(_) => message.push_str("; no line of the body begins with `data:`"),
        }
        AttemptFailure::new(FailureKind::ProtocolError, message).with_detail(display_body(&self.0))
    }
}

/// Returns the header `name` without parameters; empty if absent.
pub fn bare_header(response: &HttpResponse, name: &str) -> String {
    let value = response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_string()
}

/// Returns the headers of requests for an event stream. User headers replace defaults, except `Content-Type`
/// and `Accept`.
pub fn event_stream_headers(user: &HeaderMap) -> HeaderMap {
    let mut headers = user.clone();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, http::HeaderValue::from_static("text/event-stream"));
    headers
}

async fn error_response(
    url: &Url,
    peer: HttpPeer,
    mut response: HttpResponse,
    limits: TurnLimits<'_>,
) -> AttemptFailure {
    let status = response.status();
    let location =
        response.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_string);
    let mut body = Vec::new();
    // The head is sufficient; the body is read only if it arrives soon.
    let limits = limits.until(Instant::now() + ERROR_BODY_TIMEOUT);
    while body.len() < MAX_ERROR_BODY_BYTES
        && let Ok(Some(bytes)) = next_bytes(&mut response, limits).await
    {
        body.extend_from_slice(&bytes);
    }
    let mut message = format!("{} answered HTTP {status}", without_credentials(url));
    match (status, location) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
            message.push_str("; check `headers` of the agent")
        }
        (StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, _) => {
            let _ = write!(message, "; check {}", peer.address_key());
        }
        (_, Some(location)) if status.is_redirection() => {
            let location = url.join(&location).map_or(location, |location| without_credentials(&location));
            let key = peer.address_key();
            let _ = write!(message, "; redirects are not followed, set {key} to {location}");
        }
        (StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY, _)
            if peer == HttpPeer::ChatCompletions =>
        {
            if let Some(advice) = refused_completion_advice(&String::from_utf8_lossy(&body)) {
                let _ = write!(message, "; {advice}");
            }
        }
        _ => {}
    }
    AttemptFailure::new(FailureKind::AgentError, message).with_detail(display_body(&body))
}

/// Returns a URL for display, without its password.
pub fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        let _ = url.set_password(Some("redacted"));
    }
    url.to_string()
}
