//! Limits the nesting depth of recorded events. JSON readers have such limits, and an agent must not make a
//! run unreadable.

use std::io::{self, Write};

use hotseat_trace::{Event, Payload};
use serde_json::Value;

use super::traffic::EventSize;

/// Maximum nesting depth of an event; common JSON readers accept twice as much.
const MAX_DEPTH: usize = 64;

/// Limits the nesting depth of an event: deeper values are replaced by their JSON text. Also returns the size
/// of the event.
pub(super) fn limit_depth(mut event: Event) -> (Event, EventSize) {
    let mut depth = DepthCounter::default();
    let is_written = serde_json::to_writer(&mut depth, &event).is_ok();
    let size = EventSize { bytes: depth.bytes, values: depth.values };
    if is_written && depth.max_depth <= MAX_DEPTH {
        return (event, size);
    }
    let name = event.payload.type_name();
    let cut = event
        .payload
        .to_json()
        .and_then(|members| Payload::from_json(name, cut_at_depth(members, MAX_DEPTH - 2)));
    if let Ok(payload) = cut {
        event.payload = payload;
    }
    (event, size)
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

/// Writer that measures the depth and size of JSON and discards it.
#[derive(Default)]
struct DepthCounter {
    depth: usize,
    max_depth: usize,
    bytes: u64,
    values: u64,
    in_text: bool,
    is_escaped: bool,
}

impl Write for DepthCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        let is_plain_text = self.in_text && !self.is_escaped && memchr::memchr2(b'"', b'\\', bytes).is_none();
        if is_plain_text {
            return Ok(bytes.len());
        }
        for byte in bytes {
            match (self.in_text, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (_, b'"') => self.in_text = !self.in_text,
                (false, b'[' | b'{') => {
                    self.depth += 1;
                    self.values += 1;
                    self.max_depth = self.max_depth.max(self.depth);
                }
                (false, b',') => self.values += 1,
                (false, b']' | b'}') => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured_depth(text: &str) -> usize {
        let mut depth = DepthCounter::default();
        depth.write_all(text.as_bytes()).unwrap();
        depth.max_depth
    }

    #[test]
    fn ignores_brackets_in_strings() {
        assert_eq!(measured_depth(r#"{"a": "[[[\"[[\\", "b": [1, {}]}"#), 3);
        assert_eq!(measured_depth(r#""[""#), 0);
    }

    #[test]
    fn replaces_deep_values_by_text() {
        let value = serde_json::json!({"a": [{"b": 1}], "c": 2});
        assert_eq!(cut_at_depth(value, 2), serde_json::json!({"a": [r#"{"b":1}"#], "c": 2}));
    }
}
