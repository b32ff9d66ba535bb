//! Converts keys from the script spelling to the case file spelling.

use hotseat_document::{Field, Kind};
use serde_json::Value;

/// Converts `maxTurns` to `max_turns`. Keys that are known as they are, and keys in free data, stay the same.
pub fn to_case_keys(value: &Value, kind: &Kind) -> Value {
    match (value, kind) {
        (Value::Object(members), kind) => {
            let renamed = members.iter().map(|(key, value)| {
                let (key, below) = match (field(kind, key), field(kind, &to_snake_case(key))) {
                    (Some(field), _) => (key.clone(), Some(field.kind)),
                    // A key in both spellings stays, and is reported as unknown.
                    (None, Some(_)) if members.contains_key(&to_snake_case(key)) => (key.clone(), None),
                    (None, Some(field)) => (to_snake_case(key), Some(field.kind)),
                    (None, None) => (key.clone(), value_kind(kind)),
                };
                let value = below.map_or_else(|| value.clone(), |kind| to_case_keys(value, &kind));
                (key, value)
            });
            Value::Object(renamed.collect())
        }
        (Value::Array(entries), kind) => {
            let below = entry_kind(kind).unwrap_or(*kind);
            Value::Array(entries.iter().map(|entry| to_case_keys(entry, &below)).collect())
        }
        (other, _) => other.clone(),
    }
}

/// Returns the field of a key, if the kind has known keys.
fn field(kind: &Kind, key: &str) -> Option<&'static Field> {
    match kind {
        Kind::Shape(shape) => shape.field(key),
        Kind::Tagged(tagged) => tagged.all().find_map(|shape| shape.field(key)),
        Kind::OneOf(kinds) => kinds.iter().find_map(|kind| field(kind, key)),
        Kind::List(kind) | Kind::NonEmptyList(kind) => field(kind, key),
        _ => None,
    }
}

/// Returns the kind of the values under free keys.
fn value_kind(kind: &Kind) -> Option<Kind> {
    match kind {
        Kind::Map(kind) => Some(**kind),
        Kind::OneOf(kinds) => kinds.iter().find_map(value_kind),
        _ => None,
    }
}

fn entry_kind(kind: &Kind) -> Option<Kind> {
    match kind {
        Kind::List(kind) | Kind::NonEmptyList(kind) => Some(**kind),
        Kind::OneOf(kinds) => kinds.iter().find_map(entry_kind),
        _ => None,
    }
}

fn to_snake_case(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 2);
    for character in key.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::shape::CASE;
    use serde_json::json;

    #[test]
    fn renames_only_known_keys() {
        let written = json!({
            "maxTurns": 3, "threadId": "x", "metadata": {"someKey": 1}, "turnAssert": {"text": {"mustMatch": "a"}},
            "timing": 1, "assert": [{"type": "tool_called", "name": "x", "arguments": {"roomName": 1}}],
            "unknownKey": 1,
        });
        let expected = json!({
            "max_turns": 3, "threadId": "x", "metadata": {"someKey": 1}, "turn_assert": {"text": {"must_match": "a"}},
            "timing": 1, "assert": [{"type": "tool_called", "name": "x", "arguments": {"roomName": 1}}],
            "unknownKey": 1,
        });
        assert_eq!(to_case_keys(&written, &Kind::Shape(&CASE)), expected);
    }
}
