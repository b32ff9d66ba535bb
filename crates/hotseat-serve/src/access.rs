//! Access from this machine only.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, header};

/// A request from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The request is for another host.
    #[error("the header `Host` must name this machine")]
    Host,
    /// A page of another site sent the request.
    #[error("pages of other sites must not use this server")]
    Origin,
}

/// Pages of foreign sites must not reach a server through a browser, even by a name that resolves to this
/// machine. Fails if a request has the headers of such a page.
pub fn check_access(headers: &HeaderMap) -> Result<(), AccessError> {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if !text(&header::HOST).is_some_and(is_local) {
        return Err(AccessError::Host);
    }
    match text(&header::ORIGIN) {
        None => Ok(()),
        Some(origin) if origin.split_once("://").is_some_and(|(_, host)| is_local(host)) => Ok(()),
        Some(_) => Err(AccessError::Origin),
    }
}

/// Returns true if a `Host` header names the local machine.
pub fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::is_local;

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
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
