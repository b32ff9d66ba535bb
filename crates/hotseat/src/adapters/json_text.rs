//! JSON text as agents send it, made readable without losing anything that it says.
//!
//! `serde_json` refuses half of a surrogate pair and rounds integers that do not fit into 64 bits. Agents send both:
//! a stream that is cut between UTF-16 units has the two halves of an emoji in two events, and ids may have any number
//! of digits. [`readable`] rewrites such a text, and leaves every other text as it is: a lone half becomes a marker
//! that [`joined`] turns back, and an integer that would be rounded becomes the text of its digits.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// The first character of a marker; the second one carries the half. The Unicode standard keeps this character for the
/// use within programs, so no text has it.
pub(crate) const MARK: char = '\u{FDD0}';
/// The second character of a marker is this one and the place of the half among all surrogates.
const HALVES: u32 = 0xF_0000;
/// All surrogates: first halves of a pair up to `SECOND`, second halves from there on.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xD800..=0xDFFF;
const SECOND: u32 = 0xDC00;

/// A JSON text that means the same and that every parser takes in whole. Nothing is copied where nothing needs it.
pub(crate) fn readable(text: &str) -> Cow<'_, str> {
    if !may_need_it(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut changed: Option<String> = None;
    // Everything up to here stands in `changed`, once there is such a text.
    let mut kept = 0;
    let mut at = 0;
    let mut in_string = false;
    while at < bytes.len() {
        let (replacement, next) = match bytes[at] {
            b'"' => {
                in_string = !in_string;
                (None, at + 1)
            }
            b'\\' if in_string => escape(bytes, at),
            b'-' | b'0'..=b'9' if !in_string => number(text, at),
            _ => (None, at + 1),
        };
        if let Some(replacement) = replacement {
            let changed = changed.get_or_insert_with(|| String::with_capacity(text.len() + 16));
            changed.push_str(&text[kept..at]);
            changed.push_str(&replacement);
            kept = next;
        }
        at = next;
    }
    match changed {
        None => Cow::Borrowed(text),
        Some(mut changed) => {
            changed.push_str(&text[kept..]);
            Cow::Owned(changed)
        }
    }
}

