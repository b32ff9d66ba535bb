//! Integers that exceed 64 bits, which `serde_json` would round.

use std::borrow::Cow;

/// Number of digits of the shortest integer that may exceed 64 bits.
const LONG_NUMBER_DIGITS: usize = 19;

/// Replaces each integer in a JSON text that exceeds 64 bits by a string of its digits; any other text stays as it is.
pub fn keep_digits(text: &str) -> Cow<'_, str> {
    if !may_have_long_number(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut changed: Option<String> = None;
    // Everything before this offset is in `changed`, once it exists.
    let mut copied = 0;
    let mut offset = 0;
    let mut in_string = false;
    while offset < bytes.len() {
        match bytes[offset] {
            b'"' => in_string = !in_string,
            b'\\' if in_string => offset += 1,
            b'-' | b'0'..=b'9' if !in_string => {
                let number = number_at(text, offset);
                if is_long_integer(number) {
                    let changed = changed.get_or_insert_with(|| String::with_capacity(text.len() + 16));
                    changed.push_str(&text[copied..offset]);
                    changed.push('"');
                    changed.push_str(number);
                    changed.push('"');
                    copied = offset + number.len();
                }
                offset += number.len() - 1;
            }
            _ => {}
        }
        offset += 1;
    }
    match changed {
        None => Cow::Borrowed(text),
        Some(mut changed) => {
            changed.push_str(&text[copied..]);
            Cow::Owned(changed)
        }
    }
}

/// Returns true if a text has so many digits in a row that they may exceed 64 bits. Takes time linear in its length.
fn may_have_long_number(bytes: &[u8]) -> bool {
    // Of so many digits in a row, one is at a multiple of their number.
    (0..bytes.len()).step_by(LONG_NUMBER_DIGITS).filter(|&place| bytes[place].is_ascii_digit()).any(|place| {
        let before = bytes[..place].iter().rev().take(LONG_NUMBER_DIGITS);
        let after = bytes[place..].iter().take(LONG_NUMBER_DIGITS);
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        before.take_while(is_digit).count() + after.take_while(is_digit).count() >= LONG_NUMBER_DIGITS
    })
}

/// Returns the text of the number that starts at `at`.
fn number_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    &rest[..rest.bytes().take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte)).count()]
}

/// Returns true for a valid integer that exceeds 64 bits.
fn is_long_integer(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let is_integer = !unsigned.is_empty()
        && unsigned.bytes().all(|byte| byte.is_ascii_digit())
        && (unsigned.len() == 1 || !unsigned.starts_with('0'));
    is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn keeps_digits_of_large_integers() {
        for (text, read) in [
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("18446744073709551616", json!("18446744073709551616")),
            ("-9223372036854775808", json!(i64::MIN)),
            ("-9223372036854775809", json!("-9223372036854775809")),
            (r#"{"id": 123456789012345678901234567890}"#, json!({"id": "123456789012345678901234567890"})),
            (r#"["12345678901234567890123", 1e30]"#, json!(["12345678901234567890123", 1e30])),
            ("12345678901234567890.5", json!(12_345_678_901_234_567_890.5)),
            (r#"{"a\"12345678901234567890123": 1}"#, json!({"a\"12345678901234567890123": 1})),
        ] {
            assert_eq!(serde_json::from_str::<Value>(&keep_digits(text)).unwrap(), read, "{text}");
        }
        // Invalid JSON stays invalid.
        for broken in ["0123456789012345678901", "{\"a\": 12345678901234567890123", "1234567890123456789012-"]
        {
            assert!(serde_json::from_str::<Value>(&keep_digits(broken)).is_err(), "{broken}");
        }
    }

    proptest! {
        /// Different integers stay different.
        #[test]
        fn keeps_integers_distinct(one in "[1-9][0-9]{0,40}", other in "[1-9][0-9]{0,40}") {
            let read = |text: &str| serde_json::from_str::<Value>(&keep_digits(text)).unwrap();
            prop_assert_eq!(read(&one) == read(&other), one == other);
        }

        /// JSON without long integers keeps its meaning.
        #[test]
        fn keeps_ordinary_json(number in any::<i64>(), text in any::<String>(), float in any::<f64>().prop_filter("JSON has no such number", |f| f.is_finite())) {
            let value = json!({"n": number, "t": text, "f": float, "list": [text, number]});
            let written = value.to_string();
            prop_assert_eq!(serde_json::from_str::<Value>(&keep_digits(&written)).unwrap(), value);
        }

        #[test]
        fn does_not_panic_on_any_text(text in "[\\\\u 0-9\"é{}-]{0,60}") {
            let _ = keep_digits(&text);
        }
    }
}
