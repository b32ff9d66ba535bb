//! Canonical JSON: equal values have equal texts.

use serde_json::Value;

/// Writes a value with sorted keys and without spaces. Numbers with the same value have the same text.
pub(crate) fn canonical_text(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut keys: Vec<_> = members.keys().collect();
            keys.sort_unstable();
            text.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write_canonical(&members[key.as_str()], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            // Floats up to this size represent whole numbers exactly.
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => {
                text.push_str(&format!("{float:.0}"));
            }
            _ => text.push_str(&number.to_string()),
        },
        value => text.push_str(&value.to_string()),
    }
}
