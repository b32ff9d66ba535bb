//! Encrypted connections, also through the tunnel of a proxy.

use std::sync::{Arc, OnceLock};

use http::header::USER_AGENT;
use http::uri::Scheme;
use http::{HeaderMap, Uri};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Intercept;
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use tower_service::Service as _;

use crate::clients::{ClientError, root_cause};
use crate::connector::{ByteStream, ConnectError, Connector};

/// The protocol that encrypted connections are for.
const PROTOCOL: &[u8] = b"http/1.1";

/// What servers are trusted, read when first needed: reading the certificates takes longer than a conversation on this machine.
#[derive(Default)]
pub(crate) struct TlsSettings(OnceLock<Result<Arc<ClientConfig>, ClientError>>);

impl TlsSettings {
    /// Returns the settings. Fails if there are no certificates.
    pub fn get(&self) -> Result<&Arc<ClientConfig>, ClientError> {
        let created = self.0.get_or_init(|| {
            create_config().map(Arc::new).map_err(|error| ClientError::Settings(root_cause(&error)))
        });
        created.as_ref().map_err(Clone::clone)
    }
}

/// Creates the settings with the provider of this process, if the program has set one, and the certificates of the platform.
fn create_config() -> Result<ClientConfig, rustls::Error> {
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.try_with_platform_verifier()?.with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

impl Connector {
    pub(crate) async fn open(&self, server: Uri) -> Result<ByteStream, ConnectError> {
        let mut http = self.http.clone();
        if server.scheme() == Some(&Scheme::HTTP) {
            return Ok(MaybeHttpsStream::Http(MaybeHttpsStream::Http(http.call(server).await?)));
        }
        let tls = self.settings.tls.get()?.clone();
        Ok(MaybeHttpsStream::Http(HttpsConnector::from((http, tls)).call(server).await?))
    }

    /// Opens an encrypted connection to a server through the tunnel of a proxy, which may be encrypted itself.
    pub(crate) async fn open_tunnel(
        &self,
        proxy: Intercept,
        server: Uri,
    ) -> Result<ByteStream, ConnectError> {
        let tls = self.settings.tls.get()?;
        // What the proxy is asked for is no request of this protocol.
        let mut proxy_tls = ClientConfig::clone(tls);
        proxy_tls.alpn_protocols.clear();
        let to_proxy = HttpsConnector::from((self.http.clone(), proxy_tls));
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        if let Some(program) = &self.settings.user_agent {
            tunnel = tunnel.with_headers(HeaderMap::from_iter([(USER_AGENT, program.clone())]));
        }
        HttpsConnector::from((tunnel, tls.clone())).call(server).await
    }
}
