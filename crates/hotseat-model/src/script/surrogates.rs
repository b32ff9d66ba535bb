//! Surrogate pairs in JSON escapes.

use std::borrow::Cow;

/// Joins surrogate pairs into single escapes. JSON writes characters outside the basic plane as two escapes,
/// which YAML does not support. Only later columns of the same line shift.
pub(super) fn join_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD")
        || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
    {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let pair = parse_code_unit(rest).zip(rest.get(6..).and_then(parse_code_unit));
        match pair.and_then(|(high, low)| {
            char::decode_utf16([high, low]).next()?.ok().filter(|c| c.len_utf16() == 2)
        }) {
            Some(character) => {
                out.push_str(&format!("\\U{:08X}", u32::from(character)));
                rest = &rest[12..];
            }
            None => {
                // A backslash and the escaped character; in JSON always one byte.
                let (escape, behind) = rest.split_at(rest.len().min(2));
                out.push_str(escape);
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out.into()
}

/// Parses `\uXXXX` at the start of a text.
fn parse_code_unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}
