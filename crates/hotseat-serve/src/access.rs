//! Access from this machine only.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};

/// A request that a server must not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// A header that may occur once occurs several times, so that two programs could understand it differently.
    #[error("the header `{0}` occurs several times; send it once")]
    Repeated(HeaderName),
    /// The request is for another host.
    #[error("the header `Host` must name this machine")]
    Host,
    /// A page of another site sent the request.
    #[error("pages of other sites must not use this server")]
    Origin,
}

impl AccessError {
    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            AccessError::Repeated(_) => StatusCode::BAD_REQUEST,
            AccessError::Host | AccessError::Origin => StatusCode::FORBIDDEN,
        }
    }
}

/// Headers that say for whom a request is and which page sent it. A value that is not text is empty: it names nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSource<'h> {
    /// The host that the request is for.
    pub host: Option<&'h str>,
    /// The origin of the page that sent the request.
    pub origin: Option<&'h str>,
}

impl<'h> RequestSource<'h> {
    /// Reads the headers of a request. Fails if one of them is repeated.
    pub fn from_headers(headers: &'h HeaderMap) -> Result<Self, AccessError> {
        let text = |name: HeaderName| {
            let mut values = headers.get_all(&name).iter();
            match (values.next(), values.next()) {
                (value, None) => Ok(value.map(|value| value.to_str().unwrap_or_default())),
                (_, Some(_)) => Err(AccessError::Repeated(name)),
            }
        };
        Ok(RequestSource { host: text(header::HOST)?, origin: text(header::ORIGIN)? })
    }

    /// Returns true if the request is for this machine.
    pub fn is_for_this_machine(&self) -> bool {
        self.host.is_some_and(is_local)
    }
}

/// Pages of foreign sites must not reach a server through a browser, even by a name that resolves to this
/// machine. Fails if a request has the headers of such a page.
pub fn check_access(headers: &HeaderMap) -> Result<(), AccessError> {
    let source = RequestSource::from_headers(headers)?;
    if !source.is_for_this_machine() {
        return Err(AccessError::Host);
    }
    match source.origin {
        None => Ok(()),
        Some(origin) if origin.split_once("://").is_some_and(|(_, host)| is_local(host)) => Ok(()),
        Some(_) => Err(AccessError::Origin),
    }
}

/// Returns true if a host, with or without a port, is the local machine.
pub fn is_local(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or_default(),
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return false;
    }
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_local_host_names() {
        for host in [
            "localhost",
            "localhost:80",
            "LOCALHOST:1",
            "a.localhost:1",
            "127.0.0.1:8080",
            "127.1.2.3",
            "[::1]:80",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:80",
            "10.0.0.1:80",
            "[2001:db8::1]:80",
            "127.0.0.1.evil.example",
            "localhost:80@evil.example",
            "localhost:evil.example:80",
            "[::1]evil.example",
            "[::1",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn repeated_headers_are_rejected() {
        for (name, value) in [(header::HOST, "localhost"), (header::ORIGIN, "http://localhost")] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost".parse().unwrap());
            headers.insert(header::ORIGIN, "http://localhost".parse().unwrap());
            assert_eq!(check_access(&headers), Ok(()));
            headers.append(&name, value.parse().unwrap());
            assert_eq!(check_access(&headers), Err(AccessError::Repeated(name)));
        }
    }
}
