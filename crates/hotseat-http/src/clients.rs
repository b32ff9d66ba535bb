//! Clients with the settings of all requests: proxies, time limits, and connections that are reused.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderValue, Method};
use hyper_util::client::legacy::Client;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use url::Url;

use crate::client_error::{ClientError, check_encryption};
use crate::connector::{ConnectSettings, Connector, is_loopback_host};
use crate::requests::{ConnectionPool, OutgoingRequest};

/// Maximum time to connect, unless it is set.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than the keep-alive of common servers, so that no request uses a connection that is just closing.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of the head of a response and of each piece of its body, in bytes.
const MAX_READ_BYTES: usize = 128 * 1024;

/// Sends requests with the same settings. They share connections, each of which belongs to the runtime that opened it.
#[must_use]
pub struct HttpClients {
    connect_timeout: Duration,
    uses_proxies: bool,
    names_program: bool,
    settings: Arc<OnceLock<Arc<ConnectSettings>>>,
    pool: OnceLock<Arc<ConnectionPool>>,
}

impl Default for HttpClients {
    fn default() -> Self {
        HttpClients {
            connect_timeout: CONNECT_TIMEOUT,
            uses_proxies: true,
            names_program: true,
            settings: Arc::default(),
            pool: OnceLock::new(),
        }
    }
}

impl HttpClients {
    /// Sets the maximum time to connect.
    pub fn with_connect_timeout(self, connect_timeout: Duration) -> Self {
        HttpClients { connect_timeout, ..self }
    }

    /// Ignores the proxies that the environment names.
    pub fn without_proxies(self) -> Self {
        HttpClients { uses_proxies: false, ..self }
    }

    /// Adds no `User-Agent`: for requests of others that are passed on.
    pub fn without_user_agent(self) -> Self {
        HttpClients { names_program: false, ..self }
    }

    /// Returns clients with the same settings and connections of their own.
    pub fn with_own_connections(&self) -> Self {
        HttpClients { settings: self.settings.clone(), pool: OnceLock::new(), ..*self }
    }

    /// Returns a request. Servers on this machine are reached without the proxies of the environment. Fails if the server
    /// needs encryption, and there are no certificates, or this build has no encryption.
    pub fn request(&self, method: Method, url: &Url) -> Result<OutgoingRequest, ClientError> {
        check_encryption(url)?;
        let pool = self.pool.get_or_init(|| Arc::new(self.create_pool()));
        #[cfg(feature = "tls")]
        if url.scheme() == "https" {
            pool.settings.tls.get()?;
        }
        Ok(OutgoingRequest::new(pool.clone(), method, url))
    }

    fn create_settings(&self) -> ConnectSettings {
        let program = HeaderValue::from_static(concat!("hotseat/", env!("CARGO_PKG_VERSION")));
        ConnectSettings {
            timeout: self.connect_timeout,
            proxies: self.uses_proxies.then(Matcher::from_env),
            user_agent: self.names_program.then_some(program),
            #[cfg(feature = "tls")]
            tls: crate::tls::TlsSettings::default(),
        }
    }

    fn create_pool(&self) -> ConnectionPool {
        let settings = self.settings.get_or_init(|| Arc::new(self.create_settings())).clone();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .http1_max_buf_size(MAX_READ_BYTES)
            .build(Connector::new(settings.clone()));
        ConnectionPool { client, settings }
    }
}

impl fmt::Debug for HttpClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClients").finish_non_exhaustive()
    }
}

/// True if an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_host)
}
