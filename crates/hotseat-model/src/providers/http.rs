//! Requests whose answer is read as it arrives, within time limits.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::connector::{Connector, Secret, TimeLimits};
use super::failure;
use super::retry_after::retry_after;
use crate::{ErrorKind, ModelError};

/// The longest answer that is taken in, in bytes. A stream without end must not fill the memory.
const LONGEST: usize = 64 * 1024 * 1024;
/// How much of the body of an error is read, in bytes.
const ERROR_BODY: usize = 64 * 1024;
/// What is shorter is no secret worth hiding, and replacing it would garble a message.
const SHORTEST_SECRET: usize = 6;

/// The way to one provider.
pub(super) struct Connection {
    url: Url,
    headers: HeaderMap,
    limits: TimeLimits,
    secrets: Vec<Secret>,
    /// Made for the first call: reading the machine's certificates takes longer than a call to a local model.
    client: OnceLock<Result<Client, String>>,
}

impl Connection {
    /// `route` is added to the base URL, except for what the base ends with already.
    pub(super) fn new(
        connector: &Connector,
        default_base: &str,
        route: &[&str],
        headers: Vec<(String, Secret)>,
    ) -> Result<Self, ModelError> {
        let base = connector.base_url.as_deref().unwrap_or(default_base);
        // The address is not repeated: it may hold a password.
        let wrong = |what: &str| {
            ModelError::new(ErrorKind::Configuration, format!("the connector's base URL {what}"))
        };
        let mut url = Url::parse(base).map_err(|error| wrong(&format!("is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is not one of HTTP"));
        }
        let path: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let there = (0..=route.len()).rev().find(|count| path.ends_with(&route[..*count])).unwrap_or(0);
        let rest = &route[there..];
        url.path_segments_mut().map_err(|()| wrong("cannot have a path"))?.pop_if_empty().extend(rest);

        let mut map = HeaderMap::new();
        for (name, value) in headers.iter().chain(&connector.headers) {
            let unfit =
                |what: &str| ModelError::new(ErrorKind::Configuration, format!("the header {name:?} {what}"));
            let name = HeaderName::try_from(name).map_err(|_| unfit("has a name that cannot be sent"))?;
            let mut value = HeaderValue::try_from(value.reveal())
                .map_err(|_| unfit("has a value that cannot be sent"))?;
            value.set_sensitive(true);
            // Those of the connector come last and replace the others.
            map.insert(name, value);
        }
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut limits = connector.limits;
        if !connector.stream {
            limits.first_byte = limits.total;
        }
        let secrets = connector.key.iter().chain(connector.headers.iter().map(|(_, value)| value)).cloned();
        Ok(Connection {
            url,
            headers: map,
            limits,
            secrets: secrets.filter(|secret| secret.reveal().len() >= SHORTEST_SECRET).collect(),
            client: OnceLock::new(),
        })
    }

    /// The address, as it may be shown.
    pub(super) fn shown_url(&self) -> String {
        let mut url = self.url.clone();
        // Neither can fail for an address of HTTP.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.set_query(None);
        url.to_string()
    }

    /// The host of the address.
    pub(super) fn host(&self) -> Option<&str> {
        self.url.host_str()
    }

    /// Posts a body and waits for the head of an answer that is no error.
    pub(super) async fn post(&self, body: &Value) -> Result<Answer, ModelError> {
        let started = Instant::now();
        let clock = Clock { limits: self.limits, started, url: self.shown_url() };
        let client = self.client.get_or_init(|| client(&self.url, self.limits.connect));
        let client =
            client.as_ref().map_err(|error| ModelError::new(ErrorKind::Configuration, error.clone()))?;
        let request =
            client.post(self.url.clone()).headers(self.headers.clone()).body(body.to_string()).send();
        let (until, limit) = clock.first_byte();
        let response = match timeout_at(until, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Err(_) => return Err(clock.passed(limit)),
        };
        if response.status().is_success() {
            return Ok(Answer { response, clock, seen: 0 });
        }
        Err(self.refused(Answer { response, clock, seen: 0 }).await)
    }

    /// Takes secrets out of what a provider said: some repeat the key that they refuse.
    pub(super) fn redact(&self, mut error: ModelError) -> ModelError {
        for secret in &self.secrets {
            error.message = error.message.replace(secret.reveal(), "[secret]");
            error.body = error.body.map(|body| body.replace(secret.reveal(), "[secret]"));
        }
        error
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        let url = self.shown_url();
        if error.is_connect() && error.is_timeout() {
            let message = format!(
                "{url} could not be reached within {} (connect limit)",
                shown_time(self.limits.connect)
            );
            return ModelError::new(ErrorKind::Timeout, message);
        }
        let message = if error.is_connect() {
            format!("{url} cannot be reached: {}", causes(error))
        } else {
            format!("{url} accepted the connection and gave no answer: {}", causes(error))
        };
        ModelError::new(ErrorKind::Network, message)
    }

