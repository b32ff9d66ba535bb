//! HTTP requests whose answer is read as it arrives.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use hotseat_trace::{Failure, FailureKind};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, StatusCode, Url};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

pub use super::arrivals::ReadError;
use super::arrivals::{Arrivals, ReadingThread, arrivals};
use super::{Limits, TurnError};

/// How much of the body of an error is read.
const ERROR_BODY: usize = 64 * 1024;
/// How much of it is shown.
const ERROR_SHOWN: usize = 2000;
/// How long is waited for it.
const ERROR_WAIT: Duration = Duration::from_secs(1);

/// Clients for plain and for encrypted connections, each made when it is first needed: reading the
/// machine's certificates takes longer than a whole conversation with a local agent.
///
/// Their connections belong to the thread that reads: what comes is stamped there.
#[derive(Debug, Default)]
pub struct Http {
    reading: ReadingThread,
    plain: OnceLock<Result<reqwest::Client, String>>,
    direct: OnceLock<Result<reqwest::Client, String>>,
    encrypted: OnceLock<Result<reqwest::Client, String>>,
}

impl Http {
    /// The thread that reads.
    pub(super) fn reading(&self) -> &ReadingThread {
        &self.reading
    }

    /// The client for an address.
    fn client(&self, url: &Url) -> Result<&reqwest::Client, Failure> {
        let loopback = match url.host() {
            Some(host) => match host.to_string().trim_matches(['[', ']']) {
                "localhost" => true,
                host => host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()),
            },
            None => false,
        };
        let client = match (url.scheme(), loopback) {
            ("https", _) => self.encrypted.get_or_init(|| build(true, false)),
            (_, true) => self.direct.get_or_init(|| build(false, true)),
            (_, false) => self.plain.get_or_init(|| build(false, false)),
        };
        client.as_ref().map_err(|error| Failure::new(FailureKind::Unreachable, error.clone()))
    }

    /// Sends a request and waits for the head of the answer. Redirects are not followed and nothing is sent twice.
    ///
    /// # Errors
    /// When the agent cannot be reached, does not answer before the limits, or answers with an error.
    pub async fn send(&self, outgoing: Outgoing<'_>, limits: Limits<'_>) -> Result<Response, TurnError> {
        let (url, address_key) = (outgoing.url, outgoing.address_key);
        let response = self.exchange(outgoing, limits).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refused(url, address_key, response, limits).await.into())
    }

    /// The same, whatever the answer says.
    ///
    /// # Errors
    /// When nobody can be reached, or answers before the limits.
    pub async fn exchange(&self, outgoing: Outgoing<'_>, limits: Limits<'_>) -> Result<Response, TurnError> {
        let Outgoing { method, url, headers, body, address_key: _ } = outgoing;
        let request = self.client(url)?.request(method, url.clone()).headers(headers);
        let request = match body {
            Some(body) => request.body(body),
            None => request,
        };
        let until = limits.deadline.min(Instant::now() + limits.idle);
        let head = self.begin(request)?;
        match timeout_at(until, head).await {
            Ok(Ok(Ok(response))) if response.at() <= until => Ok(response),
            Ok(Ok(Err(error))) => Err(unreachable(url, &error).into()),
            Ok(Err(_)) => {
                let message = format!("{}: the thread that reads has ended", without_credentials(url));
                Err(Failure::new(FailureKind::Unreachable, message).into())
            }
            Ok(Ok(Ok(_))) | Err(_) if limits.deadline <= Instant::now() => Err(TurnError::Deadline),
            Ok(Ok(Ok(_))) | Err(_) => Err(silent(limits.idle).into()),
        }
    }

    /// Has the thread that reads send a request and pass on what comes back. Nobody who waits any more ends it.
    fn begin(&self, request: reqwest::RequestBuilder) -> Result<oneshot::Receiver<Head>, Failure> {
        let (mut told, head) = oneshot::channel();
        self.reading.handle()?.spawn(async move {
            let answered = tokio::select! {
                answered = request.send() => answered,
                () = told.closed() => return,
            };
            let mut answered = match answered {
                Ok(answered) => answered,
                Err(error) => return drop(told.send(Err(error))),
            };
            let (arriving, body) = arrivals(Instant::now());
            let (status, url) = (answered.status(), answered.url().clone());
            let headers = std::mem::take(answered.headers_mut());
            if told.send(Ok(Response { status, url, headers, body })).is_ok() {
                arriving.all_of(answered).await;
            }
        });
        Ok(head)
    }

    /// Whether anything answers at an address, with whatever status.
    pub async fn answers(&self, url: &Url) -> bool {
        let Ok(client) = self.client(url) else { return false };
        let head = self.begin(client.get(url.clone()).timeout(Duration::from_secs(2)));
        match head {
            Ok(head) => matches!(head.await, Ok(Ok(_))),
            Err(_) => false,
        }
    }
}

/// The head of an answer, with the body that follows it; or why there is none.
type Head = Result<Response, reqwest::Error>;

