//! Readable differences between two JSON values.

use serde_json::Value;

/// Maximum number of changes shown.
const MAX_CHANGES: usize = 12;
/// Maximum number of characters of a value shown, around the first difference.
const MAX_VALUE_CHARS: usize = 60;

/// Returns the changes from `recorded` to `now`, one line each, with a JSON Pointer.
pub fn changes(recorded: &Value, now: &Value) -> Vec<String> {
    let mut changes = Vec::new();
    compare("", recorded, now, &mut changes);
    let more = changes.len().saturating_sub(MAX_CHANGES);
    changes.truncate(MAX_CHANGES);
    if more > 0 {
        changes.push(format!("and {more} more"));
    }
    changes
}

fn compare(path: &str, recorded: &Value, now: &Value, changes: &mut Vec<String>) {
    match (recorded, now) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                match new.get(key) {
                    Some(now) => compare(&path, value, now, changes),
                    None => changes.push(format!("{path}: recorded {}, now missing", format_value(value, 0))),
                }
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                changes.push(format!("{path}: not recorded, now {}", format_value(value, 0)));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{path}/{index}"), old, new, changes);
            }
            for (index, value) in old.iter().enumerate().skip(new.len()) {
                changes.push(format!("{path}/{index}: recorded {}, now missing", format_value(value, 0)));
            }
            for (index, value) in new.iter().enumerate().skip(old.len()) {
                changes.push(format!("{path}/{index}: not recorded, now {}", format_value(value, 0)));
            }
        }
        (Value::String(old), Value::String(new)) if old != new => {
            let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
            changes.push(format!(
                "{path}: recorded {}, now {}",
                format_value(recorded, common),
                format_value(now, common)
            ));
        }
        _ if recorded == now => {}
        _ => changes.push(format!(
            "{path}: recorded {}, now {}",
            format_value(recorded, 0),
            format_value(now, 0)
        )),
    }
}

/// Formats a value in one line; a long text is cut around the character index `at`.
fn format_value(value: &Value, at: usize) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let from =
        if text.chars().count() <= MAX_VALUE_CHARS { 0 } else { at.saturating_sub(MAX_VALUE_CHARS / 3) };
    let part: String = text.chars().skip(from).take(MAX_VALUE_CHARS).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if text.chars().count() > from + MAX_VALUE_CHARS { "…" } else { "" };
    match value {
        Value::String(_) => format!("{:?}", format!("{before}{part}{after}")),
        _ => format!("{part}{after}"),
    }
}
