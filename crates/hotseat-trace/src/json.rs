//! JSON values: equality, a text that equal values share, and the differences between a recorded value and a new one.

use serde_json::{Number, Value};

/// Maximum number of characters of a value in a difference, around the first one that differs.
const MAX_VALUE_CHARS: usize = 60;

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

fn numbers_equal(a: &Number, b: &Number) -> bool {
    match (as_integer(a), as_integer(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64() == b.as_f64(),
        _ => false,
    }
}

/// Converts a number to an integer, if it is one: 1.0 is. Every float beyond 53 bits of precision is an integer; those
/// that exceed the integer type are not converted.
pub fn as_integer(number: &Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let is_integer = |float: &f64| float.fract() == 0.0 && float.abs() < MAX_INTEGER_FLOAT;
    integer.or_else(|| number.as_f64().filter(is_integer).map(|float| float as i128))
}

/// Floats from 2^126 are compared as floats.
const MAX_INTEGER_FLOAT: f64 = (1_u128 << 126) as f64;

/// Returns a value as a text. Values have equal texts exactly if they are equal ([`json_equal`]).
pub fn canonical_text(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            text.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Number(number) => text.push_str(&canonical_number(number)),
        other => text.push_str(&other.to_string()),
    }
}

fn canonical_number(number: &Number) -> String {
    as_integer(number).map_or_else(|| number.to_string(), |integer| integer.to_string())
}

/// Returns a text as it is, and any other value as JSON.
pub fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a value as a part of a text: a text as it is, a whole number without a fraction, and any other value as JSON.
pub fn filled_text(value: &Value) -> String {
    match value {
        Value::Number(number) => canonical_number(number),
        other => plain_text(other),
    }
}

/// A step of the path to a part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep<'v> {
    /// Member of an object.
    Key(&'v str),
    /// Entry of a list, from 0.
    Index(usize),
}

/// Describes the first differences between two values with their paths, and returns the number of all. A part is `None` if its
/// value has none. Names of members may be long, so the path of a difference is text only if `describe` makes one.
pub fn first_differences<'v>(
    before: &'v Value,
    after: &'v Value,
    most: usize,
    describe: impl Fn(&[PathStep<'v>], Option<&'v Value>, Option<&'v Value>) -> String,
) -> (Vec<String>, usize) {
    let (mut described, mut count) = (Vec::new(), 0);
    let mut found = |path: &[PathStep<'v>], before: Option<&'v Value>, after: Option<&'v Value>| {
        if count < most {
            described.push(describe(path, before, after));
        }
        count += 1;
    };
    visit_differences(&mut Vec::new(), Some(before), Some(after), &mut found);
    (described, count)
}

fn visit_differences<'v>(
    path: &mut Vec<PathStep<'v>>,
    before: Option<&'v Value>,
    after: Option<&'v Value>,
    found: &mut impl FnMut(&[PathStep<'v>], Option<&'v Value>, Option<&'v Value>),
) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                path.push(PathStep::Key(key));
                visit_differences(path, before.get(key), after.get(key), found);
                path.pop();
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                path.push(PathStep::Index(index));
                visit_differences(path, before.get(index), after.get(index), found);
                path.pop();
            }
        }
        (Some(before), Some(after)) if json_equal(before, after) => {}
        _ => found(path, before, after),
    }
}

/// A recorded request that a new one may be compared with.
pub struct RecordedRequest {
    /// Number of its exchange, from 0.
    pub index: usize,
    /// The request.
    pub request: Value,
    /// True if it has been answered already.
    pub is_used: bool,
}

/// Returns the number of the recorded request that differs least from a new one, with the first difference; `None` as the
/// difference if there is none. Of equally similar requests an unused one is preferred.
pub fn nearest_request(
    recorded: impl Iterator<Item = RecordedRequest>,
    now: &Value,
) -> Option<(usize, Option<String>)> {
    let compared = recorded.map(|recorded| {
        let (first, count) = first_differences(&recorded.request, now, 1, describe_change);
        ((count, recorded.is_used), recorded.index, first.into_iter().next())
    });
    let (_, index, change) = compared.min_by_key(|(rank, ..)| *rank)?;
    Some((index, change))
}

fn describe_change(path: &[PathStep<'_>], recorded: Option<&Value>, now: Option<&Value>) -> String {
    let common = match (recorded, now) {
        (Some(Value::String(old)), Some(Value::String(new))) => {
            old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count()
        }
        _ => 0,
    };
    let text = |value| format_value(value, common);
    let old = recorded.map_or_else(|| "not recorded".to_string(), |old| format!("recorded {}", text(old)));
    let new = now.map_or_else(|| "missing".to_string(), text);
    format!("{}: {old}, now {new}", json_pointer(path))
}

/// Writes a path as a JSON Pointer.
fn json_pointer(path: &[PathStep<'_>]) -> String {
    let step = |step: &PathStep<'_>| match step {
        PathStep::Key(key) => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        PathStep::Index(index) => format!("/{index}"),
    };
    path.iter().map(step).collect()
}

/// Formats a value in one line; a long text is cut around the character index `at`.
fn format_value(value: &Value, at: usize) -> String {
    let text = plain_text(value);
    let chars = text.chars().count();
    let from = if chars <= MAX_VALUE_CHARS { 0 } else { at.saturating_sub(MAX_VALUE_CHARS / 3) };
    let part: String = text.chars().skip(from).take(MAX_VALUE_CHARS).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if chars > from + MAX_VALUE_CHARS { "…" } else { "" };
    match value {
        Value::String(_) => format!("{:?}", format!("{before}{part}{after}")),
        _ => format!("{part}{after}"),
    }
}

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
            (json!(1e16), json!(10_000_000_000_000_000_i64), true),
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
            assert_eq!(canonical_text(&a) == canonical_text(&b), expected, "{a} and {b}");
        }
    }

    /// A path for each of these differences would take 20 GB.
    #[test]
    fn long_names_take_memory_for_the_described_differences_only() {
        let key = "k".repeat(1_000_000);
        let value = |entry: usize| json!({(key.as_str()): vec![entry; 20_000]});
        let (recorded, now) = (value(0), value(1));
        let (first, count) = first_differences(&recorded, &now, 2, |path, _, _| format!("{:?}", path[1]));
        assert_eq!((first, count), (vec!["Index(0)".to_string(), "Index(1)".to_string()], 20_000));
        let recorded = [recorded, json!({"other": 1})].into_iter().enumerate();
        let recorded = recorded.map(|(index, request)| RecordedRequest { index, request, is_used: false });
        let nearest = nearest_request(recorded, &now);
        assert!(
            matches!(nearest, Some((1, Some(change))) if change.contains("/other: recorded 1, now missing"))
        );
    }
}
