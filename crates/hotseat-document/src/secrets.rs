//! Detects names of secrets, and masks secrets written literally in files.

use std::borrow::Cow;
use std::ops::Range;

/// Words that mark a name as secret.
const SECRET_WORDS: [&str; 11] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "CREDENTIAL",
    "AUTHORIZATION",
    "BEARER",
];

/// Suffixes that mark a name as secret.
const SECRET_SUFFIXES: [&str; 3] = ["_KEY", "_PASS", "_PWD"];

/// Headers whose values are secret.
const SECRET_HEADERS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
];

/// Suffixes that mark a header as secret.
const SECRET_HEADER_SUFFIXES: [&str; 3] = ["-key", "-token", "-secret"];

/// Returns true if the name of a variable or member marks it as secret, in any spelling: `API_KEY`, `apiKey`,
/// `DB_PASS`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let joined = name.replace('_', "");
    SECRET_WORDS.iter().any(|word| joined.contains(word))
        || SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Returns true if the name of a header marks its value as secret.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_HEADERS.contains(&&*name)
        || name.starts_with("x-") && SECRET_HEADER_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Replaces each byte of a literal key, password or header value by `x`, so that columns stay the same.
/// References to variables (`${NAME}`) stay readable.
pub(crate) fn mask_literal_secrets(line: &str) -> Cow<'_, str> {
    let secrets = find_literal_secrets(line);
    if secrets.is_empty() {
        return Cow::Borrowed(line);
    }
    let mut masked = String::with_capacity(line.len());
    let mut end = 0;
    for secret in secrets {
        masked.push_str(&line[end..secret.start]);
        masked.extend(std::iter::repeat_n('x', secret.len()));
        end = secret.end;
    }
    masked.push_str(&line[end..]);
    Cow::Owned(masked)
}

/// Returns the spans of literal secrets in a line, in order.
fn find_literal_secrets(line: &str) -> Vec<Range<usize>> {
    let mut secrets: Vec<Range<usize>> = Vec::new();
    for (colon, _) in line.match_indices(':') {
        if secrets.last().is_some_and(|last| colon < last.end) {
            continue;
        }
        let secret = match line[colon..].starts_with("://") {
            true => password_in_address(line, colon + "://".len()),
            false => value_of_secret_key(line, colon),
        };
        secrets.extend(secret.filter(|secret| !secret.is_empty() && !line[secret.clone()].contains("${")));
    }
    secrets
}

/// Returns the password of an address: `scheme://user:password@host`.
pub fn address_password(address: &str) -> Option<&str> {
    let start = address.find("://")? + "://".len();
    password_in_address(address, start)
        .map(|password| &address[password])
        .filter(|password| !password.is_empty())
}

/// Returns the span of the password of an address whose authority starts at `start`.
fn password_in_address(line: &str, start: usize) -> Option<Range<usize>> {
    let rest = &line[start..];
    let authority =
        &rest[..rest.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).unwrap_or(rest.len())];
    let (credentials, _) = authority.rsplit_once('@')?;
    let (user, password) = credentials.split_once(':')?;
    let first = start + user.len() + 1;
    Some(first..first + password.len())
}

/// Returns the span of the value after a colon, if a secret key precedes it.
fn value_of_secret_key(line: &str, colon: usize) -> Option<Range<usize>> {
    let before = line[..colon].trim_end().trim_end_matches(['"', '\'']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let key = &before[before.trim_end_matches(is_name).len()..];
    let is_api_key = key.eq_ignore_ascii_case("apikey") || key.eq_ignore_ascii_case("api_key");
    if !is_api_key && !is_secret_header(key) {
        return None;
    }
    let rest = &line[colon + 1..];
    let start = colon + 1 + (rest.len() - rest.trim_start().len());
    let value = &line[start..];
    let length = match value.chars().next()? {
        // The secrets of a block, list or mapping have keys of their own.
        '|' | '>' | '{' | '[' => return None,
        quote @ ('"' | '\'') => {
            let inside = &value[1..];
            let end = inside.match_indices(quote).find(|(end, _)| !inside[..*end].ends_with('\\'));
            let length = end.map_or(inside.len(), |(end, _)| end);
            return Some(start + 1..start + 1 + length);
        }
        // In flow style a comma ends a plain value.
        _ if line[..colon].contains(['{', '[']) => value.find([',', '}', ']']).unwrap_or(value.len()),
        _ => value.find(" #").unwrap_or(value.len()),
    };
    Some(start..start + value[..length].trim_end().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_secret_names_in_any_spelling() {
        for name in [
            "OPENAI_API_KEY",
            "apiKey",
            "SIGNING_KEY",
            "DB_PASS",
            "DB_PWD",
            "db-password",
            "githubToken",
            "Authorization",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["KEYBOARD", "COMPASS", "MONKEY", "PATH", "PWDS", "KEY", "AUTHOR"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn masks_literal_secrets_in_place() {
        for (line, masked) in [
            ("api_key: sk-live-1 # mine", "api_key: xxxxxxxxx # mine"),
            ("a: { api_key: sk-1, modl: x }", "a: { api_key: xxxx, modl: x }"),
            (r#"{"apiKey": "sk-\"1", "b": 2}"#, r#"{"apiKey": "xxxxxx", "b": 2}"#),
            ("Authorization: Bearer a,b", "Authorization: xxxxxxxxxx"),
            ("x-my-token: 'abc'", "x-my-token: 'xxx'"),
            ("endpoint: http://me:pa:ss@host/x:1", "endpoint: http://me:xxxxx@host/x:1"),
            ("api_key: \"open", "api_key: \"xxxx"),
            ("api_key: pässe", "api_key: xxxxxx"),
        ] {
            assert_eq!(mask_literal_secrets(line), masked);
        }
    }

    #[test]
    fn keeps_other_text_readable() {
        for line in [
            "api_key: ${ENV.KEY}",
            "Authorization: Bearer ${ENV.TOKEN}",
            "args_not_match: { token: declined }",
            "endpoint: http://host:80/a@b",
            "api_key:",
            "api_key: |",
        ] {
            assert_eq!(mask_literal_secrets(line), line);
        }
    }
}
