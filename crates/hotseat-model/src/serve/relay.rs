//! Relays requests of agents to a provider: bytes pass unchanged and as they arrive.

use std::fmt;

use bytes::Bytes;
use hotseat_http::{
    HttpClients, IncomingResponse, check_encryption, passed_headers, read_header_name, root_cause,
    shown_address,
};
use http::Method;
use http::header::{self, HeaderMap, HeaderValue};
use url::Url;

use super::cassette::query_keys;
use crate::{ModelError, ModelErrorKind, Secret, TimeLimits};

/// Headers of requests that hold keys.
const KEY_HEADERS: &[&str] = &["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/// A provider that answers the requests of a served model.
pub struct ModelRelay {
    base: Url,
    /// Headers of every request; they replace those of the agent.
    headers: HeaderMap,
    clients: HttpClients,
}

impl fmt::Debug for ModelRelay {
    /// Shows the host only: URLs may contain passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRelay").field("host", &self.base.host_str()).finish_non_exhaustive()
    }
}

impl ModelRelay {
    /// Creates a relay to a base URL, as clients of the provider have it. `headers` are added to every request.
    ///
    /// # Errors
    /// If it is not an HTTP URL, or a header is invalid.
    pub fn new(base: &str, headers: &[(String, Secret)]) -> Result<ModelRelay, ModelError> {
        let wrong = |message: String| ModelError::new(ModelErrorKind::Configuration, message);
        let base = Url::parse(base)
            .map_err(|error| wrong(format!("the URL of the provider is invalid: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("the URL of the provider must start with `http://` or `https://`".to_owned()));
        }
        check_encryption(&base)?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let invalid = |_| wrong(format!("the header {name:?} has an invalid value"));
            let mut value = HeaderValue::try_from(value.reveal()).map_err(invalid)?;
            let name = read_header_name(name).map_err(|error| wrong(error.to_string()))?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
        let clients = HttpClients::default().without_user_agent();
        let clients = clients.with_connect_timeout(TimeLimits::default().connect);
        Ok(ModelRelay { base, headers: map, clients })
    }

    /// Sends a request, and waits for the head of the answer.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        query: Option<&str>,
        agent_headers: &HeaderMap,
        body: Bytes,
    ) -> Result<IncomingResponse, ModelError> {
        let request = self.clients.request(method, &self.url(path, query))?;
        let mut headers = relayed_headers(agent_headers);
        // A compressed answer could be neither read nor recorded.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        request.headers(headers).body(body).send().await.map_err(|error| {
            let cause = root_cause(&error);
            let message = format!("the provider at {} did not answer: {cause}", self.address());
            ModelError::new(ModelErrorKind::Network, message)
        })
    }

    /// Returns the URL of a path below the base. `v1` at the end of the base and at the start of the path counts once.
    fn url(&self, path: &str, query: Option<&str>) -> Url {
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/');
        let path = if base.ends_with("/v1") { path.strip_prefix("v1/").unwrap_or(path) } else { path };
        let path = format!("{base}/{path}");
        url.set_path(&path);
        url.set_query(query.or(self.base.query()));
        url
    }

    /// Returns the base URL, for errors.
    pub(super) fn address(&self) -> String {
        shown_address(&self.base)
    }

    /// Returns the keys that the relay adds: the values of its headers, and those in the query of its URL.
    pub(super) fn keys(&self) -> impl Iterator<Item = String> {
        let values = self.headers.values().filter_map(|value| value.to_str().ok());
        values.filter_map(key_of).chain(keys_of_query(self.base.query()))
    }
}

/// Returns the keys in the headers and the query of a request.
pub(super) fn request_keys(headers: &HeaderMap, query: Option<&str>) -> impl Iterator<Item = String> {
    let values = KEY_HEADERS.iter().flat_map(|name| headers.get_all(*name));
    values.filter_map(|value| key_of(value.to_str().ok()?)).chain(keys_of_query(query))
}

fn keys_of_query(query: Option<&str>) -> impl Iterator<Item = String> {
    query.into_iter().flat_map(query_keys).filter_map(|value| key_of(&value))
}

/// Returns the key in the value of a header or a parameter, without its scheme.
fn key_of(value: &str) -> Option<String> {
    /// Replacing shorter texts would garble recordings.
    const MIN_KEY_BYTES: usize = 6;
    // A key with blanks is one key: its last word alone may be a word of any text.
    let is_scheme = |word: &str| ["bearer", "basic", "token"].contains(&word.to_ascii_lowercase().as_str());
    let key = match value.trim().split_once(' ') {
        Some((scheme, key)) if is_scheme(scheme) => key.trim(),
        _ => value.trim(),
    };
    (key.len() >= MIN_KEY_BYTES).then(|| key.to_owned())
}

/// Returns the headers that pass through a relay. Cookies are for another host.
pub(super) fn relayed_headers(headers: &HeaderMap) -> HeaderMap {
    passed_headers(headers, &[header::SET_COOKIE])
}

#[cfg(test)]
mod tests {
    use super::{ModelRelay, key_of};

    #[test]
    fn keys_are_whole() {
        for (header, key) in [
            ("Bearer sk-123456", Some("sk-123456")),
            ("basic dXNlcjpw", Some("dXNlcjpw")),
            ("sk-123456", Some("sk-123456")),
            ("Bearer not needed", Some("not needed")),
            ("pass phrase", Some("pass phrase")),
            ("Bearer none", None),
            ("", None),
        ] {
            assert_eq!(key_of(header).as_deref(), key, "{header}");
        }
    }

    #[test]
    fn the_version_counts_once() {
        for (base, path, expected) in [
            ("https://a.example/v1", "chat/completions", "https://a.example/v1/chat/completions"),
            ("https://a.example/v1/", "v1/chat/completions", "https://a.example/v1/chat/completions"),
            ("https://a.example", "v1/messages", "https://a.example/v1/messages"),
            ("https://a.example/x", "models", "https://a.example/x/models"),
        ] {
            let relay = ModelRelay::new(base, &[]).unwrap();
            assert_eq!(relay.url(path, None).as_str(), expected);
        }
    }
}
