//! Secrets that were received in pieces.

use std::borrow::Cow;
use std::collections::HashMap;

use hotseat_trace::{EventRecord, Payload};
use serde_json::Value;

use super::SecretRedactor;

impl SecretRedactor {
    /// Replaces secrets that were received in pieces: deltas of one message or call, which a reader of the
    /// raw events could join again. The first piece then holds the whole redacted text.
    pub fn redact_pieces(&self, events: &mut [EventRecord]) {
        if self.secrets.is_none() {
            return;
        }
        let mut texts: Vec<SplitText> = Vec::new();
        // Index of the last text of each owner.
        let mut last: HashMap<Option<String>, usize> = HashMap::new();
        for (place, event) in events.iter().enumerate() {
            let raw = match &event.payload {
                Payload::Raw(raw) => raw,
                Payload::TurnStarted(_) => {
                    last.clear();
                    continue;
                }
                _ => continue,
            };
            for TextPiece { owner: of, pointer } in text_pieces(&raw.event) {
                // A piece without an owner continues the text of the previous piece.
                let known = if of.is_none() { texts.len().checked_sub(1) } else { last.get(&of).copied() };
                match known {
                    Some(known) => texts[known].places.push((place, pointer)),
                    None => {
                        last.insert(of, texts.len());
                        texts.push(SplitText { places: vec![(place, pointer)] });
                    }
                }
            }
        }
        for SplitText { places } in texts {
            let text = |place: &(usize, String)| match &events[place.0].payload {
                Payload::Raw(raw) => raw.event.pointer(&place.1)?.as_str().map(str::to_string),
                _ => None,
            };
            let whole: String = places.iter().filter_map(text).collect();
            let Cow::Owned(clean) = self.text(&whole) else { continue };
            let mut clean = std::iter::once(clean).chain(std::iter::repeat_with(String::new));
            for (place, pointer) in places {
                if let Payload::Raw(raw) = &mut events[place].event.payload
                    && let Some(piece) = raw.event.pointer_mut(&pointer)
                {
                    *piece = Value::String(clean.next().unwrap_or_default());
                }
            }
        }
    }
}

/// A text that was received in pieces.
struct SplitText {
    /// Event index and JSON pointer of each piece.
    places: Vec<(usize, String)>,
}

/// A piece of a text in a raw event.
struct TextPiece {
    /// Id of the text it belongs to, if the event has one.
    owner: Option<String>,
    /// JSON pointer to the piece.
    pointer: String,
}

/// Returns the text pieces of a raw event: deltas of AG-UI, of command targets and of chat completions.
fn text_pieces(event: &Value) -> Vec<TextPiece> {
    let mut pieces = Vec::new();
    if event.get("delta").is_some_and(Value::is_string) {
        let of =
            ["toolCallId", "messageId"].iter().find_map(|key| event.get(key)?.as_str()).map(str::to_string);
        pieces.push(TextPiece { owner: of, pointer: "/delta".to_string() });
    }
    for (number, choice) in event.get("choices").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(delta) = choice.get("delta") else { continue };
        for key in ["content", "refusal", "reasoning_content", "reasoning"] {
            if delta.get(key).is_some_and(Value::is_string) {
                let pointer = format!("/choices/{number}/delta/{key}");
                pieces.push(TextPiece { owner: Some(format!("{number} {key}")), pointer });
            }
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        for (place, call) in calls.enumerate() {
            let pointer = format!("/choices/{number}/delta/tool_calls/{place}/function/arguments");
            // Without an index the pieces of all calls are joined as one, which may redact too much.
            let index = call.get("index").cloned().unwrap_or_default();
            pieces.push(TextPiece { owner: Some(format!("{number} call {index}")), pointer });
        }
    }
    pieces
}
