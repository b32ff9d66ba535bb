//! What a text in double quotes means.

use std::ops::Range;

/// What is wrong with a text: where in it, in words, and what to do about it.
pub(super) struct Broken {
    pub(super) span: Range<usize>,
    pub(super) message: &'static str,
    pub(super) help: Option<&'static str>,
}

/// The length of the text that `text` begins with, quotes included; none if its end is missing on its line.
pub(super) fn length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'\n' => return None,
            _ if escaped => escaped = false,
            b'"' => return Some(at + 1),
            b'\\' => escaped = true,
            _ => {}
        }
    }
    None
}

/// What stands between the quotes of a text, with its escapes resolved.
pub(super) fn unescape(inner: &str) -> Result<String, Broken> {
    let mut out = String::with_capacity(inner.len());
    let mut at = 0;
    while let Some(character) = inner[at..].chars().next() {
        match character {
            '\\' => {
                let (unescaped, length) = escape(&inner[at..]).map_err(|broken| Broken {
                    span: at + broken.span.start..at + broken.span.end,
                    ..broken
                })?;
                out.push(unescaped);
                at += length;
            }
            '\0'..='\u{1F}' => {
                return Err(Broken {
                    span: at..at + 1,
                    message: "a control character stands in a text",
                    help: Some("write `\\t` for a tab, `\\n` for a line end, `\\u0000` for other characters"),
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

/// The character that an escape stands for, and the length of the escape.
fn escape(text: &str) -> Result<(char, usize), Broken> {
    let unescaped = match text.as_bytes().get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{C}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(text),
        _ => {
            let length = 1 + text.chars().nth(1).map_or(0, char::len_utf8);
            return Err(Broken {
                span: 0..length,
                message: "this escape is not known",
                help: Some("a backslash itself is written twice: \"\\\\d+\""),
            });
        }
    };
    Ok((unescaped, 2))
}

/// The character of `\uXXXX`, or of two of them that are one character together.
fn unicode(text: &str) -> Result<(char, usize), Broken> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        are_digits.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    let Some(first) = unit(0) else {
        let length = text.char_indices().nth(6).map_or(text.len(), |(length, _)| length);
        return Err(Broken {
            span: 0..length,
            message: "`\\u` is followed by 4 hexadecimal digits",
            help: Some("a backslash itself is written twice: \"\\\\u\""),
        });
    };
    if let Some(character) = char::from_u32(first) {
        return Ok((character, 6));
    }
    let second = unit(6).filter(|second| first < 0xDC00 && (0xDC00..0xE000).contains(second));
    let pair =
        second.and_then(|second| char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)));
    pair.map(|character| (character, 12)).ok_or(Broken {
        span: 0..6,
        message: "this is half a character",
        help: Some("characters beyond `\\uFFFF` are written as two escapes, or as they are"),
    })
}