/// A text whose markers are replaced: two halves that have met are one character, and a half that stayed alone is U+FFFD.
pub(crate) fn joined(text: String) -> String {
    if !text.contains(MARK) {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    let mut first: Option<u32> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let half = match character {
            MARK => characters.next_if(|&next| half_of(next).is_some()).and_then(half_of),
            _ => None,
        };
        match (first.take(), half) {
            (Some(first), Some(second)) if second >= SECOND => {
                let scalar = 0x1_0000 + ((first - 0xD800) << 10) + (second - SECOND);
                whole.push(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
                continue;
            }
            (Some(_), _) => whole.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {}
        }
        match half {
            Some(half) if half < SECOND => first = Some(half),
            Some(_) => whole.push(char::REPLACEMENT_CHARACTER),
            None => whole.push(character),
        }
    }
    if first.is_some() {
        whole.push(char::REPLACEMENT_CHARACTER);
    }
    whole
}

fn half_of(character: char) -> Option<u32> {
    let place = u32::from(character).checked_sub(HALVES)?;
    Some(SURROGATES.start() + place).filter(|half| SURROGATES.contains(half))
}

/// The same for every text in a value, but for those under a key whose text goes on in what comes next.
pub(crate) fn joined_but(value: &mut Value, continued: &str) {
    match value {
        Value::String(text) if text.contains(MARK) => *text = joined(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(|item| joined_but(item, continued)),
        Value::Object(members) => {
            let whole = members.iter_mut().filter(|(key, _)| *key != continued);
            whole.for_each(|(_, member)| joined_but(member, continued));
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether an object has a key twice on its first level, of which a parser would show one.
pub(crate) fn has_twice(object: &str, key: &str) -> bool {
    struct Keys<'k>(&'k str);
    impl<'de> Visitor<'de> for Keys<'_> {
        type Value = usize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<usize, A::Error> {
            let mut times = 0;
            while let Some((key, _)) = map.next_entry::<Cow<'_, str>, IgnoredAny>()? {
                times += usize::from(key == self.0);
            }
            Ok(times)
        }
    }
    let mut parser = serde_json::Deserializer::from_str(object);
    parser.deserialize_map(Keys(key)).is_ok_and(|times| times > 1)
}

/// Whether a text holds what may have to be rewritten: an escaped surrogate, or as many digits in a row as no 64 bits
/// hold. Looks at every byte once.
fn may_need_it(bytes: &[u8]) -> bool {
    let mut digits = 0;
    let mut before = 0;
    for (place, &byte) in bytes.iter().enumerate() {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits == 19 {
            return true;
        }
        if before == b'\\' && byte == b'u' && matches!(bytes.get(place + 1), Some(b'd' | b'D')) {
            return true;
        }
        before = byte;
    }
    false
}

/// What an escape that begins at `at` is replaced by, if it is half of a pair whose other half is not there, and where
/// the text goes on.
fn escape(bytes: &[u8], at: usize) -> (Option<String>, usize) {
    let Some(half) = surrogate(bytes, at) else { return (None, (at + 2).min(bytes.len())) };
    let is_whole = half < SECOND && surrogate(bytes, at + 6).is_some_and(|second| second >= SECOND);
    if is_whole {
        return (None, at + 12);
    }
    let marker = char::from_u32(HALVES + half - SURROGATES.start()).map(|place| format!("{MARK}{place}"));
    (marker, at + 6)
}

/// The surrogate that an escape at `at` stands for.
fn surrogate(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok().filter(|half| SURROGATES.contains(half))
}

/// What a number that begins at `at` is replaced by, if it is an integer that does not fit into 64 bits, and where the
/// text goes on.
fn number(text: &str, at: usize) -> (Option<String>, usize) {
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
    fn integers_keep_their_digits_and_everything_else_is_left_alone() {
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
        // What is no JSON stays none.
        for broken in ["0123456789012345678901", "{\"a\": 12345678901234567890123", "1234567890123456789012-"]
        {
            assert!(serde_json::from_str::<Value>(&readable(broken)).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_half_that_stays_alone_is_replaced() {
        let said = |text: &str| joined(serde_json::from_str::<String>(&readable(text)).unwrap());
        assert_eq!(said(r#""a\ud83db""#), "a\u{FFFD}b");
        assert_eq!(said(r#""\ude00\ud83d""#), "\u{FFFD}\u{FFFD}");
        assert_eq!(said(r#""\ud83d\ude00""#), "😀");
        assert_eq!(said(r#""\\ud83d""#), "\\ud83d");
    }

    proptest! {
        /// A text that is cut between any two UTF-16 units, each piece sent as a JSON text of its own, is whole again.
        #[test]
        fn pieces_of_a_text_are_joined_wherever_it_was_cut(text in "[a😀é\"\\\\🌍1 \u{10FFFF}]{0,12}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
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

        /// Every JSON text means the same afterwards.
        #[test]
        fn what_needs_no_change_means_the_same(number in any::<i64>(), text in any::<String>(), float in any::<f64>().prop_filter("JSON has no such number", |f| f.is_finite())) {
            let value = json!({"n": number, "t": text, "f": float, "list": [text, number]});
            let written = value.to_string();
            prop_assert_eq!(serde_json::from_str::<Value>(&readable(&written)).unwrap(), value);
        }

        /// No integer is taken for another one.
        #[test]
        fn integers_differ_as_their_digits_do(one in "[1-9][0-9]{0,40}", other in "[1-9][0-9]{0,40}") {
            let read = |text: &str| serde_json::from_str::<Value>(&readable(text)).unwrap();
            prop_assert_eq!(read(&one) == read(&other), one == other);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[\\\\u dD8c0-9\"é{}-]{0,40}") {
            let _ = joined(readable(&text).into_owned());
        }
    }
}
