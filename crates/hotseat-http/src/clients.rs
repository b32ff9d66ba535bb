//! Clients with the settings of all requests: redirects are not followed, and connections are reused.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};

/// Maximum time to connect, unless it is set.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than the keep-alive of common servers, so that no request uses a connection that is just closing.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Clients for the servers of one kind. Each is created when first needed: reading the certificates takes longer than a
/// conversation on this machine.
#[derive(Debug)]
#[must_use]
pub struct HttpClients {
    connect_timeout: Duration,
    uses_proxies: bool,
    names_program: bool,
    plain: OnceLock<Result<Client, ClientError>>,
    plain_local: OnceLock<Result<Client, ClientError>>,
    encrypted: OnceLock<Result<Client, ClientError>>,
    encrypted_local: OnceLock<Result<Client, ClientError>>,
}

/// An HTTP client that could not be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The client refuses its settings, or finds no certificates.
    #[error("the HTTP client could not be created: {0}")]
    Settings(String),
    /// This build has no encryption.
    #[error("addresses with `https://` need the feature `https` of the crate `hotseat`")]
    NoEncryption,
}

/// Refuses an address that this build cannot reach. Fails if it is encrypted, and the feature `tls` is off.
pub fn check_encryption(url: &Url) -> Result<(), ClientError> {
    if cfg!(feature = "tls") || url.scheme() != "https" { Ok(()) } else { Err(ClientError::NoEncryption) }
}

impl Default for HttpClients {
    fn default() -> Self {
        HttpClients {
            connect_timeout: CONNECT_TIMEOUT,
            uses_proxies: true,
            names_program: true,
            plain: OnceLock::new(),
            plain_local: OnceLock::new(),
            encrypted: OnceLock::new(),
            encrypted_local: OnceLock::new(),
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

    /// Returns the client for a URL. Servers on this machine are reached without the proxies of the
    /// environment. Fails if the client cannot be created, for example without certificates, or if this build
    /// has no encryption.
    pub fn client(&self, url: &Url) -> Result<&Client, ClientError> {
        check_encryption(url)?;
        let (is_encrypted, is_local) = (url.scheme() == "https", is_loopback(url));
        let client = match (is_encrypted, is_local) {
            (false, false) => &self.plain,
            (false, true) => &self.plain_local,
            (true, false) => &self.encrypted,
            (true, true) => &self.encrypted_local,
        };
        client.get_or_init(|| self.build(is_encrypted, is_local)).as_ref().map_err(Clone::clone)
    }

    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "no client is encrypted"))]
    fn build(&self, is_encrypted: bool, is_local: bool) -> Result<Client, ClientError> {
        // The first client sets the TLS provider of the process, unless the program has set one.
        #[cfg(feature = "tls")]
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(self.connect_timeout)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT);
        let builder = match self.names_program {
            true => builder.user_agent(concat!("hotseat/", env!("CARGO_PKG_VERSION"))),
            false => builder,
        };
        // Plain HTTP needs no certificates, and a machine may have none.
        #[cfg(feature = "tls")]
        let builder = if is_encrypted { builder } else { builder.tls_certs_only([]) };
        let builder = if is_local || !self.uses_proxies { builder.no_proxy() } else { builder };
        builder.build().map_err(|error| ClientError::Settings(root_cause(&error)))
    }
}

/// True if an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str().map(|host| host.trim_matches(['[', ']'])) {
        Some("localhost") => true,
        Some(host) => host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

/// Returns the innermost cause of an error; the outer ones only repeat that a request failed.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_this_machine_are_reached_without_proxies() {
        let uses_proxies = |clients: HttpClients, url: &str| {
            let client = clients.client(&Url::parse(url).unwrap()).unwrap().clone();
            format!("{client:?}").contains("proxies")
        };
        for local in ["http://localhost:1/", "http://127.0.0.1:1/", "http://[::1]:1/"] {
            assert!(!uses_proxies(HttpClients::default(), local), "{local}");
        }
        assert!(uses_proxies(HttpClients::default(), "http://agent.example/"));
        assert!(!uses_proxies(HttpClients::default().without_proxies(), "http://agent.example/"));
    }
}
