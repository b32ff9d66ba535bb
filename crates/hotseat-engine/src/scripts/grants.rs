//! Permissions that the project file grants to scripts. The default is none.

use std::path::PathBuf;
use std::time::Duration;

/// Permissions of scripts.
#[derive(Debug, Clone, Default)]
pub struct ScriptGrants {
    /// Project folder. Paths are relative to it, and no file outside of it is accessible.
    pub root: PathBuf,
    /// Project file, which scripts may not change.
    pub file: Option<PathBuf>,
    /// Names of further files and folders that scripts may not change: settings and saved runs.
    pub protected: Vec<&'static str>,
    /// Hosts that `fetch` may contact.
    pub hosts: Vec<HostPattern>,
    /// Files and folders that may be read.
    pub read: Vec<String>,
    /// Files and folders that may be read and written.
    pub write: Vec<String>,
    /// Environment variables that may be read.
    pub env: Vec<String>,
    /// Default time limit of a call.
    pub timeout: Option<Duration>,
    /// Memory limit of a script, in bytes.
    pub memory: Option<usize>,
}

/// A permitted host: `api.example.com` or `*.example.com`, with or without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// Name in lower case, without the `*.`.
    name: String,
    /// True if only subdomains match, not the name itself.
    subdomains: bool,
    /// Any port if `None`.
    port: Option<u16>,
}

/// A text that is no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host: write `api.example.com`, `*.example.com` or `127.0.0.1:8080`")]
pub struct HostPatternError(String);

impl HostPattern {
    /// Parses a pattern. Fails if the text is not a host.
    pub fn parse(text: &str) -> Result<HostPattern, HostPatternError> {
        let wrong = || HostPatternError(text.to_string());
        if text.contains(['/', '?', '#', '@']) || text.chars().any(char::is_whitespace) {
            return Err(wrong());
        }
        let (name, port) = match text.strip_prefix('[') {
            // An IPv6 address contains colons.
            Some(rest) => {
                let (name, port) = rest.split_once(']').ok_or_else(wrong)?;
                (name, port.strip_prefix(':').or(Some("").filter(|_| port.is_empty())).ok_or_else(wrong)?)
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let port = match port {
            "" => None,
            port => Some(port.parse().map_err(|_| wrong())?),
        };
        let (name, below) = match name.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (name, false),
        };
        if name.is_empty() || name.contains('*') {
            return Err(wrong());
        }
        Ok(HostPattern { name: name.to_ascii_lowercase(), subdomains: below, port })
    }

    fn matches(&self, host: &str, port: Option<u16>) -> bool {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let named = match self.subdomains {
            true => host.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            false => host == self.name,
        };
        named && self.port.is_none_or(|own| Some(own) == port)
    }
}

impl ScriptGrants {
    /// Returns true if requests to this URL are permitted.
    pub fn permits_host(&self, url: &url::Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        self.hosts.iter().any(|pattern| pattern.matches(host, url.port_or_known_default()))
    }

    /// Returns the port of a URL if requests to its host are permitted at other ports only.
    pub fn unlisted_port(&self, url: &url::Url) -> Option<u16> {
        let host = url.host_str()?;
        let is_listed = self.hosts.iter().any(|pattern| pattern.matches(host, pattern.port));
        url.port_or_known_default().filter(|_| is_listed && !self.permits_host(url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(pattern: &str, url: &str) -> bool {
        let hosts = vec![HostPattern::parse(pattern).unwrap()];
        ScriptGrants { hosts, ..ScriptGrants::default() }.permits_host(&url.parse().unwrap())
    }

    #[test]
    fn matches_hosts_exactly() {
        for (pattern, url) in [
            ("api.example.com", "https://api.example.com/x"),
            ("API.example.com", "http://api.EXAMPLE.com:81/"),
            ("api.example.com:443", "https://api.example.com/"),
            ("*.example.com", "https://a.b.example.com/"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("[::1]:8080", "http://[::1]:8080/"),
            ("[::1]", "http://[::1]/"),
        ] {
            assert!(reaches(pattern, url), "{pattern} {url}");
        }
        for (pattern, url) in [
            ("api.example.com", "https://example.com/"),
            ("api.example.com", "https://api.example.com.evil.test/"),
            ("api.example.com", "https://evil.test/api.example.com"),
            ("api.example.com", "https://api.example.com@evil.test/"),
            ("api.example.com:443", "http://api.example.com/"),
            ("*.example.com", "https://example.com/"),
            ("*.example.com", "https://notexample.com/"),
            ("127.0.0.1:8080", "http://127.0.0.1:8081/"),
        ] {
            assert!(!reaches(pattern, url), "{pattern} {url}");
        }
        for wrong in ["", "*", "*.*.com", "https://a.test", "a.test:x", "a.test/", "[::1", "u@a.test", "a b"]
        {
            assert!(HostPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
