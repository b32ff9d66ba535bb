//! Parses tool results in the same way for all protocols.

use serde_json::{Map, Value};

use crate::message::json_text::{joined, read_json};

/// Parses a result received as text: JSON if it is an object, list, boolean or null, otherwise the text
/// itself. JSON inside a JSON string is unwrapped, since servers differ in how often they encode. Content parts
/// are read like those received as JSON. Numbers keep their spelling: `1.50` and `007` stay as written.
pub(crate) fn parse_text_output(text: String) -> Value {
    let text = joined(text);
    match read_json(&text) {
        Ok(Value::String(inner)) if text.trim_start().starts_with('"') => match read_json(&inner) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => join_content_parts(value),
            _ => Value::String(inner),
        },
        Ok(value @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Null)) => {
            join_content_parts(value)
        }
        Ok(Value::Number(_) | Value::String(_)) | Err(_) => Value::String(text),
    }
}

/// Parses a text as JSON, if it is valid.
pub fn parse_json(text: &str) -> Option<Value> {
    read_json(text).ok()
}

/// Parses a result received as message content: text, content parts, or any other JSON.
pub fn parse_content_output(content: &Value) -> Value {
    match content {
        Value::String(text) => parse_text_output(text.clone()),
        other => join_content_parts(other.clone()),
    }
}

/// Replaces content parts by the result that their texts contain. Parts without any text are kept as they are.
fn join_content_parts(value: Value) -> Value {
    let parts = value.as_array().filter(|items| is_content_parts(items)).into_iter().flatten();
    let mut texts = parts.filter_map(part_text).peekable();
    if texts.peek().is_none() { value } else { parse_text_output(texts.collect()) }
}

/// Returns true if a list is content parts and not a result that is a list: all entries are known parts
/// without further members.
pub(crate) fn is_content_parts(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item.as_object().is_some_and(is_part))
}

/// Keys that a part may have beside its content.
const PART_METADATA_KEYS: [&str; 7] =
    ["type", "id", "metadata", "annotations", "_meta", "cache_control", "filename"];

fn is_part(part: &Map<String, Value>) -> bool {
    let object = |key: &str| part.get(key).is_some_and(Value::is_object);
    let text = |key: &str| part.get(key).is_some_and(Value::is_string);
    let (is_whole, own): (bool, &[&str]) = match part.get("type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") => (text("text"), &["text"]),
        Some("refusal") => (text("refusal"), &["refusal"]),
        Some("image" | "audio" | "video" | "document") => (object("source"), &["source"]),
        Some("image_url") => (object("image_url"), &["image_url"]),
        Some("input_audio") => (object("input_audio"), &["input_audio"]),
        Some("file") => (object("file"), &["file"]),
        // AG-UI before 1.0.
        Some("binary") => {
            (text("mimeType") && (text("url") || text("data") || text("id")), &["mimeType", "url", "data"])
        }
        Some(_) | None => return false,
    };
    is_whole
        && part.keys().all(|key| own.contains(&key.as_str()) || PART_METADATA_KEYS.contains(&key.as_str()))
}

fn part_text(part: &Value) -> Option<&str> {
    part.get("text").or_else(|| part.get("refusal"))?.as_str()
}

#[cfg(test)]
mod tests {
    use hotseat_trace::plain_text;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Any JSON, mostly with members of content parts.
    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z]{1,6}".prop_map(Value::from),
            prop::sample::select(vec!["text", "image", "payment", "file", "document"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let key = prop_oneof![
                prop::sample::select(vec!["type", "text", "source", "status", "id"]).prop_map(str::to_string),
                "[a-z]{1,3}",
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Collects every text and number of a value.
    fn leaves(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
            Value::Object(members) => members.values().for_each(|member| leaves(member, found)),
            Value::String(text) => found.push(text.clone()),
            other => found.push(other.to_string()),
        }
    }

    proptest! {
        /// A list that is not content is returned unchanged.
        #[test]
        fn keeps_lists_that_are_not_content(items in prop::collection::vec(json_value(), 1..4)) {
            let content = Value::Array(items.clone());
            let output = parse_content_output(&content);
            if !is_content_parts(&items) {
                prop_assert_eq!(output, content);
                return Ok(());
            }
            let mut said = Vec::new();
            items.iter().filter_map(|part| part.get("text")).for_each(|text| leaves(text, &mut said));
            let shown = plain_text(&output);
            prop_assert!(said.iter().all(|text| shown.contains(text.as_str())), "{} → {}", content, output);
        }
    }

    #[test]
    fn parses_content_parts() {
        for (content, output) in [
            (
                json!([{"type": "payment", "status": "declined"}]),
                json!([{"type": "payment", "status": "declined"}]),
            ),
            (json!([{"type": "text", "text": "declined"}]), json!("declined")),
            (json!("[{\"type\": \"text\", \"text\": \"declined\"}]"), json!("declined")),
            (json!("\"[{\\\"type\\\": \\\"text\\\", \\\"text\\\": \\\"declined\\\"}]\""), json!("declined")),
            (json!("[{\"type\": \"payment\"}]"), json!([{"type": "payment"}])),
            (json!([{"type": "text", "text": "{\"a\":"}, {"type": "text", "text": "1}"}]), json!({"a": 1})),
            (
                json!([{"type": "text", "status": "declined"}]),
                json!([{"type": "text", "status": "declined"}]),
            ),
            (
                json!([{"type": "text", "text": "ok", "status": "declined"}]),
                json!([{"type": "text", "text": "ok", "status": "declined"}]),
            ),
            (
                json!([{"type": "text", "text": "ok"}, {"type": "payment", "status": "declined"}]),
                json!([{"type": "text", "text": "ok"}, {"type": "payment", "status": "declined"}]),
            ),
            (
                json!([{"type": "image", "status": "declined"}]),
                json!([{"type": "image", "status": "declined"}]),
            ),
            (
                json!([{"type": "image", "source": {"url": "x"}}]),
                json!([{"type": "image", "source": {"url": "x"}}]),
            ),
            (json!([]), json!([])),
            (json!("12345678901234567890123"), json!("12345678901234567890123")),
            (json!("{\"id\":12345678901234567890123}"), json!({"id": "12345678901234567890123"})),
        ] {
            assert_eq!(parse_content_output(&content), output, "{content}");
        }
    }
}
