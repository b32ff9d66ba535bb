//! Prepares JSON text of agents for `serde_json` without losing information.
//!
//! `serde_json` rejects lone surrogates and rounds integers that exceed 64 bits. Agents send both: a stream
//! split between UTF-16 units has the halves of an emoji in two events, and ids may have any number of
//! digits. [`readable`] rewrites such a text and leaves any other text unchanged: a lone surrogate becomes a
//! marker that [`joined`] converts back, and an integer that would be rounded becomes a string of its digits.

use std::borrow::Cow;

use serde_json::Value;

/// Number of digits of the shortest integer that may exceed 64 bits.
const LONG_NUMBER_DIGITS: usize = 19;
/// First character of a marker; the second one encodes the surrogate. Unicode reserves this character for
/// internal use, so it does not occur in text.
pub(crate) const MARK: char = '\u{FDD0}';
/// Base of the second character of a marker, to which the index of the surrogate is added.
const SURROGATE_CARRIER_BASE: u32 = 0xF_0000;
/// All surrogates: high ones before `FIRST_LOW_SURROGATE`, low ones from there on.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;
const FIRST_LOW_SURROGATE: u32 = 0xDC00;

/// Returns an equivalent JSON text that every parser accepts; borrowed if nothing had to be rewritten.
pub(crate) fn readable(text: &str) -> Cow<'_, str> {
    if !may_need_rewriting(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut changed: Option<String> = None;
    // Everything before this offset is in `changed`, once it exists.
    let mut copied = 0;
    let mut offset = 0;
    let mut in_string = false;
    while offset < bytes.len() {
        let (replacement, next) = match bytes[offset] {
            b'"' => {
                in_string = !in_string;
                (None, offset + 1)
            }
            b'\\' if in_string => rewrite_escape(bytes, offset),
            b'-' | b'0'..=b'9' if !in_string => rewrite_number(text, offset),
            _ => (None, offset + 1),
        };
        if let Some(replacement) = replacement {
            let changed = changed.get_or_insert_with(|| String::with_capacity(text.len() + 16));
            changed.push_str(&text[copied..offset]);
            changed.push_str(&replacement);
            copied = next;
        }
        offset = next;
    }
    match changed {
        None => Cow::Borrowed(text),
        Some(mut changed) => {
            changed.push_str(&text[copied..]);
            Cow::Owned(changed)
        }
    }
}

/// Parses a text of an agent that is exactly one JSON value. A repeated key is an error: a parser would read
/// one of its values and hide the other. Fails if the text is not one JSON value.
pub(crate) fn read_json(text: &str) -> Result<Value, serde_json::Error> {
    hotseat_document::json::read_value(&readable(text))
}

/// Describes an error of [`read_json`]; the text follows the name of what was read.
pub(crate) fn json_problem(error: &serde_json::Error) -> String {
    match error.is_data() {
        true => format!("has a {error}"),
        false => format!("is not JSON ({error})"),
    }
}

