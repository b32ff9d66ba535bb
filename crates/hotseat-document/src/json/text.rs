//! JSON strings.

use std::ops::Range;

/// Error in a string: its span, message and advice.
pub(super) struct StringError {
    pub(super) span: Range<usize>,
    pub(super) message: &'static str,
    pub(super) help: Option<&'static str>,
}

/// Treatment of an escape that is half of a surrogate pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoneSurrogates {
    /// It is an error.
    Refused,
    /// It becomes U+FFFD.
    Replaced,
}

/// Returns the length of the leading string including quotes, or `None` if it is not closed on its line.
pub(super) fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        at += memchr::memchr3(b'"', b'\\', b'\n', bytes.get(at..)?)?;
        match bytes[at] {
            b'"' => return Some(at + 1),
            b'\n' => return None,
            // An escaped line break ends the line as well.
            _ if bytes.get(at + 1) == Some(&b'\n') => return None,
            _ => at += 2,
        }
    }
}

/// Resolves the escapes of the text between the quotes.
pub(super) fn unescape(inner: &str, lone_surrogates: LoneSurrogates) -> Result<String, StringError> {
    if !inner.bytes().any(|byte| byte == b'\\' || byte < b' ') {
        return Ok(inner.to_owned());
    }
    let mut out = String::with_capacity(inner.len());
    let mut at = 0;
    while let Some(character) = inner[at..].chars().next() {
        match character {
            '\\' => {
                let (unescaped, length) = parse_escape(&inner[at..], lone_surrogates).map_err(|broken| {
                    StringError { span: at + broken.span.start..at + broken.span.end, ..broken }
                })?;
                out.push(unescaped);
                at += length;
            }
            '\0'..='\u{1F}' => {
                return Err(StringError {
                    span: at..at + 1,
                    message: "this string contains a control character",
                    help: Some(
                        "write `\\t` for a tab, `\\n` for a line break, `\\u0000` for other characters",
                    ),
                });
            }
            character => {
                out.push(character);
                at += character.len_utf8();
            }
        }
    }
    Ok(out)
}

/// Returns the character of an escape and the length of the escape.
fn parse_escape(text: &str, lone_surrogates: LoneSurrogates) -> Result<(char, usize), StringError> {
    let unescaped = match text.as_bytes().get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{C}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return parse_unicode_escape(text, lone_surrogates),
        _ => {
            let length = 1 + text.chars().nth(1).map_or(0, char::len_utf8);
            return Err(StringError {
                span: 0..length,
                message: "unknown escape",
                help: Some("write a backslash twice: \"\\\\d+\""),
            });
        }
    };
    Ok((unescaped, 2))
}

/// Returns the character of `\uXXXX` or of a surrogate pair.
fn parse_unicode_escape(text: &str, lone_surrogates: LoneSurrogates) -> Result<(char, usize), StringError> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        are_digits.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    let Some(first) = unit(0) else {
        let length = text.char_indices().nth(6).map_or(text.len(), |(length, _)| length);
        return Err(StringError {
            span: 0..length,
            message: "expected 4 hexadecimal digits after `\\u`",
            help: Some("write a backslash twice: \"\\\\u\""),
        });
    };
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let second = unit(6).filter(|second| first < 0xDC00 && (0xDC00..0xE000).contains(second));
    let pair =
        second.and_then(|second| char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)));
    if pair.is_none() && lone_surrogates == LoneSurrogates::Replaced {
        return Ok((char::REPLACEMENT_CHARACTER, 6));
    }
    pair.map(|character| (character, 12)).ok_or(StringError {
        span: 0..6,
        message: "this escape is half of a surrogate pair",
        help: Some("write characters beyond `\\uFFFF` as two escapes, or unescaped"),
    })
}
