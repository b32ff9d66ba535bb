//! Prepares JSON text of agents for `serde_json` without losing information.
//!
//! `serde_json` rejects lone surrogates and rounds integers that exceed 64 bits. Agents send both: a stream
//! split between UTF-16 units has the halves of an emoji in two events, and ids may have any number of
//! digits. [`readable`] rewrites such a text and leaves any other text unchanged: a lone surrogate becomes a
//! marker that [`joined`] converts back, and an integer that would be rounded becomes a string of its digits.

use std::borrow::Cow;

use hotseat_document::json::{JsonReadError, keep_digits, mark_surrogates, read_value, replace_surrogates};
pub(crate) use hotseat_document::json::{SURROGATE_MARK as MARK, join_surrogates as joined};
use serde_json::Value;

use super::shown_id;

/// Returns an equivalent JSON text that every parser accepts; borrowed if nothing had to be rewritten.
pub(crate) fn readable(text: &str) -> Cow<'_, str> {
    match keep_digits(text) {
        Cow::Borrowed(text) => mark_surrogates(text),
        Cow::Owned(text) => Cow::Owned(match mark_surrogates(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(marked) => marked,
        }),
    }
}

/// Parses a text of an agent that is exactly one JSON value, complete in itself: a lone surrogate becomes U+FFFD. A repeated key is
/// an error: a parser would read one of its values and hide the other. Fails if the text is not one JSON value.
pub(crate) fn read_json(text: &str) -> Result<Value, JsonReadError> {
    Ok(read_value(&replace_surrogates(text))?)
}

/// Parses a text as [`read_json`] does, whose texts other ones may continue: a lone surrogate becomes a marker.
pub(crate) fn read_piece(text: &str) -> Result<Value, JsonReadError> {
    Ok(read_value(&mark_surrogates(text))?)
}

/// Returns the note about a tool call whose arguments [`read_json`] refuses.
pub(crate) fn arguments_note(call: &str, text: &str) -> String {
    let problem = read_json(text).err().map_or_else(String::new, |error| error.to_string());
    format!("the text of the arguments of tool call {} {problem}", shown_id(call))
}

/// Returns the note about a tool call with unknown arguments.
pub(crate) fn unknown_arguments_note(call: &str, problem: &str) -> String {
    format!("the arguments of tool call {} are unknown: {problem}", shown_id(call))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

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

        #[test]
        fn does_not_panic_on_any_text(text in "[\\\\u dD8c0-9\"é{}-]{0,40}") {
            let _ = joined(readable(&text).into_owned());
        }
    }
}
