//! Secrets that were received in pieces.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use hotseat_trace::{EventRecord, Payload};
use serde_json::Value;

use super::SecretRedactor;

/// Maximum number of strings of an event that may be pieces of texts.
const MAX_PIECES_OF_EVENT: usize = 256;

impl SecretRedactor {
    /// Replaces secrets that were received in pieces: deltas of one message or call, which a reader of the
    /// raw events could join again. The first piece then holds the whole redacted text.
    pub fn redact_pieces(&self, events: &mut [EventRecord]) {
        if self.secrets.is_none() {
            return;
        }
        let mut texts = SplitTexts::default();
        for (place, event) in events.iter().enumerate() {
            match &event.payload {
                Payload::Raw(raw) => texts.add_event(place, &raw.event),
                Payload::TurnStarted(_) => texts.known.clear(),
                _ => {}
            }
        }
        for pieces in texts.texts {
            let text = |piece: &TextPiece| match &events[piece.event].payload {
                Payload::Raw(raw) => raw.event.pointer(&piece.pointer)?.as_str(),
                _ => None,
            };
            let whole: String = pieces.iter().filter_map(text).collect();
            let Cow::Owned(clean) = self.text(&whole) else { continue };
            let mut clean = std::iter::once(clean).chain(std::iter::repeat_with(String::new));
            for TextPiece { event, pointer } in pieces {
                if let Payload::Raw(raw) = &mut events[event].event.payload
                    && let Some(piece) = raw.event.pointer_mut(&pointer)
                {
                    *piece = Value::String(clean.next().unwrap_or_default());
                }
            }
        }
    }
}

/// A piece of a text in a raw event.
struct TextPiece {
    /// Index of the event.
    event: usize,
    /// JSON pointer to the piece.
    pointer: Arc<str>,
}

/// Texts that were received in pieces.
#[derive(Default)]
struct SplitTexts {
    texts: Vec<Vec<TextPiece>>,
    /// Indices of the texts of the turn, by the id of their message or call, or their place in an event.
    known: HashMap<String, usize>,
}

impl SplitTexts {
    /// Adds the text pieces of a raw event: the `delta` of an event of AG-UI or of a program. In other events, such as those of
    /// chat completions and of plain HTTP, every string may continue the one at the same place of an earlier event.
    fn add_event(&mut self, event: usize, raw: &Value) {
        if !raw.get("delta").is_some_and(Value::is_string) {
            let mut places = StringPlaces::default();
            places.visit(raw, &mut |place, pointer| self.add_piece(place, event, pointer));
            return;
        }
        match ["toolCallId", "messageId"].iter().find_map(|key| raw.get(key)?.as_str()) {
            Some(id) => self.add_piece(id, event, "/delta"),
            // A piece without an id continues the text of the previous piece.
            None => match self.texts.last_mut() {
                Some(last) => last.push(TextPiece { event, pointer: "/delta".into() }),
                None => self.add_piece("", event, "/delta"),
            },
        }
    }

    fn add_piece(&mut self, key: &str, event: usize, pointer: &str) {
        let known = self.known.get(key).map(|known| &mut self.texts[*known]);
        let Some(pieces) = known else {
            self.known.insert(key.to_string(), self.texts.len());
            self.texts.push(vec![TextPiece { event, pointer: pointer.into() }]);
            return;
        };
        // Most pieces are at the same place.
        let pointer = match pieces.last() {
            Some(last) if *last.pointer == *pointer => last.pointer.clone(),
            _ => pointer.into(),
        };
        pieces.push(TextPiece { event, pointer });
    }
}

/// The place of a value in an event, while its strings are visited.
#[derive(Default)]
struct StringPlaces {
    /// JSON pointer.
    pointer: String,
    /// The pointer in the whole text of a stream: an entry of a list may have its number there as `index`.
    place: String,
    count: usize,
}

