//! Strict JSON values, as sent by programs: no comments, no duplicate keys, and no digits lost.

use std::fmt;
use std::str::Utf8Error;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Number, Value};

use super::digits::keep_digits;
use super::surrogates::replace_surrogates;
use crate::stream::BYTE_ORDER_MARK;

/// Why the output or a message of a program is not one JSON value. The text follows the name of what was read.
#[derive(Debug)]
pub enum JsonReadError {
    /// It is not UTF-8.
    NotUtf8(Utf8Error),
    /// An object has a key twice.
    DuplicateKey(Error),
    /// Its lists and objects are nested deeper than the limit.
    TooDeep(Error),
    /// It has a number that exceeds 64-bit floating-point numbers, such as `1e400`.
    TooLarge(Error),
    /// It is not exactly one JSON value.
    Syntax(Error),
}

/// Maximum number of lists and objects around each other in a JSON value: the limit of `serde_json`.
const MAX_LEVELS: usize = 127;

impl fmt::Display for JsonReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonReadError::NotUtf8(error) => write!(f, "is not UTF-8 ({error})"),
            JsonReadError::DuplicateKey(error) => write!(f, "has a {error}"),
            JsonReadError::TooDeep(_) => write!(f, "is nested deeper than {MAX_LEVELS} levels"),
            JsonReadError::TooLarge(error) => write!(f, "has a number that is too large ({error})"),
            JsonReadError::Syntax(error) => write!(f, "is not JSON ({error})"),
        }
    }
}

impl std::error::Error for JsonReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JsonReadError::NotUtf8(error) => Some(error),
            JsonReadError::DuplicateKey(error)
            | JsonReadError::TooDeep(error)
            | JsonReadError::TooLarge(error)
            | JsonReadError::Syntax(error) => Some(error),
        }
    }
}

impl From<Error> for JsonReadError {
    fn from(error: Error) -> Self {
        if error.is_data() {
            return JsonReadError::DuplicateKey(error);
        }
        // The library does not tell these errors from the others except by their texts.
        match error.to_string() {
            text if text.starts_with("recursion limit exceeded") => JsonReadError::TooDeep(error),
            text if text.starts_with("number out of range") => JsonReadError::TooLarge(error),
            _ => JsonReadError::Syntax(error),
        }
    }
}

/// Describes an error in a text that is one line of a file: with its column, and without the line, which is always 1.
pub fn error_in_line(error: &Error) -> String {
    let (words, column) = (error.to_string(), error.column());
    match words.strip_suffix(&format!(" at line {} column {column}", error.line())) {
        Some(problem) => format!("{problem} in column {column}"),
        None => words,
    }
}

/// Returns true if a JSON text may have more values than this: values take far more memory than their text. Commas and brackets
/// within strings are not counted, so that a long text is not taken for many values.
pub fn may_have_more_values(text: &[u8], max: usize) -> bool {
    // Each value but the first follows a comma or an opening bracket.
    let begins_value = |byte: &u8| matches!(byte, b',' | b'[' | b'{');
    if text.len() <= max || text.iter().filter(|byte| begins_value(byte)).count() <= max {
        return false;
    }
    let (mut in_string, mut is_escaped) = (false, false);
    let outside = text.iter().filter(|byte| {
        let is_quote = **byte == b'"' && !is_escaped;
        is_escaped = in_string && **byte == b'\\' && !is_escaped;
        in_string ^= is_quote;
        !in_string && begins_value(byte)
    });
    outside.count() > max
}

/// Parses bytes of a program that are exactly one JSON value, as [`read_value`] does, without a byte order mark. Half of a
/// surrogate pair becomes U+FFFD, since programs cut texts between the halves.
///
/// # Errors
/// If they are not one JSON value.
pub fn read_bytes(bytes: &[u8]) -> Result<Value, JsonReadError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(JsonReadError::NotUtf8)?;
    Ok(read_value(&replace_surrogates(text))?)
}

/// Parses a text that is exactly one JSON value. Duplicate keys are errors, because the intended value is
/// ambiguous. Integers that exceed 64 bits become texts of their digits.
///
/// # Errors
/// If the text is not one JSON value. Duplicate keys have the category `Data`.
pub fn read_value(text: &str) -> Result<Value, Error> {
    let text = &*keep_digits(text);
    match serde_json::from_str(text) {
        Ok(StrictValue(value)) => Ok(value),
        // A syntax error after a duplicate key is the more important one.
        Err(error) => serde_json::from_str::<IgnoredAny>(text).and(Err(error)),
    }
}

