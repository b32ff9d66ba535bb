//! Proxies that the environment names.

use std::collections::BTreeMap;

use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use crate::client_error::ClientError;

/// Variables with addresses of proxies. Of each pair, the first that is set counts.
const VARIABLES: [[&str; 2]; 3] =
    [["HTTP_PROXY", "http_proxy"], ["HTTPS_PROXY", "https_proxy"], ["ALL_PROXY", "all_proxy"]];

/// Checks the proxies that these variables of the environment name. Fails if one has another value than the address of a proxy,
/// since requests would go directly to their servers.
pub fn check_proxies(environment: &BTreeMap<String, String>) -> Result<(), ClientError> {
    for variables in VARIABLES {
        let set = variables.into_iter().find_map(|variable| Some((variable, environment.get(variable)?)));
        let Some((variable, value)) = set else { continue };
        if !value.is_empty() && !is_proxy_address(value) {
            return Err(ClientError::Proxy { variable, value: without_credentials(value) });
        }
    }
    Ok(())
}

/// True if a value is the address of a proxy.
fn is_proxy_address(value: &str) -> bool {
    let anywhere = http::Uri::from_static("http://a/");
    let proxy = Matcher::builder().all(value).build().intercept(&anywhere);
    // A port that is no number up to 65535 would be ignored.
    proxy.is_some_and(|proxy| Url::parse(&proxy.uri().to_string()).is_ok())
}

/// Returns an address, possibly malformed, without its user and password.
fn without_credentials(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    match (rest.rsplit_once('@'), scheme) {
        (None, _) => address.to_string(),
        (Some((_, host)), "") => format!("redacted@{host}"),
        (Some((_, host)), scheme) => format!("{scheme}://redacted@{host}"),
    }
}
