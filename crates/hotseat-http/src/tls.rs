//! Certificates and settings of encrypted connections.

use std::sync::{Arc, OnceLock};

use hyper_rustls::ConfigBuilderExt as _;
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;

use crate::client_error::{ClientError, root_cause};

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
