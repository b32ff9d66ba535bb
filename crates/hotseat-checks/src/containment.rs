//! Values that contain others.

use hotseat_trace::json_equal;
use serde_json::Value;

/// Returns true if a value contains the expected one: objects may have more keys on every level, lists must
/// have the same length.
pub fn contains_value(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => expected
            .iter()
            .all(|(key, expected)| value.get(key).is_some_and(|value| contains_value(value, expected))),
        (Value::Array(value), Value::Array(expected)) => {
            value.len() == expected.len()
                && value.iter().zip(expected).all(|(value, expected)| contains_value(value, expected))
        }
        _ => json_equal(value, expected),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn allows_extra_keys_but_no_extra_entries() {
        let value = json!({"a": {"b": 1, "c": [{"d": 2, "e": 3}]}, "f": null});
        for (expected, held) in [
            (json!({}), true),
            (json!({"a": {"b": 1.0}}), true),
            (json!({"a": {"c": [{"d": 2}]}}), true),
            (json!({"a": {"c": []}}), false),
            (json!({"a": {"c": [{"d": 3}]}}), false),
            (json!({"f": null}), true),
            (json!({"g": null}), false),
        ] {
            assert_eq!(contains_value(&value, &expected), held, "{expected}");
        }
    }
}