/// Replaces the markers in a text: adjacent halves become one character, a lone half becomes U+FFFD.
pub(crate) fn joined(text: String) -> String {
    if !text.contains(MARK) {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    let mut first: Option<u32> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let half = match character {
            MARK => characters.next_if(|&next| surrogate_of(next).is_some()).and_then(surrogate_of),
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

/// Length of a text from which its memory grows in larger steps.
const LONG_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// Appends a piece to a text that may become very long. Each growth copies the text, and leaves its old memory unused for a
/// while; unused capacity costs nothing.
pub(crate) fn append_piece(text: &mut String, piece: &str) {
    let missing = (text.len() + piece.len()).saturating_sub(text.capacity());
    if missing > 0 && text.len() >= LONG_TEXT_BYTES {
        text.reserve_exact(piece.len() + 7 * text.len());
    }
    text.push_str(piece);
}

fn surrogate_of(character: char) -> Option<u32> {
    let place = u32::from(character).checked_sub(SURROGATE_CARRIER_BASE)?;
    Some(SURROGATES.start() + place).filter(|half| SURROGATES.contains(half))
}

/// Applies [`joined`] to all texts in a value, except under the key `continued`, whose text continues in a
/// later event.
pub(crate) fn joined_except(value: &mut Value, continued: &str) {
    match value {
        Value::String(text) if text.contains(MARK) => *text = joined(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(|item| joined_except(item, continued)),
        Value::Object(members) => {
            let whole = members.iter_mut().filter(|(key, _)| *key != continued);
            whole.for_each(|(_, member)| joined_except(member, continued));
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns true if a text may need rewriting: it has an escaped surrogate, or so many digits in a row that they
/// may exceed 64 bits. Takes time linear in its length.
fn may_need_rewriting(bytes: &[u8]) -> bool {
    let mut escapes = memchr::memchr_iter(b'\\', bytes);
    if escapes.any(|place| matches!(bytes.get(place + 1..place + 3), Some(b"ud" | b"uD"))) {
        return true;
    }
    // Of so many digits in a row, one is at a multiple of their number.
    (0..bytes.len()).step_by(LONG_NUMBER_DIGITS).filter(|&place| bytes[place].is_ascii_digit()).any(|place| {
        let before = bytes[..place].iter().rev().take(LONG_NUMBER_DIGITS);
        let after = bytes[place..].iter().take(LONG_NUMBER_DIGITS);
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        before.take_while(is_digit).count() + after.take_while(is_digit).count() >= LONG_NUMBER_DIGITS
    })
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
        .map(|place| format!("{MARK}{place}"));
    (marker, at + 6)
}

/// Returns the surrogate encoded by an escape at `at`.
fn surrogate(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok().filter(|half| SURROGATES.contains(half))
}

/// Returns the replacement of a number at `at` if it is an integer that exceeds 64 bits, and the offset after
/// the number.
fn rewrite_number(text: &str, at: usize) -> (Option<String>, usize) {
    let rest = &text[at..];
    let length = rest.bytes().take_while(|b| b.is_ascii_digit() || b"+-.eE".contains(b)).count();
    let number = &rest[..length];
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let is_integer = !unsigned.is_empty()
        && unsigned.bytes().all(|b| b.is_ascii_digit())
        && (unsigned.len() == 1 || !unsigned.starts_with('0'));
    let fits = number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
    let replacement = (is_integer && !fits).then(|| format!("\"{number}\""));
    (replacement, at + length.max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_digits_of_large_integers() {
        for (text, readable_as) in [
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("18446744073709551616", json!("18446744073709551616")),
            ("-9223372036854775808", json!(i64::MIN)),
            ("-9223372036854775809", json!("-9223372036854775809")),
            (r#"{"id": 123456789012345678901234567890}"#, json!({"id": "123456789012345678901234567890"})),
            (r#"["12345678901234567890123", 1e30]"#, json!(["12345678901234567890123", 1e30])),
            ("12345678901234567890.5", json!(12_345_678_901_234_567_890.5)),
            (r#"{"a\"12345678901234567890123": 1}"#, json!({"a\"12345678901234567890123": 1})),
        ] {
            assert_eq!(serde_json::from_str::<Value>(&readable(text)).unwrap(), readable_as, "{text}");
        }
        // Invalid JSON stays invalid.
        for broken in ["0123456789012345678901", "{\"a\": 12345678901234567890123", "1234567890123456789012-"]
        {
            assert!(serde_json::from_str::<Value>(&readable(broken)).is_err(), "{broken}");
        }
    }

    #[test]
    fn replaces_lone_surrogates() {
        let said = |text: &str| joined(serde_json::from_str::<String>(&readable(text)).unwrap());
        assert_eq!(said(r#""a\ud83db""#), "a\u{FFFD}b");
        assert_eq!(said(r#""\ude00\ud83d""#), "\u{FFFD}\u{FFFD}");
        assert_eq!(said(r#""\ud83d\ude00""#), "😀");
        assert_eq!(said(r#""\\ud83d""#), "\\ud83d");
    }

    proptest! {
        /// A text split between any UTF-16 units, each piece its own JSON string, is restored.
        #[test]
        fn joins_pieces_of_a_split_text(text in "[a😀é\"\\\\🌍1 \u{10FFFF}]{0,12}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(units.len() + 1)).collect();
            places.extend([0, units.len()]);
            places.sort_unstable();
            let mut received = String::new();
            for piece in places.windows(2) {
                let escaped: String = units[piece[0]..piece[1]].iter().map(|unit| format!("\\u{unit:04x}")).collect();
                received.push_str(&serde_json::from_str::<String>(&readable(&format!("\"{escaped}\""))).unwrap());
            }
            prop_assert_eq!(joined(received), text);
        }

        /// JSON without special cases keeps its meaning.
        #[test]
        fn keeps_ordinary_json(number in any::<i64>(), text in any::<String>(), float in any::<f64>().prop_filter("JSON has no such number", |f| f.is_finite())) {
            let value = json!({"n": number, "t": text, "f": float, "list": [text, number]});
            let written = value.to_string();
            prop_assert_eq!(serde_json::from_str::<Value>(&readable(&written)).unwrap(), value);
        }

        /// Different integers stay different.
        #[test]
        fn keeps_integers_distinct(one in "[1-9][0-9]{0,40}", other in "[1-9][0-9]{0,40}") {
            let read = |text: &str| serde_json::from_str::<Value>(&readable(text)).unwrap();
            prop_assert_eq!(read(&one) == read(&other), one == other);
        }

        #[test]
        fn does_not_panic_on_any_text(text in "[\\\\u dD8c0-9\"é{}-]{0,40}") {
            let _ = joined(readable(&text).into_owned());
        }
    }
}
