//! Equality of JSON values.

use serde_json::{Number, Value};

/// Returns true if two values are equal. The order of object keys does not matter, and numbers are compared
/// by value: 1 equals 1.0.
pub fn json_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers_equal(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| json_equal(a, b)))
        }
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        _ => false,
    }
}

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

fn numbers_equal(a: &Number, b: &Number) -> bool {
    match (as_integer(a), as_integer(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64() == b.as_f64(),
        _ => false,
    }
}

/// Converts a number to an integer, if it is one. Every float beyond 53 bits of precision is an integer; those
/// that exceed the integer type are not converted.
pub(super) fn as_integer(number: &Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let is_integer = |float: &f64| float.fract() == 0.0 && float.abs() < MAX_INTEGER_FLOAT;
    integer.or_else(|| number.as_f64().filter(is_integer).map(|float| float as i128))
}

/// Floats from 2^126 are compared as floats.
const MAX_INTEGER_FLOAT: f64 = (1_u128 << 126) as f64;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn compares_numbers_by_value() {
        for (a, b, expected) in [
            (json!(1), json!(1.0), true),
            (json!(-0.0), json!(0), true),
            (json!(0.1), json!(0.1), true),
            (json!(1), json!(1.5), false),
            (json!(u64::MAX), json!(u64::MAX), true),
            (json!(u64::MAX), json!(u64::MAX - 1), false),
            (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0), false),
            (json!(1e300), json!(1e300), true),
            (json!(1e300), json!(1e301), false),
            (json!(1), json!("1"), false),
            (json!(0), json!(false), false),
            (json!(null), json!(0), false),
            (json!({"a": 1, "b": [1.0]}), json!({"b": [1], "a": 1.0}), true),
            (json!({"a": null}), json!({}), false),
            (json!([1, 2]), json!([2, 1]), false),
        ] {
            assert_eq!(json_equal(&a, &b), expected, "{a} and {b}");
            assert_eq!(json_equal(&b, &a), expected, "{b} and {a}");
        }
    }

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
