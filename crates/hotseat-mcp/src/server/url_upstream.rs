//! Addresses of proxied servers.

use axum::http::{HeaderMap, HeaderValue};
use hotseat_http::{check_encryption, read_header_name};
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
            let value = HeaderValue::from_str(value).map_err(|_| {
                DefinitionProblem::Header(format!("the header `{name}` has an invalid value"))
            })?;
            let name =
                read_header_name(name).map_err(|error| DefinitionProblem::Header(error.to_string()))?;
            map.insert(name, value);
        }
        Ok(UrlUpstream { url, headers: map })
    }
}
