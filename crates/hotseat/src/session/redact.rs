//! Secrets are replaced before an event leaves the session, so nothing behind it can leak them.

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use hotseat_trace::{Failure, Payload, Record};
use serde_json::Value;

/// Values shorter than this are not secrets worth the name, and redacting them would mangle every text.
const SHORTEST: usize = 4;

/// Replaces secret values wherever they stand.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    found: Option<Arc<Found>>,
}

#[derive(Debug)]
struct Found {
    automaton: AhoCorasick,
    marks: Vec<String>,
}

impl Redactor {
    /// Redacts the given values; each is replaced by `[redacted:NAME]`. Very short values are let through.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut values = Vec::new();
        let mut marks = Vec::new();
        for (name, value) in secrets {
            if value.len() < SHORTEST {
                continue;
            }
            let mark = format!("[redacted:{name}]");
            // Inside JSON text the value may stand escaped.
            let escaped = Value::String(value.clone()).to_string();
            let escaped = escaped[1..escaped.len() - 1].to_string();
            if escaped != value {
                values.push(escaped);
                marks.push(mark.clone());
            }
            values.push(value);
            marks.push(mark);
        }
        if values.is_empty() {
            return Redactor::default();
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&values);
        Redactor { found: automaton.ok().map(|automaton| Arc::new(Found { automaton, marks })) }
    }

    /// Whether it takes out a secret of this name.
    pub fn knows(&self, name: &str) -> bool {
        let mark = format!("[redacted:{name}]");
        self.found.as_ref().is_some_and(|found| found.marks.contains(&mark))
    }

    /// A text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.found {
            Some(found) if found.automaton.is_match(text) => {
                Cow::Owned(found.automaton.replace_all(text, &found.marks))
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// A text in which an `x` stands for each byte of a secret, so that everything stays in its place.
    pub fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.found {
            Some(found) if found.automaton.is_match(text) => {
                let mut masked = String::with_capacity(text.len());
                found.automaton.replace_all_with(text, &mut masked, |_, secret, masked| {
                    masked.extend(std::iter::repeat_n('x', secret.len()));
                    true
                });
                Cow::Owned(masked)
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// An event without secrets.
    pub fn payload(&self, payload: Payload) -> Payload {
        let Some(found) = &self.found else { return payload };
        let Ok(mut members) = payload.to_json() else { return payload };
        if !found.automaton.is_match(&members.to_string()) {
            return payload;
        }
        self.value(&mut members);
        // Only texts have changed, so the members still fit their type; ids that were secrets change too.
        Payload::from_json(payload.type_name(), members).unwrap_or(payload)
    }

    /// A value without secrets.
    pub fn json(&self, mut value: Value) -> Value {
        if self.found.is_some() {
            self.value(&mut value);
        }
        value
    }

    /// A failure without secrets.
    pub fn failure(&self, mut failure: Failure) -> Failure {
        failure.message = self.text(&failure.message).into_owned();
        failure.detail = failure.detail.map(|detail| self.text(&detail).into_owned());
        failure
    }

    /// Takes out secrets that were received in pieces: the deltas of one message or call, which whoever reads the
    /// raw events would put together again. The first piece then holds the whole text without them.
    pub fn pieces(&self, events: &mut [Record]) {
        if self.found.is_none() {
            return;
        }
        let mut texts: Vec<Pieced> = Vec::new();
        for (place, event) in events.iter().enumerate() {
            let Payload::Raw(raw) = &event.payload else { continue };
            for Piece { of, pointer } in pieces(&raw.event) {
                // A piece that does not say what it belongs to goes on with what the last one belongs to.
                let known = texts.iter_mut().rfind(|known| of.is_none() || known.of == of);
                match known {
                    Some(known) => known.places.push((place, pointer)),
                    None => texts.push(Pieced { of, places: vec![(place, pointer)] }),
                }
            }
        }
        for Pieced { places, .. } in texts {
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

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text).into_owned(),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(members) => {
                let entries = std::mem::take(members);
                members.extend(entries.into_iter().map(|(key, mut value)| {
                    self.value(&mut value);
                    (self.text(&key).into_owned(), value)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// A text that was received in pieces.
struct Pieced {
    /// Which text it is, where its pieces say.
    of: Option<String>,
    /// The events of its pieces, and where in each the piece stands.
    places: Vec<(usize, String)>,
}

/// A piece of a text in a received event.
struct Piece {
    /// Which text it belongs to, where the event says.
    of: Option<String>,
    /// Where in the event it stands.
    pointer: String,
}

/// The pieces of texts in a received event: deltas of AG-UI and of programs, and those of chat completions.
fn pieces(event: &Value) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if event.get("delta").is_some_and(Value::is_string) {
        let of =
            ["messageId", "toolCallId"].iter().find_map(|key| event.get(key)?.as_str()).map(str::to_string);
        pieces.push(Piece { of, pointer: "/delta".to_string() });
    }
    let id = event.get("id").and_then(Value::as_str).unwrap_or_default();
    for (number, choice) in event.get("choices").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(delta) = choice.get("delta") else { continue };
        for key in ["content", "refusal", "reasoning_content", "reasoning"] {
            if delta.get(key).is_some_and(Value::is_string) {
                let pointer = format!("/choices/{number}/delta/{key}");
                pieces.push(Piece { of: Some(format!("{id} {number} {key}")), pointer });
            }
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        for (place, call) in calls.enumerate() {
            let pointer = format!("/choices/{number}/delta/tool_calls/{place}/function/arguments");
            // Without an index the pieces of all calls are taken for those of one: too much is redacted then.
            let index = call.get("index").cloned().unwrap_or_default();
            pieces.push(Piece { of: Some(format!("{id} {number} call {index}")), pointer });
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use hotseat_trace::ToolCompleted;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_found_in_keys_values_and_escaped_text() {
        let redactor = Redactor::new([("TOKEN".to_string(), "s\"cret".to_string())]);
        let payload = ToolCompleted {
            turn_id: "turn-1".into(),
            tool_call_id: "c".into(),
            output: json!({"a s\"cret": ["s\"cret", "{\"t\":\"s\\\"cret\"}"]}),
            origin: Default::default(),
        };
        let Payload::ToolCompleted(clean) = redactor.payload(payload.into()) else { panic!("another type") };
        assert_eq!(
            clean.output,
            json!({"a [redacted:TOKEN]": ["[redacted:TOKEN]", "{\"t\":\"[redacted:TOKEN]\"}"]})
        );
    }

    #[test]
    fn values_that_would_mangle_every_text_are_let_through() {
        let redactor =
            Redactor::new([("PORT".to_string(), "1".to_string()), ("EMPTY".to_string(), String::new())]);
        assert_eq!(redactor.text("order 1 of 11"), "order 1 of 11");
    }
}
