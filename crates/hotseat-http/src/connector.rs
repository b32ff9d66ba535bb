//! Connections to servers: directly or by a proxy, plain or encrypted.

use std::error::Error;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
#[cfg(feature = "tls")]
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
#[cfg(feature = "tls")]
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tower_service::Service;

use crate::client_error::ProxyFailure;
#[cfg(feature = "tls")]
use crate::tls::TlsSettings;

/// Time without data after which a connection is probed, and between probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(15);
/// Number of unanswered probes after which a connection is lost.
const MAX_LOST_PROBES: u32 = 3;
/// Bytes that a connection may read before others get their turn.
const READ_BUDGET: usize = 128 * 1024;
/// Time after which a connection is lost if the other side confirms nothing.
#[cfg(target_os = "linux")]
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(30);

type ConnectError = Box<dyn Error + Send + Sync>;

/// A connection to a server, to a proxy, or through the tunnel of a proxy to a server.
#[cfg(feature = "tls")]
type ByteStream = MaybeHttpsStream<MaybeHttpsStream<TokioIo<TcpStream>>>;
#[cfg(not(feature = "tls"))]
type ByteStream = TokioIo<TcpStream>;

/// Opens connections within a time that includes the resolution of names and the handshakes.
#[derive(Clone)]
pub(crate) struct Connector {
    http: HttpConnector,
    settings: Arc<ConnectSettings>,
}

/// Settings of all connections of a client.
pub(crate) struct ConnectSettings {
    pub timeout: Duration,
    /// Proxies for servers that are not on this machine.
    pub proxies: Option<Matcher>,
    /// Value of `User-Agent`, also for proxies.
    pub user_agent: Option<HeaderValue>,
    #[cfg(feature = "tls")]
    pub tls: TlsSettings,
}

impl ConnectSettings {
    /// Returns the proxy by which a server is reached.
    pub fn proxy(&self, server: &Uri) -> Option<Intercept> {
        let proxies = self.proxies.as_ref()?;
        if server.host().is_some_and(is_loopback_host) { None } else { proxies.intercept(server) }
    }
}

impl Connector {
    pub fn new(settings: Arc<ConnectSettings>) -> Connector {
        let mut http = HttpConnector::new();
        http.enforce_http(!cfg!(feature = "tls"));
        http.set_nodelay(true);
        // Each address of a server gets a part of it.
        http.set_connect_timeout(Some(settings.timeout));
        http.set_keepalive(Some(PROBE_INTERVAL));
        http.set_keepalive_interval(Some(PROBE_INTERVAL));
        http.set_keepalive_retries(Some(MAX_LOST_PROBES));
        #[cfg(target_os = "linux")]
        http.set_tcp_user_timeout(Some(CONFIRMATION_TIMEOUT));
        Connector { http, settings }
    }

    async fn connect(&self, server: Uri) -> Result<ClientConnection, ConnectError> {
        let limit = self.settings.timeout;
        let Some(proxy) = self.settings.proxy(&server) else {
            let stream = within(limit, server.clone(), self.open(server)).await?;
            return Ok(ClientConnection { stream, is_forwarded: false, budget: READ_BUDGET });
        };
        let address = proxy.uri().clone();
        let is_forwarded = server.scheme_str() != Some("https");
        let opened = match is_forwarded {
            #[cfg(feature = "tls")]
            false => within(limit, server.clone(), self.open_tunnel(proxy, server)).await,
            _ => within(limit, address.clone(), self.open(address.clone())).await,
        };
        let stream = opened.map_err(|source| ProxyFailure { proxy: address, source })?;
        Ok(ClientConnection { stream, is_forwarded, budget: READ_BUDGET })
    }

    #[cfg(not(feature = "tls"))]
    async fn open(&self, server: Uri) -> Result<ByteStream, ConnectError> {
        Ok(self.http.clone().call(server).await?)
    }

    #[cfg(feature = "tls")]
    async fn open(&self, server: Uri) -> Result<ByteStream, ConnectError> {
        let mut http = self.http.clone();
        if server.scheme_str() == Some("http") {
            return Ok(MaybeHttpsStream::Http(MaybeHttpsStream::Http(http.call(server).await?)));
        }
        let tls = self.settings.tls.get()?.clone();
        Ok(MaybeHttpsStream::Http(HttpsConnector::from((http, tls)).call(server).await?))
    }

    /// Opens an encrypted connection to a server through the tunnel of a proxy, which may be encrypted itself.
    #[cfg(feature = "tls")]
    async fn open_tunnel(&self, proxy: Intercept, server: Uri) -> Result<ByteStream, ConnectError> {
        let tls = self.settings.tls.get()?;
        // What the proxy is asked for is no request of this protocol.
        let mut proxy_tls = rustls::ClientConfig::clone(tls);
        proxy_tls.alpn_protocols.clear();
        let to_proxy = HttpsConnector::from((self.http.clone(), proxy_tls));
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        if let Some(program) = &self.settings.user_agent {
            tunnel = tunnel
                .with_headers(http::HeaderMap::from_iter([(http::header::USER_AGENT, program.clone())]));
        }
        HttpsConnector::from((tunnel, tls.clone())).call(server).await
    }
}

impl Service<Uri> for Connector {
    type Response = ClientConnection;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<ClientConnection, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(server).await })
    }
}

/// Waits for a connection to an address. Fails if the time passes.
async fn within<T>(
    limit: Duration,
    address: Uri,
    opening: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    let opened = tokio::time::timeout(limit, opening).await.unwrap_or_else(|elapsed| Err(elapsed.into()));
    opened.map_err(|error| match is_elapsed(&*error) {
        true => {
            let seconds = limit.as_secs_f64();
            let message = match address.scheme_str() {
                Some("https") => format!(
                    "it accepted no encrypted connection within {seconds} s, as an overloaded server does, or one that does not speak TLS (`https://`) at this port; try the address with `http://`"
                ),
                _ => format!("it accepted no connection within {seconds} s, as an overloaded server does"),
            };
            io::Error::new(io::ErrorKind::TimedOut, message).into()
        }
        false => error,
    })
}

/// True if a time limit of this client passed, of the whole or of one address.
fn is_elapsed(error: &(dyn Error + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<Elapsed>()
        || inner.is_some_and(|inner| is_elapsed(inner))
        || error.source().is_some_and(is_elapsed)
}

/// Mark of a connection: whether it has carried a response.
#[derive(Clone, Default)]
pub(crate) struct ConnectionUse(Arc<AtomicBool>);

impl ConnectionUse {
    /// Records that the connection has carried a response, and returns true if it had carried one before.
    pub fn mark(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    pub fn is_marked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// An open connection.
pub(crate) struct ClientConnection {
    stream: ByteStream,
    /// True if a proxy reads the requests, which have whole URLs then.
    is_forwarded: bool,
    /// Bytes that it may still read before others get their turn. Many connections share a thread, and one whose peer sends
    /// without a pause would keep it.
    budget: usize,
}

impl Connection for ClientConnection {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_forwarded).extra(ConnectionUse::default())
    }
}

impl Read for ClientConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.budget == 0 {
            self.budget = READ_BUDGET;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let size = buffer.remaining();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.budget = match read {
            Poll::Ready(_) => self.budget.saturating_sub(size),
            Poll::Pending => READ_BUDGET,
        };
        read
    }
}

impl Write for ClientConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}

/// True if a host is this machine.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']);
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
