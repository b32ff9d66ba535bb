//! Names of headers that users set for requests, and headers that proxies pass on.

use http::header::{self, HeaderMap, HeaderName};

/// Headers that belong to the connection, which the client manages.
const CONNECTION_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that a proxy sets itself, or that are for another host.
const PROXY_HEADERS: [HeaderName; 4] =
    [header::ACCEPT_ENCODING, header::HOST, header::PROXY_AUTHENTICATE, header::PROXY_AUTHORIZATION];

/// The name of a header that cannot be set for a request.
#[derive(Debug, thiserror::Error)]
pub enum HeaderNameError {
    /// Not a name of HTTP.
    #[error("`{0}` is not a header name")]
    Invalid(String),
    /// A header of the connection: another value would break the request.
    #[error("the header `{0}` belongs to the connection and cannot be set; remove it")]
    Connection(String),
}

/// Returns true if a header belongs to the connection: it is neither set by users nor passed on by proxies.
pub fn is_connection_header(name: &HeaderName) -> bool {
    CONNECTION_HEADERS.contains(&name.as_str())
}

/// Returns the headers that a proxy passes on: not those of the connection, those that a proxy sets itself or that are
/// for another host, and `others`.
pub fn passed_headers(headers: &HeaderMap, others: &[HeaderName]) -> HeaderMap {
    let is_passed = |name: &HeaderName| {
        !is_connection_header(name) && !PROXY_HEADERS.contains(name) && !others.contains(name)
    };
    let passed = headers.iter().filter(|(name, _)| is_passed(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Reads the name of a header that users set. `host` is one of them: servers on one address differ by it.
pub fn read_header_name(name: &str) -> Result<HeaderName, HeaderNameError> {
    match HeaderName::try_from(name) {
        Ok(read) if is_connection_header(&read) => Err(HeaderNameError::Connection(name.to_owned())),
        Ok(read) => Ok(read),
        Err(_) => Err(HeaderNameError::Invalid(name.to_owned())),
    }
}
