//! Finds import specifiers in source text, for error locations.

use std::ops::Range;

/// Returns the location of the specifier `name`.
pub(crate) fn find_specifier(text: &str, name: &str) -> Option<Range<usize>> {
    specifiers(text).find(|(specifier, _)| *specifier == name).map(|(_, span)| span)
}

/// Returns all import specifiers: strings after `from`, `import` or `import(`.
pub(crate) fn specifiers(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let (start, end) = next_string(text, at)?;
            at = end;
            if names_module(&text[..start]) {
                return Some((&text[start + 1..end - 1], start..end));
            }
        }
    })
}

/// Returns the next quoted text after `at`, outside of comments.
fn next_string(text: &str, mut at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"//") {
            at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            at += text[at + 2..].find("*/").map_or(rest.len(), |end| end + 4);
        } else if matches!(bytes[at], b'"' | b'\'' | b'`') {
            let quote = bytes[at];
            let start = at;
            at += 1;
            while at < bytes.len() && bytes[at] != quote && (quote == b'`' || bytes[at] != b'\n') {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
            if at > bytes.len() {
                return None;
            }
            // A quote that is not closed on its line belongs to, for example, a regular expression.
            if bytes[at - 1] == quote && text.is_char_boundary(at) {
                return Some((start, at));
            }
        } else {
            at += 1;
        }
    }
    None
}

fn names_module(before: &str) -> bool {
    let before = before.trim_end();
    let before = before.strip_suffix('(').map_or(before, str::trim_end);
    ["from", "import"].iter().any(|word| {
        before.strip_suffix(word).is_some_and(|rest| {
            !rest.ends_with(|character: char| {
                character.is_alphanumeric() || matches!(character, '_' | '$' | '.')
            })
        })
    })
}
