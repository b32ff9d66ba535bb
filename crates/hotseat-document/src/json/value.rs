//! Strict JSON values, as sent by programs: no comments, no duplicate keys.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Value};

/// Parses a text that is exactly one JSON value. Duplicate keys are errors, because the intended value is
/// ambiguous.
///
/// # Errors
/// If the text is not one JSON value. Duplicate keys have the category `Data`.
pub fn read_value(text: &str) -> Result<Value, Error> {
    let value = serde_json::from_str(text)?;
    serde_json::from_str::<DistinctKeys>(text)?;
    Ok(value)
}

/// Accepts any JSON value without duplicate keys.
struct DistinctKeys;

impl<'de> Deserialize<'de> for DistinctKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DistinctKeys)
    }
}

impl<'de> Visitor<'de> for DistinctKeys {
    type Value = DistinctKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<DistinctKeys>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut known = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            members.next_value::<DistinctKeys>()?;
            if let Some(first) = known.replace(key) {
                return Err(A::Error::custom(format!("duplicate key {first:?}")));
            }
        }
        Ok(self)
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
}
