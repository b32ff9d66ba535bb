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
    use crate::cases::shape::{CASE, TURN};
    use crate::cases::topic_shape::{GRAPH_TOPIC, SHARED, SIMULATE};
    use hotseat_document::Shape;
    use serde_json::json;
    use std::collections::{BTreeSet, HashSet};

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

    /// Adds the keys of patterns: with `true` those of maps of patterns, and others.
    fn add_pattern_keys(
        kind: &Kind,
        key: &str,
        is_map: bool,
        seen: &mut HashSet<*const Shape>,
        found: &mut BTreeSet<(bool, String)>,
    ) {
        match kind {
            Kind::Pattern => {
                found.insert((is_map, key.to_string()));
            }
            Kind::List(kind) | Kind::NonEmptyList(kind) => add_pattern_keys(kind, key, is_map, seen, found),
            Kind::Map(kind) => add_pattern_keys(kind, key, true, seen, found),
            Kind::OneOf(kinds) => {
                kinds.iter().for_each(|kind| add_pattern_keys(kind, key, is_map, seen, found))
            }
            Kind::Tagged(tagged) => {
                tagged.all().for_each(|shape| add_pattern_keys(&Kind::Shape(shape), key, false, seen, found));
            }
            Kind::Shape(shape) if seen.insert(*shape) => {
                for field in shape.fields {
                    field.spellings().for_each(|key| add_pattern_keys(&field.kind, key, false, seen, found));
                }
            }
            _ => {}
        }
    }

    /// The library of tests refuses a regular expression under any other key, where it would be taken for a text.
    #[test]
    fn the_library_knows_all_keys_of_patterns() {
        let code = include_str!("js/conversation.js");
        let listed = |name: &str| -> BTreeSet<&str> {
            let list = code.split(&format!("const {name} = [")).nth(1).unwrap().split(']').next().unwrap();
            list.split('"').skip(1).step_by(2).collect()
        };
        let (mut seen, mut found) = (HashSet::new(), BTreeSet::new());
        for kind in [
            Kind::Shape(&CASE),
            Kind::Shape(&TURN),
            Kind::Shape(&SIMULATE),
            Kind::Shape(&SHARED),
            Kind::Shape(&GRAPH_TOPIC),
        ] {
            add_pattern_keys(&kind, "", false, &mut seen, &mut found);
        }
        // `value` is a pattern for the type `regex` only.
        found.remove(&(false, "value".to_string()));
        let keys = |is_map| {
            found.iter().filter(|(map, _)| *map == is_map).map(|(_, key)| &**key).collect::<BTreeSet<&str>>()
        };
        assert_eq!(listed("PATTERNS"), keys(false));
        assert_eq!(listed("PATTERN_MAPS"), keys(true));
    }
}
