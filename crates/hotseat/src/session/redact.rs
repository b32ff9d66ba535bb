//! Secrets are replaced before an event leaves the session, so nothing behind it can leak them.

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use hotseat_trace::{Event, Failure, Payload};
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

    /// A text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.found {
            Some(found) if found.automaton.is_match(text) => {
                Cow::Owned(found.automaton.replace_all(text, &found.marks))
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
    pub fn pieces(&self, events: &mut [Event]) {
        if self.found.is_none() {
            return;
        }
        let mut by_id: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        for (place, event) in events.iter().enumerate() {
            let Some(raw) = delta(event) else { continue };
            let id =
                ["messageId", "toolCallId"].iter().find_map(|key| raw.get(key)?.as_str()).map(str::to_string);
            // A chunk without an id goes on with what the last one belongs to.
            let known = by_id.iter_mut().rfind(|(known, _)| id.is_none() || *known == id);
            match known {
                Some((_, places)) => places.push(place),
                None => by_id.push((id, vec![place])),
            }
        }
        for (_, places) in by_id {
            let whole: String =
                places.iter().filter_map(|&place| delta(&events[place])?.get("delta")?.as_str()).collect();
            let Cow::Owned(clean) = self.text(&whole) else { continue };
            let mut pieces = std::iter::once(clean).chain(std::iter::repeat_with(String::new));
            for place in places {
                if let Payload::Raw(raw) = &mut events[place].payload {
                    raw.event["delta"] = Value::String(pieces.next().unwrap_or_default());
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

/// The received event behind a raw one that carries a piece of text.
fn delta(event: &Event) -> Option<&Value> {
    match &event.payload {
        Payload::Raw(raw) if raw.event.get("delta").is_some_and(Value::is_string) => Some(&raw.event),
        _ => None,
    }
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
