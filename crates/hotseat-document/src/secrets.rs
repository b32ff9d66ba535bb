//! Names that secrets have, and masking of secrets that are written out in a file.

use std::borrow::Cow;
use std::ops::Range;

/// Parts of names that only secrets have.
const SECRET_WORDS: [&str; 9] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "CREDENTIAL",
];

/// Ends of names that secrets have.
const SECRET_SUFFIXES: [&str; 3] = ["_KEY", "_PASS", "_PWD"];

/// Header names whose values are secrets, whatever they consist of.
const SECRET_HEADERS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
];

/// Ends of names of headers that are made for secrets.
const SECRET_HEADER_SUFFIXES: [&str; 3] = ["-key", "-token", "-secret"];

/// Whether a variable or member is a secret by its name, in any spelling: `API_KEY`, `apiKey`, `DB_PASS`.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let joined = name.replace('_', "");
    SECRET_WORDS.iter().any(|word| joined.contains(word))
        || SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether the value of a header is a secret by the header's name.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_HEADERS.contains(&&*name)
        || name.starts_with("x-") && SECRET_HEADER_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// A line of a file in which an `x` stands for each byte of a key, password or header that is written out, so that
/// everything else stays in its place. References to variables (`${NAME}`) stay readable.
pub(crate) fn mask_written_secrets(line: &str) -> Cow<'_, str> {
    let secrets = written_secrets(line);
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

/// Where secrets are written out in a line, in order.
fn written_secrets(line: &str) -> Vec<Range<usize>> {
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

/// The password that an address carries: `scheme://user:password@host`.
pub fn address_password(address: &str) -> Option<&str> {
    let start = address.find("://")? + "://".len();
    password_in_address(address, start)
        .map(|password| &address[password])
        .filter(|password| !password.is_empty())
}

/// The password of an address whose part behind `://` begins at `start`.
fn password_in_address(line: &str, start: usize) -> Option<Range<usize>> {
    let rest = &line[start..];
    let authority =
        &rest[..rest.find(|c: char| c.is_whitespace() || "/?#\"'".contains(c)).unwrap_or(rest.len())];
    let (credentials, _) = authority.rsplit_once('@')?;
    let (user, password) = credentials.split_once(':')?;
    let first = start + user.len() + 1;
    Some(first..first + password.len())
}

/// The value behind a colon, if a key made for secrets stands before it.
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
        // A block, a list or a map: its secrets have keys of their own, or stand on other lines.
        '|' | '>' | '{' | '[' => return None,
        quote @ ('"' | '\'') => {
            let inside = &value[1..];
            let end = inside.match_indices(quote).find(|(end, _)| !inside[..*end].ends_with('\\'));
            let length = end.map_or(inside.len(), |(end, _)| end);
            return Some(start + 1..start + 1 + length);
        }
        // Within braces a comma ends a plain value.
        _ if line[..colon].contains(['{', '[']) => value.find([',', '}', ']']).unwrap_or(value.len()),
        _ => value.find(" #").unwrap_or(value.len()),
    };
    Some(start..start + value[..length].trim_end().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_any_spelling() {
        for name in
            ["OPENAI_API_KEY", "apiKey", "SIGNING_KEY", "DB_PASS", "DB_PWD", "db-password", "githubToken"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["KEYBOARD", "COMPASS", "MONKEY", "PATH", "PWDS", "KEY"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn written_secrets_are_masked_in_their_place() {
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
            assert_eq!(mask_written_secrets(line), masked);
        }
    }

    #[test]
    fn what_is_no_written_secret_stays_readable() {
        for line in [
            "api_key: ${ENV.KEY}",
            "Authorization: Bearer ${ENV.TOKEN}",
            "args_not_match: { token: declined }",
            "endpoint: http://host:80/a@b",
            "api_key:",
            "api_key: |",
        ] {
            assert_eq!(mask_written_secrets(line), line);
        }
    }
}
