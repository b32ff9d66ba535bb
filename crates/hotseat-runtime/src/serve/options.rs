//! Settings of a server.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use url::Url;

/// Settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 selects a free port.
    pub port: u16,
    /// Origins of pages that may use the server, as browsers send them; `*` allows all.
    pub allow_origins: Vec<String>,
    /// Maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    /// Maximum size of all request bodies in memory together, in bytes.
    pub max_buffered_bytes: usize,
    /// Maximum number of open connections. Further ones take the place of idle ones, or wait until one closes.
    pub max_connections: usize,
    /// Time limit for the head of a request, including the next one on a kept-alive connection.
    pub head_timeout: Duration,
    /// Time limit for the body of a request.
    pub body_timeout: Duration,
    /// Maximum time that a client may leave a piece of an answer unread.
    pub write_timeout: Duration,
    /// Interval without events after which a comment is sent, so that proxies do not close the connection.
    pub keep_alive: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            allow_origins: Vec::new(),
            max_body_bytes: 8 * 1024 * 1024,
            max_buffered_bytes: 64 * 1024 * 1024,
            max_connections: 1024,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// Returns the origin of pages as browsers send it: scheme and host in lower case, and neither a slash at the end nor the usual
/// port. Also `*` for all pages, and `null` for those without an address.
///
/// # Errors
/// If no browser sends such an origin.
pub fn parse_origin(text: &str) -> Result<String, OriginError> {
    if matches!(text, "*" | "null") {
        return Ok(text.to_string());
    }
    let url = Url::parse(text).ok().filter(|url| url.has_host() && !url.authority().contains('*'));
    let url = url.ok_or(OriginError::NoOrigin)?;
    let is_bare = matches!(url.path(), "" | "/")
        && !url.authority().contains('@')
        && url.query().or(url.fragment()).is_none();
    let origin = format!("{}://{}", url.scheme(), url.authority().rsplit('@').next().unwrap_or_default());
    match is_bare {
        true => Ok(origin),
        false => Err(OriginError::TooLong { origin }),
    }
}

/// A text that is no origin of pages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// It has no scheme or no host.
    #[error("expected the scheme, host and port of pages, such as http://localhost:3000, or * for all pages")]
    NoOrigin,
    /// It has more than an origin, such as a path.
    #[error("browsers send only scheme, host and port of a page: write {origin}")]
    TooLong {
        /// The origin in it.
        origin: String,
    },
}
