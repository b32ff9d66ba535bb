//! Reasons why there is no client for an address, and the causes of errors.

use std::error::Error;

use url::Url;

/// An HTTP client that could not be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// There are no certificates, for example.
    #[error("the HTTP client could not be created: {0}")]
    Settings(String),
    /// This build has no encryption.
    #[error("addresses with `https://` need the feature `https` of the crate `hotseat`")]
    NoEncryption,
    /// A variable of the environment has no address of a proxy.
    #[error(
        "`{variable}` is no address of a proxy: {value:?}; write `http://HOST:PORT`, or unset the variable"
    )]
    Proxy {
        /// The variable.
        variable: &'static str,
        /// Its value, without credentials.
        value: String,
    },
}

/// A proxy that cannot be reached, or that opens no way to the server.
#[derive(Debug, thiserror::Error)]
#[error("through the proxy {proxy}: {}", root_cause(&**source))]
pub(crate) struct ProxyFailure {
    pub proxy: http::Uri,
    pub source: Box<dyn Error + Send + Sync>,
}

/// Refuses an address that this build cannot reach. Fails if it is encrypted, and the feature `tls` is off.
pub fn check_encryption(url: &Url) -> Result<(), ClientError> {
    if cfg!(feature = "tls") || url.scheme() != "https" { Ok(()) } else { Err(ClientError::NoEncryption) }
}

/// Returns a URL without its password and query, for errors.
pub fn shown_address(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Returns the innermost cause of an error; the outer ones only repeat that a request failed.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    // A failure of a proxy names its own cause.
    while !cause.is::<ProxyFailure>()
        && let Some(inner) = cause.source()
    {
        cause = inner;
    }
    match cause {
        #[cfg(feature = "tls")]
        cause if speaks_no_tls(cause) => NO_TLS.to_string(),
        cause => cause.to_string(),
    }
}

#[cfg(feature = "tls")]
const NO_TLS: &str =
    "the server does not speak TLS (`https://`) at this port; try the address with `http://`";

/// True if a server answered the start of TLS in another protocol.
#[cfg(feature = "tls")]
fn speaks_no_tls(mut cause: &(dyn std::error::Error + 'static)) -> bool {
    // An I/O error is not the source of the one that contains it.
    while let Some(inner) = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        cause = inner;
    }
    let error = cause.downcast_ref::<rustls::Error>();
    matches!(error, Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)))
}
