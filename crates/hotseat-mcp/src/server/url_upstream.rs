//! Addresses of proxied servers, and the HTTP clients that reach them.

use std::sync::OnceLock;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

use crate::definition::DefinitionProblem;

/// Maximum time to connect to a proxied server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// HTTP clients of a run: one for servers on this machine, one for all others. Created when they are needed.
#[derive(Default)]
pub(super) struct UpstreamClients {
    plain: OnceLock<Result<Client, String>>,
    encrypted: OnceLock<Result<Client, String>>,
}

impl UpstreamClients {
    pub(super) fn client(&self, url: &Url) -> Result<Client, String> {
        let is_encrypted = url.scheme() == "https";
        let cell = if is_encrypted { &self.encrypted } else { &self.plain };
        cell.get_or_init(|| build_client(is_encrypted)).clone()
    }
}

fn build_client(is_encrypted: bool) -> Result<Client, String> {
    // The first client sets the process-wide provider, unless the program has set one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .pool_idle_timeout(Duration::from_secs(2))
        .pool_max_idle_per_host(usize::MAX)
        // Credentials in headers must not pass through proxies that the environment names.
        .no_proxy();
    // Plain HTTP needs no certificates, and a machine may have none.
    let builder = if is_encrypted { builder } else { builder.tls_certs_only([]) };
    builder.build().map_err(|error| format!("the HTTP client could not be created: {error}"))
}

/// Address of a proxied server.
pub(super) struct UrlUpstream {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

impl UrlUpstream {
    /// # Errors
    /// If the address or a header is invalid. The values are not part of the error.
    pub(super) fn new<'a>(
        url: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<UrlUpstream, DefinitionProblem> {
        let url = Url::parse(url).map_err(|error| DefinitionProblem::Url(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(DefinitionProblem::UrlScheme);
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let wrong = || DefinitionProblem::Header(name.clone());
            let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
            map.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
        }
        Ok(UrlUpstream { url, headers: map })
    }
}