/// Like [`read_value`], but reads numbers as `serde_json` does.
///
/// # Errors
/// If the text is not one JSON value, or has a duplicate key.
pub fn read_record(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map(|StrictValue(value)| value)
}

/// Reads a member that holds any value; for `deserialize_with`. Duplicate keys within the value are errors.
///
/// # Errors
/// If it has a duplicate key.
pub fn any_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    StrictValue::deserialize(deserializer).map(|StrictValue(value)| value)
}

/// Like [`any_value`], for a member that may be `null`.
///
/// # Errors
/// If it has a duplicate key.
pub fn optional_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|StrictValue(value)| value))
}

/// Like [`any_value`], for a list of objects.
///
/// # Errors
/// If it has a duplicate key, or is no list of objects.
pub fn objects<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Map<String, Value>>, D::Error> {
    let objects: Vec<StrictObject> = Vec::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|StrictObject(members)| members).collect())
}

/// A JSON value without duplicate keys.
struct StrictValue(Value);

/// A JSON object without duplicate keys.
struct StrictObject(Map<String, Value>);

impl<'de> Deserialize<'de> for StrictObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StrictObjectVisitor).map(StrictObject)
    }
}

/// Builds the members of an object, and rejects duplicate keys.
struct StrictObjectVisitor;

impl<'de> Visitor<'de> for StrictObjectVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some((key, StrictValue(value))) = entries.next_entry::<String, StrictValue>()? {
            if members.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate key {key:?}")));
            }
            members.insert(key, value);
        }
        Ok(members)
    }
}

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(StrictValue)
    }
}

/// Builds a value, and rejects duplicate keys.
struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_string()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(StrictValue(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Value, A::Error> {
        StrictObjectVisitor.visit_map(entries).map(Value::Object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{error::Category, json};

    use super::*;

    #[test]
    fn rejects_duplicate_keys_at_every_depth() {
        assert_eq!(
            read_value(r#"{"a": [{"b": 1.5}, {"b": null}], "c": "x"}"#).unwrap()["a"][0],
            json!({"b": 1.5})
        );
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"a": {"b": 1, "\u0062": 2}}]"#] {
            assert_eq!(read_value(text).unwrap_err().classify(), Category::Data, "{text}");
        }
        for text in ["", "{} {}", "// x\n{}", "{\"a\": 1,}", "NaN", "\u{FEFF}{}"] {
            assert_ne!(read_value(text).map_err(|error| error.classify()), Err(Category::Data), "{text}");
            assert!(read_value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn deep_values_are_no_syntax_error() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read_bytes(nested(MAX_LEVELS).as_bytes()).is_ok());
        let error = read_bytes(nested(MAX_LEVELS + 1).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "is nested deeper than 127 levels");
        let cut = read_bytes("[".repeat(MAX_LEVELS + 1).as_bytes()).unwrap_err().to_string();
        assert!(cut.starts_with("is not JSON (EOF"), "{cut}");
    }

    #[test]
    fn large_numbers_are_no_syntax_error() {
        for text in ["1e400", r#"{"a": [-1e400, 1]}"#] {
            let error = read_bytes(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.starts_with("has a number that is too large (number out of range at line 1"),
                "{error}"
            );
        }
        for text in ["1e400}", "[1e400", "1e400e"] {
            let error = read_bytes(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("is not JSON"), "{error}");
        }
    }

    #[test]
    fn reads_bytes_with_a_byte_order_mark() {
        assert_eq!(read_bytes(b"\xEF\xBB\xBF {\"a\": 1}").unwrap(), json!({"a": 1}));
        assert_eq!(
            read_bytes(br#"["a\ud83d", "\ud83d\ude00", "\\ud83d"]"#).unwrap(),
            json!(["a\u{FFFD}", "😀", "\\ud83d"])
        );
        for (bytes, words) in [
            (&b"\xEF\xBB\xBF\xEF\xBB\xBF{}"[..], "is not JSON (expected value"),
            (b"{\"a\": \"\xFF\"}", "is not UTF-8 (invalid utf-8"),
            (b"{\"a\": 1, \"a\": 2}", "has a duplicate key \"a\""),
        ] {
            let shown = read_bytes(bytes).unwrap_err().to_string();
            assert!(shown.starts_with(words), "{shown}");
        }
    }
}
