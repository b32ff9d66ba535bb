//! Addresses of proxied servers.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use hotseat_http::check_encryption;
use url::Url;

use crate::definition::DefinitionProblem;

/// Address of a proxied server.
pub(super) struct UrlUpstream {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

impl UrlUpstream {
    /// Fails if the address or a header is invalid. The values are not part of the error.
    pub(super) fn new<'a>(
        url: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<UrlUpstream, DefinitionProblem> {
        let url = Url::parse(url).map_err(|error| DefinitionProblem::Url(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(DefinitionProblem::UrlScheme);
        }
        check_encryption(&url).map_err(|error| DefinitionProblem::Url(error.to_string()))?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let wrong = || DefinitionProblem::Header(name.clone());
            let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
            map.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
        }
        Ok(UrlUpstream { url, headers: map })
    }
}
