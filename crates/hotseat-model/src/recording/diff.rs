//! What has changed between two JSON values, for people.

use serde_json::Value;

/// How many changes are shown.
const MOST_SHOWN: usize = 12;
/// How many characters of a text are shown, around the first difference.
const SHOWN: usize = 60;

/// The changes from `recorded` to `now`, one line each, with a JSON Pointer to the place.
pub(super) fn changes(recorded: &Value, now: &Value) -> Vec<String> {
    let mut changes = Vec::new();
    compare("", recorded, now, &mut changes);
    let more = changes.len().saturating_sub(MOST_SHOWN);
    changes.truncate(MOST_SHOWN);
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
                    None => changes.push(format!("{path}: recorded {}, now missing", shown(value, 0))),
                }
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                changes.push(format!("{path}: not recorded, now {}", shown(value, 0)));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{path}/{index}"), old, new, changes);
            }
            for (index, value) in old.iter().enumerate().skip(new.len()) {
                changes.push(format!("{path}/{index}: recorded {}, now missing", shown(value, 0)));
            }
            for (index, value) in new.iter().enumerate().skip(old.len()) {
                changes.push(format!("{path}/{index}: not recorded, now {}", shown(value, 0)));
            }
        }
        (Value::String(old), Value::String(new)) if old != new => {
            let common = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
            changes.push(format!("{path}: recorded {}, now {}", shown(recorded, common), shown(now, common)));
        }
        _ if recorded == now => {}
        _ => changes.push(format!("{path}: recorded {}, now {}", shown(recorded, 0), shown(now, 0))),
    }
}

/// A value in one line; a long text as the part around the character `at`.
fn shown(value: &Value, at: usize) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let from = if text.chars().count() <= SHOWN { 0 } else { at.saturating_sub(SHOWN / 3) };
    let part: String = text.chars().skip(from).take(SHOWN).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if text.chars().count() > from + SHOWN { "…" } else { "" };
    match value {
        Value::String(_) => format!("{:?}", format!("{before}{part}{after}")),
        _ => format!("{part}{after}"),
    }
}
