//! Normalises results of the same test from several front ends so that they can be compared.

use serde_json::{Value, json};

/// Title of a test without its groups.
pub fn title(result: &Value) -> &str {
    let name = result["name"].as_str().unwrap();
    name.rsplit(" > ").next().and_then(|name| name.rsplit("::").next()).unwrap()
}

/// A result without values that differ between front ends: locations, group names, planned input, times, and
/// lengths of role names.
pub fn comparable(result: &Value) -> Value {
    let mut told = without(result);
    let members = told.as_object_mut().unwrap();
    for key in ["index", "id", "stable_id"] {
        assert!(members.shift_remove(key).is_some(), "no {key}");
    }
    // Only tests in TypeScript have a script.
    members.shift_remove("script");
    // The turns of a program are not known before they are sent.
    members.shift_remove("turns_not_run");
    // Tests in Rust do not declare their input before they run.
    members.shift_remove("fingerprints");
    members.insert("name".to_string(), title(result).into());
    for turn in members["turns"].as_array_mut().unwrap() {
        for call in turn["tool_calls"].as_array_mut().unwrap() {
            call.as_object_mut().unwrap().shift_remove("id");
        }
        for said in turn["roles"].as_array_mut().into_iter().flatten() {
            // Scripted models report no usage.
            assert!(said["role"] != "simulator" || said["usage"].is_null(), "{said}");
        }
    }
    told
}

fn without(value: &Value) -> Value {
    const LEFT_OUT: [&str; 9] = [
        "file",
        "line",
        "column",
        "started_at",
        "duration_ms",
        "start_ts",
        "end_ts",
        "timestamp",
        "started_ms",
    ];
    match value {
        Value::Object(members) => {
            let is_value = members.get("type").is_some_and(|kind| kind == "value");
            // A program computes a value and compares it; a case file names both.
            let names_both = ["of", "equals", "at_least", "at_most", "contains"];
            let left_out = |key: &str| LEFT_OUT.contains(&key) || is_value && names_both.contains(&key);
            let mut kept: Vec<_> = members.iter().filter(|(key, _)| !left_out(key)).collect();
            kept.sort_by_key(|(key, _)| *key);
            kept.into_iter().map(|(key, value)| (key.clone(), without(&one_or_many(key, value)))).collect()
        }
        Value::Array(entries) => entries.iter().map(without).collect(),
        Value::String(words) => {
            words.lines().map(|line| without_value(without_place(line))).collect::<Vec<_>>().join("\n").into()
        }
        other => other.clone(),
    }
}

/// Wraps a single value in a list; case files allow both.
fn one_or_many(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("forbid" | "types" | "from_tools", Value::String(one)) => json!([one]),
        _ => value.clone(),
    }
}

/// A failure line without its leading location (`file:line:column: …`).
fn without_place(line: &str) -> &str {
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
    match line.split_once(": ") {
        Some((place, words)) if !place.contains(' ') => {
            let mut parts = place.rsplit(':');
            if is_number(parts.next()) && is_number(parts.next()) { words } else { line }
        }
        _ => line,
    }
}

/// A message about a value without the name of the value (`turn_count`, `conversation.turns.length`).
fn without_value(words: &str) -> String {
    let named = words.find('`').and_then(|open| {
        let close = open + 1 + words[open + 1..].find('`')?;
        words[close..].starts_with("` to ").then_some((open, close))
    });
    match named {
        Some((open, close)) => format!("{}`…`{}", &words[..open], &words[close + 1..]),
        None => words.to_string(),
    }
}

/// Sorts the checks of each turn; case files do not define their order.
pub fn unordered(told: &Value) -> Value {
    let sorted = |key: &str, value: &Value| match (key, value) {
        ("assertions" | "roles" | "assertion_errors", Value::Array(entries)) => {
            let mut entries: Vec<Value> = entries.iter().map(unordered).collect();
            entries.sort_by_key(Value::to_string);
            entries.into()
        }
        (_, value) => unordered(value),
    };
    match told {
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), sorted(key, value))).collect()
        }
        Value::Array(entries) => entries.iter().map(unordered).collect(),
        other => other.clone(),
    }
}

#[track_caller]
pub fn assert_same(one: &Value, other: &Value) {
    let (one, other) = (format!("{one:#}"), format!("{other:#}"));
    let differs = one.lines().zip(other.lines()).position(|(one, other)| one != other);
    if let Some(first) = differs.or((one.len() != other.len()).then_some(0)) {
        let around =
            |text: &str| text.lines().skip(first.saturating_sub(12)).take(30).collect::<Vec<_>>().join("\n");
        panic!("not the same:\n{}\n----- and -----\n{}", around(&one), around(&other));
    }
}
