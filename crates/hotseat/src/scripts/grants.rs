//! What the project file grants to scripts. Nothing is granted where it says nothing.

use std::path::PathBuf;
use std::time::Duration;

/// What scripts may reach.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// The folder of the project. Paths start from there, and nothing outside of it is ever reached.
    pub root: PathBuf,
    /// The project file, which no script may change.
    pub file: Option<PathBuf>,
    /// Where `fetch` may go.
    pub hosts: Vec<HostPattern>,
    /// Files and folders of the project that may be read.
    pub read: Vec<String>,
    /// Those that may be written, and read.
    pub write: Vec<String>,
    /// Environment variables that may be read.
    pub env: Vec<String>,
    /// How long a call may take, where what calls it does not say so.
    pub timeout: Option<Duration>,
    /// How many bytes a script may hold.
    pub memory: Option<usize>,
}

/// A host that may be reached: `api.example.com`, `*.example.com`, each with a port or without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// Without the `*.`, in lower case.
    name: String,
    /// Whether those below the name are meant, and not the name itself.
    below: bool,
    /// Without one, every port.
    port: Option<u16>,
}

impl HostPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<HostPattern, String> {
        let wrong =
            || format!("`{text}` is no host: write `api.example.com`, `*.example.com` or `127.0.0.1:8080`");
        if text.contains(['/', '?', '#', '@']) || text.chars().any(char::is_whitespace) {
            return Err(wrong());
        }
        let (name, port) = match text.strip_prefix('[') {
            // An address of six groups has colons of its own.
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
        Ok(HostPattern { name: name.to_ascii_lowercase(), below, port })
    }

    fn fits(&self, host: &str, port: Option<u16>) -> bool {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let named = match self.below {
            true => host.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            false => host == self.name,
        };
        named && self.port.is_none_or(|own| Some(own) == port)
    }
}

impl Grants {
    /// Whether an address may be reached.
    pub fn reaches(&self, url: &reqwest::Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        self.hosts.iter().any(|pattern| pattern.fits(host, url.port_or_known_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(pattern: &str, url: &str) -> bool {
        let hosts = vec![HostPattern::parse(pattern).unwrap()];
        Grants { hosts, ..Grants::default() }.reaches(&url.parse().unwrap())
    }

    #[test]
    fn a_host_is_what_is_written_and_nothing_that_looks_like_it() {
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
