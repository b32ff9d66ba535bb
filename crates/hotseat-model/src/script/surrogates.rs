//! Characters that JSON writes as two escapes.

use std::borrow::Cow;

/// JSON writes characters outside the basic plane as two escapes, which YAML does not know. They are made one; only
/// columns behind them on the same line move.
pub(super) fn without_surrogates(text: &str) -> Cow<'_, str> {
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
        let pair = unit(rest).zip(rest.get(6..).and_then(unit));
        match pair.and_then(|(high, low)| {
            char::decode_utf16([high, low]).next()?.ok().filter(|c| c.len_utf16() == 2)
        }) {
            Some(character) => {
                out.push_str(&format!("\\U{:08X}", u32::from(character)));
                rest = &rest[12..];
            }
            None => {
                // A backslash and what it escapes: in JSON always one byte more.
                let (escape, behind) = rest.split_at(rest.len().min(2));
                out.push_str(escape);
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out.into()
}

/// The code unit of `\uXXXX` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}
