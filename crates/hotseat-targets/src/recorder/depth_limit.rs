//! Limits the nesting depth of recorded events. JSON readers have such limits, and an agent must not make a
//! run unreadable.

use hotseat_document::json::JsonSize;
use hotseat_trace::{Event, Payload};
use serde_json::Value;

/// Maximum nesting depth of an event; common JSON readers accept twice as much.
const MAX_DEPTH: usize = 64;

/// Limits the nesting depth of an event: deeper values are replaced by their JSON text. Returns the size of the
/// event.
pub(super) fn limit_depth(event: &mut Event) -> JsonSize {
    let size = JsonSize::measure(event);
    if size.depth <= MAX_DEPTH {
        return size;
    }
    let name = event.payload.type_name();
    let cut = event
        .payload
        .to_json()
        .and_then(|members| Payload::from_json(name, cut_at_depth(members, MAX_DEPTH - 2)));
    if let Ok(payload) = cut {
        event.payload = payload;
    }
    size
}

fn cut_at_depth(value: Value, room: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if room == 0 => Value::String(value.to_string()),
        Value::Array(all) => all.into_iter().map(|value| cut_at_depth(value, room - 1)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (key, cut_at_depth(value, room - 1))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_deep_values_by_text() {
        let value = serde_json::json!({"a": [{"b": 1}], "c": 2});
        assert_eq!(cut_at_depth(value, 2), serde_json::json!({"a": [r#"{"b":1}"#], "c": 2}));
    }
}
