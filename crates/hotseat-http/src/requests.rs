//! Requests, and responses that are read as they arrive.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_core::Stream;
use http::header::{ACCEPT, AUTHORIZATION, PROXY_AUTHORIZATION, USER_AGENT};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::{BodyDataStream, BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::{self, Client, ResponseFuture};
use hyper_util::client::proxy::matcher::Intercept;
use percent_encoding::percent_decode_str;
use tokio::sync::Notify;
use url::Url;

use crate::connector::{ConnectSettings, ConnectionUse, Connector};

/// Maximum number of interim responses (`100 Continue`, `103 Early Hints`) before the response of a request.
const MAX_INTERIM_RESPONSES: usize = 100;

/// The connections that requests share.
pub(crate) struct ConnectionPool {
    pub client: Client<Connector, Full<Bytes>>,
    pub settings: Arc<ConnectSettings>,
}

/// A request that is not sent yet.
#[must_use]
pub struct OutgoingRequest {
    pool: Arc<ConnectionPool>,
    request: http::request::Builder,
    body: Bytes,
}

impl OutgoingRequest {
    pub(crate) fn new(pool: Arc<ConnectionPool>, method: Method, url: &Url) -> OutgoingRequest {
        let request = http::request::Builder::new().method(method);
        let request = match basic_credentials(url) {
            None => request.uri(url.as_str()),
            Some(credentials) => {
                let mut url = url.clone();
                // Neither can fail for a URL with credentials.
                let _ = url.set_username("").and_then(|()| url.set_password(None));
                request.uri(url.as_str()).header(AUTHORIZATION, credentials)
            }
        };
        OutgoingRequest { pool, request, body: Bytes::new() }
    }

    /// Adds a header.
    pub fn header<N, V>(mut self, name: N, value: V) -> OutgoingRequest
    where
        N: TryInto<HeaderName, Error: Into<http::Error>>,
        V: TryInto<HeaderValue, Error: Into<http::Error>>,
    {
        self.request = self.request.header(name, value);
        self
    }

    /// Adds headers, which replace those of the same names.
    pub fn headers(mut self, headers: HeaderMap) -> OutgoingRequest {
        match self.request.headers_mut() {
            Some(own) if own.is_empty() => *own = headers,
            Some(own) => own.extend(headers),
            // The request is invalid already.
            None => {}
        }
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> OutgoingRequest {
        self.body = body.into();
        self
    }

    /// Sends the request and waits for the head of its response. Redirects are not followed, and no request is sent again that
    /// the server may have received. The connection belongs to the runtime that polls this future. Fails if the request is
    /// invalid, or there is no response.
    pub fn send(self) -> impl Future<Output = Result<IncomingResponse, HttpRequestError>> + Send + use<> {
        let started = self.start();
        async move {
            let (response, proxy, flooded) = started?;
            let response = tokio::select! {
                biased;
                response = response => response?,
                () = flooded.notified() => return Err(HttpRequestError::InterimOnly),
            };
            if let Some(proxy) = proxy
                && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED
            {
                return Err(HttpRequestError::Refused { proxy: proxy.uri().clone() });
            }
            let connection = response.extensions().get::<ConnectionUse>();
            let reuses_connection = connection.is_some_and(ConnectionUse::mark);
            Ok(IncomingResponse { response, reuses_connection })
        }
    }

    /// Starts the request. Returns the proxy that reads it, and what tells that the server sends too many interim responses.
    fn start(self) -> Result<(ResponseFuture, Option<Intercept>, Arc<Notify>), http::Error> {
        let mut request = self.request.body(Full::new(self.body))?;
        let settings = &self.pool.settings;
        let proxy = match request.uri().scheme() == Some(&Scheme::HTTP) {
            true => settings.proxy(request.uri()),
            // Only its tunnel gets its credentials.
            false => None,
        };
        let headers = request.headers_mut();
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        if let Some(program) = &settings.user_agent {
            headers.entry(USER_AGENT).or_insert_with(|| program.clone());
        }
        if let Some(credentials) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
            headers.entry(PROXY_AUTHORIZATION).or_insert_with(|| credentials.clone());
        }
        let (flooded, interim) = (Arc::new(Notify::new()), AtomicUsize::new(0));
        let tell = flooded.clone();
        hyper::ext::on_informational(&mut request, move |_| {
            if interim.fetch_add(1, Ordering::Relaxed) == MAX_INTERIM_RESPONSES {
                tell.notify_one();
            }
        });
        Ok((self.pool.client.request(request), proxy, flooded))
    }
}

/// Returns the value of `Authorization` for the credentials in a URL.
fn basic_credentials(url: &Url) -> Option<HeaderValue> {
    let (user, password) = (url.username(), url.password());
    if user.is_empty() && password.is_none() {
        return None;
    }
    let mut credentials: Vec<u8> = percent_decode_str(user).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(password.unwrap_or_default()));
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(credentials))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A response whose body is still arriving. Dropping it closes the connection, unless it is complete.
#[derive(Debug)]
pub struct IncomingResponse {
    response: Response<Incoming>,
    reuses_connection: bool,
}

