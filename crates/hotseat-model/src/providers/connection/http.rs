//! HTTP requests with streamed responses and time limits.

use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;
use hotseat_http::{
    HttpClients, HttpRequestError, IncomingResponse, check_encoding, check_encryption, decode_utf8,
    read_header_name, root_cause,
};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::config::{ConnectorConfig, Secret, TimeLimits};
use super::failure;
use super::retry_after::retry_after;
use crate::{ModelError, ModelErrorKind};

/// Maximum size of a reply in bytes, to bound memory for endless streams.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of bytes read from the body of an error.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
/// Minimum length of a secret that is redacted. Replacing shorter ones would garble messages.
const MIN_SECRET_BYTES: usize = 6;

/// Connection settings of one provider.
pub(in crate::providers) struct ProviderConnection {
    url: Url,
    headers: HeaderMap,
    limits: TimeLimits,
    secrets: Vec<Secret>,
    clients: HttpClients,
}

impl ProviderConnection {
    /// Creates the connection. `route` is appended to the base URL, except for a prefix that the base already
    /// ends with.
    pub(in crate::providers) fn new(
        connector: &ConnectorConfig,
        default_base: &str,
        route: &[&str],
        headers: Vec<(String, Secret)>,
    ) -> Result<Self, ModelError> {
        let base = connector.base_url.as_deref().unwrap_or(default_base);
        // The URL is not shown, because it may contain a password.
        let wrong = |what: &str| {
            ModelError::new(ModelErrorKind::Configuration, format!("the connector's base URL {what}"))
        };
        let mut url = Url::parse(base).map_err(|error| wrong(&format!("is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is not an HTTP URL"));
        }
        check_encryption(&url)?;
        if url.fragment().is_some() {
            return Err(wrong("has a fragment (`#…`), which is not sent; remove it"));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        let path: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let there = (0..=route.len()).rev().find(|count| path.ends_with(&route[..*count])).unwrap_or(0);
        let rest = &route[there..];
        url.path_segments_mut().map_err(|()| wrong("cannot have a path"))?.pop_if_empty().extend(rest);

        let mut map = HeaderMap::new();
        for (name, value) in headers.iter().chain(&connector.headers) {
            let unfit = |words: String| ModelError::new(ModelErrorKind::Configuration, words);
            let mut value = HeaderValue::try_from(value.reveal())
                .map_err(|_| unfit(format!("the header {name:?} has an invalid value")))?;
            let name = read_header_name(name).map_err(|error| unfit(error.to_string()))?;
            value.set_sensitive(true);
            // Headers of the connector come last and replace the defaults.
            map.insert(name, value);
        }
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut limits = connector.limits;
        if !connector.stream {
            limits.first_byte = limits.total;
        }
        let secrets = connector.key.iter().chain(connector.headers.iter().map(|(_, value)| value)).cloned();
        Ok(ProviderConnection {
            url,
            headers: map,
            limits,
            secrets: secrets.filter(|secret| secret.reveal().len() >= MIN_SECRET_BYTES).collect(),
            clients: HttpClients::default().with_connect_timeout(limits.connect),
        })
    }

    /// Returns the URL without credentials and query.
    pub(in crate::providers) fn display_url(&self) -> String {
        let mut url = self.url.clone();
        // Neither can fail for an address of HTTP.
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.set_query(None);
        url.to_string()
    }

    /// Returns the host of the URL.
    pub(in crate::providers) fn host(&self) -> Option<&str> {
        self.url.host_str()
    }

    /// Posts a body and waits for the headers of a successful response.
    pub(in crate::providers) async fn post(&self, body: &Value) -> Result<StreamingResponse, ModelError> {
        let started = Instant::now();
        let clock = CallDeadlines { limits: self.limits, started, url: self.display_url() };
        let request = self.clients.request(Method::POST, &self.url)?;
        let request = request.headers(self.headers.clone()).body(body.to_string()).send();
        let (until, limit) = clock.first_byte();
        let response = match timeout_at(until, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.connect_error(&error)),
            Err(_) => return Err(clock.timeout_error(limit)),
        };
        if response.status().is_success() {
            check_encoding(response.headers()).map_err(|error| {
                let message = format!("the reply of {} {error}", clock.url);
                ModelError::new(ModelErrorKind::Decode, message)
            })?;
            return Ok(StreamingResponse { response, clock, received_bytes: 0 });
        }
        Err(self.error_response(StreamingResponse { response, clock, received_bytes: 0 }).await)
    }

    /// Redacts secrets in a provider's error: some providers repeat the rejected key.
    pub(in crate::providers) fn redact(&self, mut error: ModelError) -> ModelError {
        for secret in &self.secrets {
            error.message = error.message.replace(secret.reveal(), "[secret]");
            error.body = error.body.map(|body| body.replace(secret.reveal(), "[secret]"));
        }
        error
    }

    fn connect_error(&self, error: &HttpRequestError) -> ModelError {
        let url = self.display_url();
        if error.is_unsent() && error.is_timeout() {
            let message = format!(
                "{url} could not be reached within {} (connect limit)",
                format_duration(self.limits.connect)
            );
            return ModelError::new(ModelErrorKind::Timeout, message);
        }
        let message = if error.is_unsent() {
            format!("{url} cannot be reached: {}", root_cause(error))
        } else {
            format!("{url} accepted the connection but did not answer: {}", root_cause(error))
        };
        ModelError::new(ModelErrorKind::Network, message)
    }

