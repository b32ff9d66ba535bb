//! Limits the nesting depth of recorded events. JSON readers have such limits, and an agent must not make a
//! run unreadable.

use std::io::{self, Write};

use hotseat_trace::{Event, Payload};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use super::traffic::EventSize;

/// Maximum nesting depth of an event; common JSON readers accept twice as much.
const MAX_DEPTH: usize = 64;

/// Limits the nesting depth of an event: deeper values are replaced by their JSON text. Returns the size of the
/// event.
pub(super) fn limit_depth(event: &mut Event) -> EventSize {
    // A text has no structure, and its length need not be measured.
    let text = event.payload.agent_text_mut().map(std::mem::take);
    let (mut size, depth) = measure(event);
    if let (Some(known), Some(text)) = (event.payload.agent_text_mut(), text) {
        size.bytes += text.len() as u64;
        *known = text;
    }
    if depth.is_some_and(|depth| depth <= MAX_DEPTH) {
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

/// Returns the size and the depth of a value as JSON. The depth is `None` if it cannot be written.
fn measure(value: &impl Serialize) -> (EventSize, Option<usize>) {
    let (mut bytes, mut structure) = (ByteCounter(0), JsonStructure::default());
    let is_written = value.serialize(&mut Serializer::with_formatter(&mut bytes, &mut structure)).is_ok();
    let size = EventSize { bytes: bytes.0, values: structure.values };
    (size, is_written.then_some(structure.max_depth))
}

/// Writer that counts bytes and discards them.
struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0 += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Depth and number of values of JSON that is being written.
#[derive(Default)]
struct JsonStructure {
    depth: usize,
    max_depth: usize,
    values: u64,
}

impl JsonStructure {
    fn open(&mut self) {
        self.depth += 1;
        self.values += 1;
        self.max_depth = self.max_depth.max(self.depth);
    }

    fn close(&mut self) {
        self.depth -= 1;
    }

    fn separate<W: ?Sized + Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        if is_first {
            return Ok(());
        }
        self.values += 1;
        writer.write_all(b",")
    }
}

impl Formatter for &mut JsonStructure {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open();
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close();
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        self.separate(writer, is_first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open();
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close();
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        self.separate(writer, is_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_depth_and_size() {
        for (text, depth, values) in
            [(r#"{"a":"[[[\"[[\\","b":[1,{}]}"#, 3, 5), (r#""[""#, 0, 0), ("[[],[]]", 2, 4)]
        {
            let value: Value = serde_json::from_str(text).unwrap();
            let (size, measured) = measure(&value);
            assert_eq!(
                (measured, size.bytes, size.values),
                (Some(depth), text.len() as u64, values),
                "{text}"
            );
        }
    }

    #[test]
    fn replaces_deep_values_by_text() {
        let value = serde_json::json!({"a": [{"b": 1}], "c": 2});
        assert_eq!(cut_at_depth(value, 2), serde_json::json!({"a": [r#"{"b":1}"#], "c": 2}));
    }
}