/// An answer, of which the body still comes.
#[derive(Debug)]
pub struct Response {
    status: StatusCode,
    url: Url,
    headers: HeaderMap,
    body: Arrivals,
}

impl Response {
    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Who gives it.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Its headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// When what was taken of it last arrived; the head counts, too.
    pub fn at(&self) -> Instant {
        self.body.at()
    }
}

/// What is sent to an agent.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The method.
    pub method: Method,
    /// Where it is sent.
    pub url: &'a Url,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, if it has one.
    pub body: Option<Vec<u8>>,
    /// Which setting of the target holds the address, for messages.
    pub address_key: &'static str,
}

/// The whole rest of an answer, at most `longest` bytes of it; what is more is not read.
///
/// # Errors
/// When the connection breaks or the limits pass.
pub async fn rest_of_body(
    response: &mut Response,
    longest: usize,
    limits: Limits<'_>,
) -> Result<Vec<u8>, ReadError> {
    let mut body = Vec::new();
    while body.len() <= longest
        && let Some(bytes) = next_bytes(response, limits).await?
    {
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// The next bytes of an answer; `None` when it has ended in order.
///
/// # Errors
/// When the connection breaks or the limits pass.
pub async fn next_bytes(response: &mut Response, limits: Limits<'_>) -> Result<Option<Bytes>, ReadError> {
    if let Some(failure) = limits.over() {
        return Err(ReadError::Limit(failure));
    }
    let bytes = response.body.next(limits).await?;
    limits.receive(bytes.as_ref().map_or(0, Bytes::len));
    Ok(bytes)
}

/// The failure of an agent that sends nothing for too long.
pub fn silent(idle: Duration) -> Failure {
    let message = format!("the agent sent nothing for {} ms (target.idle_timeout_ms)", idle.as_millis());
    Failure::new(FailureKind::Timeout, message)
}

/// A JSON text of several lines, or the text as it is, cut where it gets long.
pub fn shown_body(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(json) => serde_json::to_string_pretty(&json).unwrap_or_default(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    match text.char_indices().nth(ERROR_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn build(encrypted: bool, direct: bool) -> Result<reqwest::Client, String> {
    // The first client decides the process's provider; a program that installed its own keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("hotseat/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        // Shorter than the keep-alive of common servers, so that no request meets a connection that is just closing.
        .pool_idle_timeout(Duration::from_secs(2))
        .pool_max_idle_per_host(usize::MAX)
        .connect_timeout(Duration::from_secs(10));
    let builder = if encrypted { builder } else { builder.tls_certs_only([]) };
    // A proxy of the environment is for the outside, never for an agent on this machine.
    let builder = if direct { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| format!("no HTTP client could be made: {}", causes(&error)))
}

/// The header `name` of an answer, without parameters and in lower case; empty where there is none.
pub fn bare_header(response: &Response, name: &str) -> String {
    let value = response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Headers of every request for a stream of events. What a user sets replaces them, whatever the case of the name,
/// except for the two that say which protocol is spoken.
pub fn event_stream_headers(user: &HeaderMap) -> HeaderMap {
    let mut headers = user.clone();
    headers.insert(CONTENT_TYPE, reqwest::header::HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, reqwest::header::HeaderValue::from_static("text/event-stream"));
    headers
}

fn unreachable(url: &Url, error: &reqwest::Error) -> Failure {
    if error.is_connect() {
        let message = format!("cannot reach {}: {}", without_credentials(url), causes(error));
        return Failure::new(FailureKind::Unreachable, message);
    }
    let message =
        format!("{} accepted the connection and gave no answer: {}", without_credentials(url), causes(error));
    Failure::new(FailureKind::ProtocolError, message)
}

async fn refused(url: &Url, address_key: &str, mut response: Response, limits: Limits<'_>) -> Failure {
    let status = response.status();
    let location =
        response.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_string);
    let mut body = Vec::new();
    // The head says what matters; a body that does not come is not waited for.
    let limits = Limits { deadline: limits.deadline.min(Instant::now() + ERROR_WAIT), ..limits };
    while body.len() < ERROR_BODY
        && let Ok(Some(bytes)) = next_bytes(&mut response, limits).await
    {
        body.extend_from_slice(&bytes);
    }
    let mut message = format!("{} answered HTTP {status}", without_credentials(url));
    match (status, location) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => message.push_str("; check target.headers"),
        (StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED, _) => {
            let _ = write!(message, "; check {address_key}");
        }
        (_, Some(location)) if status.is_redirection() => {
            let _ = write!(message, "; redirects are not followed, set {address_key} to {location}");
        }
        _ => {}
    }
    Failure::new(FailureKind::AgentError, message).with_detail(shown_body(&body))
}

/// An address as it may be shown: without the password that it may carry.
pub fn without_credentials(url: &Url) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        let _ = url.set_password(Some("redacted"));
    }
    url.to_string()
}

/// The causes of an error, from the outside in, each said once.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push(error.to_string());
        cause = error.source();
    }
    // The outermost layers only repeat that a request failed; the innermost says why.
    words.pop().unwrap_or_else(|| error.to_string())
}