    async fn error_response(&self, mut answer: StreamingResponse) -> ModelError {
        let status = answer.response.status();
        let wait = retry_after(answer.response.headers());
        let location = answer.response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(str::to_owned);
        let encoding = check_encoding(answer.response.headers());
        let mut body = Vec::new();
        // Read errors are ignored; the status is more informative.
        while body.len() < MAX_ERROR_BODY_BYTES
            && let Ok(Some(bytes)) = answer.next().await
        {
            body.extend_from_slice(&bytes);
        }
        let body = match encoding {
            Ok(()) => String::from_utf8_lossy(&body).into_owned(),
            Err(error) => format!("the body {error}"),
        };
        let mut error = failure::from_status(&self.display_url(), status, location.as_deref(), &body);
        error.retry_after = wait;
        error
    }
}

/// A response body, read as it arrives.
pub(in crate::providers) struct StreamingResponse {
    response: IncomingResponse,
    clock: CallDeadlines,
    /// Number of bytes received.
    received_bytes: usize,
}

impl StreamingResponse {
    /// Returns the content type without parameters; empty if absent.
    pub(in crate::providers) fn content_type(&self) -> String {
        let value = self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        value.and_then(|value| value.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Returns true if the body is a JSON document and not a stream.
    pub(in crate::providers) fn is_json(&self) -> bool {
        self.content_type() == "application/json"
    }

    /// Checks that the body may be a stream of events. Some servers send no type for a stream, or another one.
    pub(in crate::providers) fn ensure_stream(&self) -> Result<(), ModelError> {
        match self.content_type().as_str() {
            "text/html" | "application/xhtml+xml" => {
                let message = format!(
                    "{} answered with a web page, expected a reply of a model; check `base_url`",
                    self.clock.url
                );
                Err(ModelError::new(ModelErrorKind::Decode, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the next bytes, or None at the end of the body.
    async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        let (until, limit) =
            if self.received_bytes == 0 { self.clock.first_byte() } else { self.clock.idle() };
        let bytes = match timeout_at(until, self.response.next_bytes()).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => {
                let message = format!("the connection to {} broke: {}", self.clock.url, root_cause(&error));
                return Err(ModelError::new(ModelErrorKind::Network, message));
            }
            Err(_) => return Err(self.clock.timeout_error(limit)),
        };
        self.received_bytes += bytes.as_ref().map_or(0, Bytes::len);
        if self.received_bytes > MAX_REPLY_BYTES {
            let message = format!("the reply of {} is longer than {MAX_REPLY_BYTES} bytes", self.clock.url);
            return Err(ModelError::new(ModelErrorKind::Decode, message));
        }
        Ok(bytes)
    }

    /// Returns the whole body as text.
    pub(in crate::providers) async fn text(mut self) -> Result<String, ModelError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next().await? {
            body.extend_from_slice(&bytes);
        }
        decode_utf8(body).map_err(|error| {
            let message = format!("the reply of {} is {error}", self.clock.url);
            ModelError::new(ModelErrorKind::Decode, message)
        })
    }

    /// Returns the body as a stream of pieces.
    pub(in crate::providers) fn pieces(self) -> impl Stream<Item = Result<Bytes, ModelError>> {
        try_unfold(self, |mut answer| async move { Ok(answer.next().await?.map(|bytes| (bytes, answer))) })
    }
}

/// Deadlines of one call.
struct CallDeadlines {
    limits: TimeLimits,
    started: Instant,
    url: String,
}

enum TimeLimitKind {
    FirstByte,
    Idle,
    Total,
}

impl CallDeadlines {
    fn first_byte(&self) -> (Instant, TimeLimitKind) {
        self.earliest(deadline_after(self.started, self.limits.first_byte), TimeLimitKind::FirstByte)
    }

    fn idle(&self) -> (Instant, TimeLimitKind) {
        self.earliest(deadline_after(Instant::now(), self.limits.idle), TimeLimitKind::Idle)
    }

    fn earliest(&self, until: Instant, limit: TimeLimitKind) -> (Instant, TimeLimitKind) {
        let end = deadline_after(self.started, self.limits.total);
        if end <= until { (end, TimeLimitKind::Total) } else { (until, limit) }
    }

    fn timeout_error(&self, limit: TimeLimitKind) -> ModelError {
        let url = &self.url;
        let message = match limit {
            TimeLimitKind::FirstByte => {
                format!(
                    "{url} sent nothing within {} (first byte limit)",
                    format_duration(self.limits.first_byte)
                )
            }
            TimeLimitKind::Idle => {
                format!("{url} sent nothing for {} (idle limit)", format_duration(self.limits.idle))
            }
            TimeLimitKind::Total => {
                format!(
                    "{url} did not complete its reply within {} (total limit)",
                    format_duration(self.limits.total)
                )
            }
        };
        ModelError::new(ModelErrorKind::Timeout, message)
    }
}

/// Returns `start` plus `time`; an overflow counts as one day.
fn deadline_after(start: Instant, time: Duration) -> Instant {
    start.checked_add(time).unwrap_or(start + Duration::from_secs(24 * 60 * 60))
}

/// Formats a duration: `1.5 s`, `250 ms`.
fn format_duration(time: Duration) -> String {
    match time.as_millis() {
        millis if millis < 1000 => format!("{millis} ms"),
        millis if millis % 1000 == 0 => format!("{} s", millis / 1000),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