impl IncomingResponse {
    /// True if its connection carried another response before.
    pub fn reuses_connection(&self) -> bool {
        self.reuses_connection
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns the headers, to take them.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        self.response.headers_mut()
    }

    /// Returns the size of the rest of the body in bytes, if it is known.
    pub fn content_length(&self) -> Option<u64> {
        self.response.body().size_hint().exact()
    }

    /// Returns the next bytes of the body; `None` at its end. Cancel-safe. Fails if the response breaks off.
    pub async fn next_bytes(&mut self) -> Result<Option<Bytes>, HttpRequestError> {
        while let Some(frame) = self.response.body_mut().frame().await {
            // Trailers are not read.
            if let Ok(bytes) = frame.map_err(HttpRequestError::Body)?.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// Returns the body as a stream of pieces.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, HttpRequestError>> + Send {
        BodyDataStream::new(self.response.into_body().map_err(HttpRequestError::Body))
    }
}

/// A request that got no response, or only a part of it. The causes have the details.
#[derive(Debug, thiserror::Error)]
pub enum HttpRequestError {
    /// The request was not sent.
    #[error("invalid request")]
    Invalid(#[from] http::Error),
    /// A proxy wants other credentials.
    #[error(
        "the proxy {proxy} wants credentials (HTTP 407); write them into its address: `http://USER:PASSWORD@HOST:PORT`"
    )]
    Refused {
        /// The proxy.
        proxy: Uri,
    },
    /// The server sends interim responses without end.
    #[error("more than {MAX_INTERIM_RESPONSES} interim responses (HTTP 1xx) and no other")]
    InterimOnly,
    /// There is no response.
    #[error("error sending request")]
    NoResponse(#[from] legacy::Error),
    /// The response broke off.
    #[error("error decoding response body")]
    Body(#[source] hyper::Error),
}

impl HttpRequestError {
    /// Returns true if the server received nothing: it cannot be reached, or the request is invalid.
    pub fn is_unsent(&self) -> bool {
        match self {
            HttpRequestError::Invalid(_) | HttpRequestError::Refused { .. } => true,
            HttpRequestError::NoResponse(error) => error.is_connect(),
            HttpRequestError::InterimOnly | HttpRequestError::Body(_) => false,
        }
    }

    /// Returns true if the server closed a connection that had carried an earlier response.
    pub fn is_closed_after_response(&self) -> bool {
        let HttpRequestError::NoResponse(error) = self else { return false };
        let mut marks = http::Extensions::new();
        error.connect_info().inspect(|connected| connected.get_extras(&mut marks));
        let is_closed = || {
            self.causes().any(|cause| {
                let closed = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
                cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
                    || cause.downcast_ref::<io::Error>().is_some_and(|error| closed.contains(&error.kind()))
            })
        };
        marks.get::<ConnectionUse>().is_some_and(ConnectionUse::is_marked) && is_closed()
    }

    /// Returns true if the server sent something that is not a response of HTTP, or one with too long a head.
    pub fn is_invalid_response(&self) -> bool {
        matches!(self, HttpRequestError::InterimOnly)
            || self
                .causes()
                .any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse))
    }

    /// Returns true if a time limit of the connection passed.
    pub fn is_timeout(&self) -> bool {
        self.causes().any(|error| {
            error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
        })
    }

    fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        std::iter::successors(self.source(), |error| (*error).source())
    }
}
