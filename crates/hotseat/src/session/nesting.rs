//! How deeply nested what is recorded may be. Whoever reads a trace or a report has a limit, and what an agent sends must not
//! make a run unreadable.

use std::io::{self, Write};

use hotseat_trace::{Event, Payload};
use serde_json::Value;

use super::traffic::EventSize;

/// The most that values are nested in an event; readers of JSON take twice as much.
const MOST: usize = 64;

/// An event in which nothing is nested more deeply than anybody reads: what is, stands in its place as text. And its size.
pub(super) fn flat(mut event: Event) -> (Event, EventSize) {
    let mut depth = Depth::default();
    let is_written = serde_json::to_writer(&mut depth, &event).is_ok();
    let size = EventSize { bytes: depth.bytes, values: depth.values };
    if is_written && depth.most <= MOST {
        return (event, size);
    }
    let name = event.payload.type_name();
    let cut = event.payload.to_json().and_then(|members| Payload::from_json(name, cut(members, MOST - 2)));
    if let Ok(payload) = cut {
        event.payload = payload;
    }
    (event, size)
}

fn cut(value: Value, room: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if room == 0 => Value::String(value.to_string()),
        Value::Array(all) => all.into_iter().map(|value| cut(value, room - 1)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (key, cut(value, room - 1))).collect()
        }
        other => other,
    }
}

/// Takes JSON and notes nothing but how deeply it is nested and how much it is.
#[derive(Default)]
struct Depth {
    now: usize,
    most: usize,
    bytes: u64,
    values: u64,
    in_text: bool,
    is_escaped: bool,
}

impl Write for Depth {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            match (self.in_text, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (_, b'"') => self.in_text = !self.in_text,
                (false, b'[' | b'{') => {
                    self.now += 1;
                    self.values += 1;
                    self.most = self.most.max(self.now);
                }
                (false, b',') => self.values += 1,
                (false, b']' | b'}') => self.now = self.now.saturating_sub(1),
                _ => {}
            }
        }
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(text: &str) -> usize {
        let mut depth = Depth::default();
        depth.write_all(text.as_bytes()).unwrap();
        depth.most
    }

    #[test]
    fn brackets_in_texts_nest_nothing() {
        assert_eq!(depth(r#"{"a": "[[[\"[[\\", "b": [1, {}]}"#), 3);
        assert_eq!(depth(r#""[""#), 0);
    }

    #[test]
    fn what_is_cut_stands_as_text() {
        let value = serde_json::json!({"a": [{"b": 1}], "c": 2});
        assert_eq!(cut(value, 2), serde_json::json!({"a": [r#"{"b":1}"#], "c": 2}));
    }
}