    async fn refused(&self, mut answer: Answer) -> ModelError {
        let status = answer.response.status();
        let wait = retry_after(answer.response.headers());
        let location = answer.response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(str::to_owned);
        let mut body = Vec::new();
        // What cannot be read of it is not worth another error.
        while body.len() < ERROR_BODY
            && let Ok(Some(bytes)) = answer.next().await
        {
            body.extend_from_slice(&bytes);
        }
        let body = String::from_utf8_lossy(&body);
        let mut error = failure::of_status(&self.shown_url(), status, location.as_deref(), &body);
        error.retry_after = wait;
        error
    }
}

/// The body of an answer, as it arrives.
pub(super) struct Answer {
    response: Response,
    clock: Clock,
    /// How many bytes have arrived.
    seen: usize,
}

impl Answer {
    /// Whether the body is a JSON document and no stream.
    pub(super) fn is_json(&self) -> bool {
        let content_type = self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        content_type.is_some_and(|content_type| content_type.trim_start().starts_with("application/json"))
    }

    /// The next bytes; none when the body has ended in order.
    async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let (until, limit) = if self.seen == 0 { self.clock.first_byte() } else { self.clock.idle() };
        let bytes = match timeout_at(until, self.response.chunk()).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => {
                let message = format!("the connection to {} broke: {}", self.clock.url, causes(&error));
                return Err(ModelError::new(ErrorKind::Network, message));
            }
            Err(_) => return Err(self.clock.passed(limit)),
        };
        self.seen += bytes.as_ref().map_or(0, Bytes::len);
        if self.seen > LONGEST {
            let message = format!("the reply of {} is longer than {LONGEST} bytes", self.clock.url);
            return Err(ModelError::new(ErrorKind::Decode, message));
        }
        Ok(bytes)
    }

    /// The whole body as text.
    pub(super) async fn text(mut self) -> Result<String, ModelError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next().await? {
            body.extend_from_slice(&bytes);
        }
        String::from_utf8(body).map_err(|_| {
            let message = format!("the reply of {} is not UTF-8", self.clock.url);
            ModelError::new(ErrorKind::Decode, message)
        })
    }

    /// The body in pieces.
    pub(super) fn pieces(self) -> impl Stream<Item = Result<Bytes, ModelError>> {
        try_unfold(self, |mut answer| async move { Ok(answer.next().await?.map(|bytes| (bytes, answer))) })
    }
}

/// The limits of one call.
struct Clock {
    limits: TimeLimits,
    started: Instant,
    url: String,
}

enum Limit {
    FirstByte,
    Idle,
    Total,
}

impl Clock {
    fn first_byte(&self) -> (Instant, Limit) {
        self.sooner(after(self.started, self.limits.first_byte), Limit::FirstByte)
    }

    fn idle(&self) -> (Instant, Limit) {
        self.sooner(after(Instant::now(), self.limits.idle), Limit::Idle)
    }

    fn sooner(&self, until: Instant, limit: Limit) -> (Instant, Limit) {
        let end = after(self.started, self.limits.total);
        if end <= until { (end, Limit::Total) } else { (until, limit) }
    }

    fn passed(&self, limit: Limit) -> ModelError {
        let url = &self.url;
        let message = match limit {
            Limit::FirstByte => {
                format!("{url} sent nothing within {} (first byte limit)", shown_time(self.limits.first_byte))
            }
            Limit::Idle => format!("{url} sent nothing for {} (idle limit)", shown_time(self.limits.idle)),
            Limit::Total => {
                format!("{url} had not replied in full after {} (total limit)", shown_time(self.limits.total))
            }
        };
        ModelError::new(ErrorKind::Timeout, message)
    }
}

/// The moment after a time; a time that no clock can reach counts as a day.
fn after(start: Instant, time: Duration) -> Instant {
    start.checked_add(time).unwrap_or(start + Duration::from_secs(24 * 60 * 60))
}

/// `1.5 s`, `250 ms`.
fn shown_time(time: Duration) -> String {
    match time.as_millis() {
        millis if millis < 1000 => format!("{millis} ms"),
        millis if millis % 1000 == 0 => format!("{} s", millis / 1000),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

fn client(url: &Url, connect: Duration) -> Result<Client, String> {
    // The first client decides the process's provider; a program that installed its own keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("hotseat/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect)
        // Shorter than the keep-alive of common servers, so that no request meets a connection that is just closing.
        .pool_idle_timeout(Duration::from_secs(2));
    // A plain connection needs no certificates, and a machine may have none.
    let builder = if url.scheme() == "https" { builder } else { builder.tls_certs_only([]) };
    // A proxy of the environment is for the outside, never for a model on this machine.
    let builder = if is_loopback(url) { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| format!("no HTTP client could be made: {}", causes(&error)))
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str().map(|host| host.trim_matches(['[', ']'])) {
        Some("localhost") => true,
        Some(host) => host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// The innermost cause of an error: the outer ones only repeat that a request failed.
fn causes(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
