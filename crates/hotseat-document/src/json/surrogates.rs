//! Half of a surrogate pair in JSON: an escape such as `\ud83d` alone, which `serde_json` rejects.

use std::borrow::Cow;

/// First character of a marker; the second one encodes the surrogate. Unicode reserves this character for
/// internal use, so it does not occur in text.
pub const SURROGATE_MARK: char = '\u{FDD0}';
/// Base of the second character of a marker, to which the index of the surrogate is added.
const SURROGATE_CARRIER_BASE: u32 = 0xF_0000;
/// All surrogates: high ones before `FIRST_LOW_SURROGATE`, low ones from there on.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;
const FIRST_LOW_SURROGATE: u32 = 0xDC00;

/// Replaces lone surrogates in a JSON text by markers, which [`join_surrogates`] converts back.
pub fn mark_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut marked, mut copied, mut next) = (String::new(), 0, 0);
    for place in memchr::memchr_iter(b'\\', bytes) {
        // The second half of an escape is no escape.
        if place < next {
            continue;
        }
        let marker;
        (marker, next) = rewrite_escape(bytes, place);
        if let Some(marker) = marker {
            marked.push_str(&text[copied..place]);
            marked.push_str(&marker);
            copied = next;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    marked.push_str(&text[copied..]);
    Cow::Owned(marked)
}

/// Replaces lone surrogates in a JSON text by U+FFFD.
pub fn replace_surrogates(text: &str) -> Cow<'_, str> {
    match mark_surrogates(text) {
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(marked) => Cow::Owned(join_surrogates(marked)),
    }
}

/// Replaces the markers in a text: adjacent halves become one character, a lone half becomes U+FFFD.
pub fn join_surrogates(text: String) -> String {
    if !text.contains(SURROGATE_MARK) {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    let mut first: Option<u32> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let half = match character {
            SURROGATE_MARK => characters.next_if(|&next| surrogate_of(next).is_some()).and_then(surrogate_of),
            _ => None,
        };
        match (first.take(), half) {
            (Some(first), Some(second)) if second >= FIRST_LOW_SURROGATE => {
                let scalar = 0x1_0000 + ((first - 0xD800) << 10) + (second - FIRST_LOW_SURROGATE);
                whole.push(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
                continue;
            }
            (Some(_), _) => whole.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {}
        }
        match half {
            Some(half) if half < FIRST_LOW_SURROGATE => first = Some(half),
            Some(_) => whole.push(char::REPLACEMENT_CHARACTER),
            None => whole.push(character),
        }
    }
    if first.is_some() {
        whole.push(char::REPLACEMENT_CHARACTER);
    }
    whole
}

fn surrogate_of(character: char) -> Option<u32> {
    let place = u32::from(character).checked_sub(SURROGATE_CARRIER_BASE)?;
    Some(SURROGATES.start() + place).filter(|half| SURROGATES.contains(half))
}

/// Returns the replacement of an escape at `at` if it is a lone surrogate, and the offset after the escape.
fn rewrite_escape(bytes: &[u8], at: usize) -> (Option<String>, usize) {
    let Some(half) = surrogate(bytes, at) else { return (None, (at + 2).min(bytes.len())) };
    let is_whole = half < FIRST_LOW_SURROGATE
        && surrogate(bytes, at + 6).is_some_and(|second| second >= FIRST_LOW_SURROGATE);
    if is_whole {
        return (None, at + 12);
    }
    let marker = char::from_u32(SURROGATE_CARRIER_BASE + half - SURROGATES.start())
        .map(|place| format!("{SURROGATE_MARK}{place}"));
    (marker, at + 6)
}

/// Returns the surrogate encoded by an escape at `at`.
fn surrogate(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok().filter(|half| SURROGATES.contains(half))
}
