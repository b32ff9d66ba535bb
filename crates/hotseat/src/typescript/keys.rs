//! Keys as scripts write them, and as case files do.

use hotseat_document::{Field, Kind};
use serde_json::Value;

/// What scripts write as `maxTurns` is `max_turns` in a case file. Keys that are known as they are stay so, and so do those
/// within free data.
pub fn keys_as_written(value: &Value, kind: &Kind) -> Value {
    match (value, kind) {
        (Value::Object(members), kind) => {
            let renamed = members.iter().map(|(key, value)| {
                let (key, below) = match (field(kind, key), field(kind, &snake(key))) {
                    (Some(field), _) => (key.clone(), Some(field.kind)),
                    (None, Some(field)) => (snake(key), Some(field.kind)),
                    (None, None) => (key.clone(), free(kind)),
                };
                let value = below.map_or_else(|| value.clone(), |kind| keys_as_written(value, &kind));
                (key, value)
            });
            Value::Object(renamed.collect())
        }
        (Value::Array(entries), kind) => {
            let below = entries_of(kind).unwrap_or(*kind);
            Value::Array(entries.iter().map(|entry| keys_as_written(entry, &below)).collect())
        }
        (other, _) => other.clone(),
    }
}

/// The field of a key, where a kind has known keys.
fn field(kind: &Kind, key: &str) -> Option<&'static Field> {
    match kind {
        Kind::Shape(shape) => shape.field(key),
        Kind::Tagged(tagged) => tagged.all().find_map(|shape| shape.field(key)),
        Kind::OneOf(kinds) => kinds.iter().find_map(|kind| field(kind, key)),
        Kind::List(kind) | Kind::NonEmptyList(kind) => field(kind, key),
        _ => None,
    }
}

/// What stands under free keys.
fn free(kind: &Kind) -> Option<Kind> {
    match kind {
        Kind::Map(kind) => Some(**kind),
        Kind::OneOf(kinds) => kinds.iter().find_map(free),
        _ => None,
    }
}

fn entries_of(kind: &Kind) -> Option<Kind> {
    match kind {
        Kind::List(kind) | Kind::NonEmptyList(kind) => Some(**kind),
        Kind::OneOf(kinds) => kinds.iter().find_map(entries_of),
        _ => None,
    }
}

fn snake(key: &str) -> String {
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
    fn known_keys_are_renamed_and_free_ones_are_not() {
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
        assert_eq!(keys_as_written(&written, &Kind::Shape(&CASE)), expected);
    }
}
