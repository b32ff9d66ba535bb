//! Secrets in members with the name of a secret: of JSON values, and of texts that contain JSON.

use serde_json::Value;

use super::header_secrets::min_secret_bytes;

/// Maximum number of characters of a secret in a text. Messages show no more of a text.
const MAX_PRINTED_CHARS: usize = 4000;

/// Collects the secrets in a value and their paths: all texts and numbers in members with the name of a secret, on any level.
/// `is_declared` marks the whole value as secret.
pub fn collect_secrets(name: &str, value: &Value, is_declared: bool, secrets: &mut Vec<(String, String)>) {
    collect_marked(name, value, if is_declared { Some(0) } else { min_secret_bytes(name) }, secrets);
}

/// Collects the texts and numbers of a value that are at least as long as `min_bytes`, if it is marked as secret.
fn collect_marked(path: &str, value: &Value, min_bytes: Option<usize>, secrets: &mut Vec<(String, String)>) {
    let text = match value {
        Value::Object(members) => {
            for (name, value) in members {
                let min_bytes = min_bytes.or_else(|| min_secret_bytes(name));
                collect_marked(&format!("{path}.{name}"), value, min_bytes, secrets);
            }
            return;
        }
        Value::Array(items) => {
            return items.iter().for_each(|item| collect_marked(path, item, min_bytes, secrets));
        }
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) => return,
    };
    if min_bytes.is_some_and(|min_bytes| text.len() >= min_bytes) {
        secrets.push((path.to_string(), text));
    }
}

/// Returns the secrets in a text that contains JSON, whole or not: the values of members that are `declared` secrets or have
/// the name of one. A value that does not end is one with all that follows it.
pub fn printed_secrets(text: &str, declared: &[String]) -> Vec<(String, String)> {
    let mut secrets = Vec::new();
    let mut start_quote = None;
    for (quote, _) in text.match_indices('"') {
        let Some(start) = start_quote.replace(quote) else { continue };
        let Some(value) = text[quote + 1..].trim_start().strip_prefix(':').map(str::trim_start) else {
            continue;
        };
        let Ok(name) = serde_json::from_str::<String>(&text[start..=quote]) else { continue };
        let is_declared = declared.contains(&name);
        if !is_declared && min_secret_bytes(&name).is_none() {
            continue;
        }
        let whole = serde_json::Deserializer::from_str(value).into_iter::<Value>().next();
        if let Some(Ok(whole)) = whole {
            collect_secrets(&name, &whole, is_declared, &mut secrets);
            continue;
        }
        let broken = value.strip_prefix('"').unwrap_or(value);
        let end = quoted_length(value);
        let broken = end.map_or(broken.trim_end(), |length| &value[1..length - 1]);
        collect_secrets(&name, &Value::from(broken), is_declared, &mut secrets);
        if end.is_none() {
            break;
        }
    }
    for (_, secret) in &mut secrets {
        secret.truncate(secret.char_indices().nth(MAX_PRINTED_CHARS).map_or(secret.len(), |(end, _)| end));
    }
    secrets
}

/// Returns the length of the quoted text at the beginning of a text, including its quotes, if it is complete.
fn quoted_length(text: &str) -> Option<usize> {
    let mut at = text.starts_with('"').then_some(1)?;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.as_bytes().get(at..)?)?;
        match text.as_bytes()[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_members_in_any_text() {
        for (text, secrets) in [
            (r#"{"A_TOKEN": "abcdefgh"}"#, &[("A_TOKEN", "abcdefgh")][..]),
            (r#"say "hi": {"a": {"A_TOKEN" : "abc\ndefgh", "b": 1"#, &[("A_TOKEN", "abc\ndefgh")]),
            (r#"{"A_TOKEN": ["abcdefgh", 12345678]}"#, &[("A_TOKEN", "abcdefgh"), ("A_TOKEN", "12345678")]),
            (r#"{"tokens": {"a": "abcdefgh"}"#, &[("tokens.a", "abcdefgh")]),
            (r#"{"tokens": {"a": "abcdefgh"#, &[("tokens", r#"{"a": "abcdefgh"#)]),
            ("{\"A_TOKEN\": \"abcdefgh\n", &[("A_TOKEN", "abcdefgh")]),
            (r#"{"A_TOKEN": "abcd\qefgh", "b": 1}"#, &[("A_TOKEN", r"abcd\qefgh")]),
            (r#"{"A_TOKEN": abcdefgh, "B_TOKEN": 1}"#, &[("A_TOKEN", r#"abcdefgh, "B_TOKEN": 1}"#)]),
            (r#"{"PIN": 1234, "A_TOKEN": "short", "NAME": "abcdefgh"}"#, &[("PIN", "1234")]),
            (r#"an odd " quote, {"NAME": "abcdefgh"}"#, &[]),
            (r#"an odd " quote, {"A_TOKEN": "abcdefgh"}"#, &[("A_TOKEN", "abcdefgh")]),
        ] {
            let found = printed_secrets(text, &["PIN".to_string()]);
            let found: Vec<_> = found.iter().map(|(name, secret)| (&**name, &**secret)).collect();
            assert_eq!(found, secrets, "{text}");
        }
    }
}