impl StringPlaces {
    /// Calls `found` with the place in the whole text and the JSON pointer of each string.
    fn visit(&mut self, value: &Value, found: &mut impl FnMut(&str, &str)) {
        match value {
            Value::String(_) if self.count < MAX_PIECES_OF_EVENT => {
                self.count += 1;
                found(&self.place, &self.pointer);
            }
            Value::Array(entries) => {
                for (number, entry) in entries.iter().enumerate() {
                    let index = entry.get("index").and_then(Value::as_u64).unwrap_or(number as u64);
                    self.visit_member(&number.to_string(), &index.to_string(), entry, found);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    self.visit_member(&key, &key, member, found);
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn visit_member(&mut self, key: &str, index: &str, value: &Value, found: &mut impl FnMut(&str, &str)) {
        let (pointer, place) = (self.pointer.len(), self.place.len());
        self.pointer.extend(["/", key]);
        self.place.extend(["/", index]);
        self.visit(value, found);
        self.pointer.truncate(pointer);
        self.place.truncate(place);
    }
}

#[cfg(test)]
mod tests {
    use hotseat_trace::{Event, Raw, TimeOffset};
    use serde_json::json;

    use super::*;

    /// Redacts raw events with the secret `abcdefgh`.
    fn redacted(raw: &[Value]) -> Vec<Value> {
        let redactor = SecretRedactor::new([("KEY".to_string(), "abcdefgh".to_string())]);
        let mut events: Vec<EventRecord> = raw
            .iter()
            .zip(1..)
            .map(|(event, sequence)| {
                let payload = Raw { turn_id: "t".into(), event: event.clone() }.into();
                EventRecord::from(Event { sequence, offset: TimeOffset(sequence), timestamp: 0, payload })
            })
            .collect();
        redactor.redact_pieces(&mut events);
        let raw = events.into_iter().filter_map(|event| match event.event.payload {
            Payload::Raw(raw) => Some(raw.event),
            _ => None,
        });
        raw.collect()
    }

    #[test]
    fn redacts_pieces_at_any_place_of_an_event() {
        let wrappers: [fn(&str) -> Value; 5] = [
            |piece| json!({"choices": [{"delta": {"reasoning_details": [{"type": "text", "text": piece}]}}]}),
            |piece| json!({"choices": [{"delta": {"content": [{"type": "text", "text": piece}]}}]}),
            |piece| json!({"choices": [{"delta": {"function_call": {"arguments": piece}}}]}),
            |piece| json!({"token": {"a/b~c": piece}}),
            |piece| json!(piece),
        ];
        for wrapped in wrappers {
            let raw = ["x abc", "def", "gh y"].map(wrapped);
            assert_eq!(redacted(&raw), ["x [redacted:KEY] y", "", ""].map(wrapped));
        }
    }

    #[test]
    fn pieces_belong_to_the_entry_with_their_index() {
        let calls = |entries: &[(u64, &str)]| {
            let entries: Vec<Value> =
                entries.iter().map(|(index, piece)| json!({"index": index, "arguments": piece})).collect();
            json!({"calls": entries})
        };
        let raw =
            [calls(&[(0, "abcd"), (1, "x")]), calls(&[(1, "y"), (0, "efgh")]), calls(&[(2, "abcdefg")])];
        let clean = [calls(&[(0, "[redacted:KEY]"), (1, "x")]), calls(&[(1, "y"), (0, "")]), raw[2].clone()];
        assert_eq!(redacted(&raw), clean);
    }

    #[test]
    fn deltas_belong_to_their_message() {
        let delta = |id: &str, piece: &str| json!({"messageId": id, "delta": piece});
        let raw = [delta("a", "abcd"), delta("b", "abc"), json!({"delta": "def"}), delta("a", "efgh")];
        let clean =
            [delta("a", "[redacted:KEY]"), delta("b", "abc"), json!({"delta": "def"}), delta("a", "")];
        assert_eq!(redacted(&raw), clean);
    }
}
