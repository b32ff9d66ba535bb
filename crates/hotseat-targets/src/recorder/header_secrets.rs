//! Secrets in the headers and addresses of requests, and in variables with the name of a secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hotseat_document::{address_password, is_secret_header, is_secret_name};
use url::form_urlencoded;

/// Shorter values with the name of a secret, such as `true`, are not secrets.
const MIN_SECRET_BYTES: usize = 8;

/// Further names of parameters with secrets in the query of an address.
const SECRET_PARAMETERS: [&str; 6] = ["auth", "code", "key", "pass", "sig", "signature"];

/// Returns the number of bytes from which the texts of a value with this name are secrets; none if the name is not one of
/// a secret.
pub(super) fn min_secret_bytes(name: &str) -> Option<usize> {
    is_secret_name(name).then_some(MIN_SECRET_BYTES)
}

/// True if a variable has the name of a secret and a value that can be one.
pub fn is_secret(name: &str, value: &str) -> bool {
    min_secret_bytes(name).is_some_and(|min_bytes| value.len() >= min_bytes)
}

/// Returns the secrets in an address, each with its name: the password, and parameters of the query with the name of a secret.
/// Encoded ones are returned as written and decoded.
pub fn address_secrets(address: &str) -> Vec<(String, String)> {
    let password = address_password(address).map(|password| {
        // Only in a query a plus sign means a blank.
        let decoded = decode(&password.replace('+', "%2B"));
        ("password".to_string(), password, decoded)
    });
    let behind = address.split_once("://").and_then(|(_, rest)| rest.split_once('?'));
    let is_end = |c: char| c.is_whitespace() || "#\"'".contains(c);
    let query = behind.and_then(|(_, query)| query.split(is_end).next()).unwrap_or_default();
    let parameters = query.split('&').filter_map(|pair| pair.split_once('=')).filter_map(|(name, value)| {
        let name = decode(name);
        let is_secret = is_secret_name(&name)
            || is_secret_header(&name)
            || SECRET_PARAMETERS.iter().any(|other| name.eq_ignore_ascii_case(other));
        (is_secret && value.len() >= MIN_SECRET_BYTES).then(|| (name, value, decode(value)))
    });
    let found = password.into_iter().chain(parameters);
    found
        .flat_map(|(name, written, decoded)| {
            let decoded = (decoded != written).then(|| (name.clone(), decoded));
            std::iter::once((name, written.to_string())).chain(decoded)
        })
        .collect()
}

/// Decodes a name or value of a query.
fn decode(encoded: &str) -> String {
    let pair = format!("={encoded}");
    form_urlencoded::parse(pair.as_bytes()).next().map_or_else(String::new, |(_, value)| value.into_owned())
}

/// Returns the secrets in the value of a header, if its name marks it as secret: a token without its scheme, each value of a
/// cookie, and the password of `Basic`.
pub fn header_secrets(name: &str, value: &str) -> Vec<String> {
    let value = value.trim();
    let has_name = |other: &str| name.eq_ignore_ascii_case(other);
    if !is_secret_header(name) || value.is_empty() {
        return Vec::new();
    }
    if has_name("authorization") || has_name("proxy-authorization") {
        let Some((scheme, token)) = value.split_once(' ') else { return vec![value.to_string()] };
        let token = token.trim();
        let pair = STANDARD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = pair.filter(|_| scheme.eq_ignore_ascii_case("basic"));
        let password = pair.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, password)| password);
        let password = password.map(str::to_string);
        return [Some(token.to_string()), pair, password].into_iter().flatten().collect();
    }
    let cookies = value.split(';').filter_map(|cookie| cookie.split_once('=')).map(|(_, value)| value.trim());
    let cookies = cookies.filter(|_| has_name("cookie")).map(str::to_string);
    std::iter::once(value.to_string()).chain(cookies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_passwords_and_keys_of_addresses() {
        for (address, secrets) in [
            ("https://u:p%40ss+1@host/", &[("password", "p%40ss+1"), ("password", "p@ss+1")][..]),
            ("https://host/?team=blue-one&api_key=abc-defg#x", &[("api_key", "abc-defg")]),
            ("https://host/a?key=short&code=12+4%265678", &[("code", "12+4%265678"), ("code", "12 4&5678")]),
            ("https://host/a?Access-Token=12345678 and more", &[("Access-Token", "12345678")]),
            ("what?token=12345678", &[]),
        ] {
            let found = address_secrets(address);
            let found: Vec<_> = found.iter().map(|(name, secret)| (&**name, &**secret)).collect();
            assert_eq!(found, secrets, "{address}");
        }
    }

    #[test]
    fn finds_tokens_cookies_and_passwords() {
        for (name, value, secrets) in [
            ("Authorization", "Bearer abc", &["abc"][..]),
            ("Authorization", "abc", &["abc"]),
            ("Authorization", "Basic dTpwYXNz", &["dTpwYXNz", "u:pass", "pass"]),
            ("Cookie", "a=one; b=two", &["a=one; b=two", "one", "two"]),
            ("X-Api-Key", "two words", &["two words"]),
            ("X-Team", "blue", &[]),
        ] {
            assert_eq!(header_secrets(name, value), secrets, "{name}: {value}");
        }
    }
}
