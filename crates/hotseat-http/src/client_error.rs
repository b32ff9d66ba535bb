//! Reasons why there is no client for an address, and the causes of errors.

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
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
