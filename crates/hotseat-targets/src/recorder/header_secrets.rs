//! Secrets in the headers of requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hotseat_document::is_secret_header;

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
