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
    #[cfg(feature = "tls")]
    if let Some(problem) = crate::tls_error::describe_problem(cause) {
        return problem;
    }
    cause.to_string()
}
