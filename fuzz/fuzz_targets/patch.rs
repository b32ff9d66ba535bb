//! Any patch keeps the document within the depth and size limits, leaves it unchanged if it does not apply,
//! and otherwise gives the result of another implementation.

#![no_main]

use hotseat_trace::{PatchBudget, apply_patch};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// Paths of the operations.
const PLACES: [&str; 16] = [
    "", "/a", "/b", "/a/a", "/a/b", "/a/a/a/a", "/l", "/l/0", "/l/1", "/l/-", "/l/0/a", "/b/l/0", "/~0~1", "/01", "/a/", "a",
];

fn operation(bytes: &[u8]) -> Value {
    let place = |at: usize| PLACES[usize::from(bytes.get(at).copied().unwrap_or(0)) % PLACES.len()];
    let value = match bytes.get(3).copied().unwrap_or(0) % 5 {
        0 => json!({}),
        1 => json!([1, {"a": [2]}]),
        2 => json!({"a": {"a": {}}, "l": [3]}),
        3 => Value::Null,
        _ => json!("text"),
    };
    // Paths may be combined to longer ones.
    let path = format!("{}{}", place(1), if bytes[0] >= 128 { place(4) } else { "" });
    match bytes[0] % 7 {
        0 => json!({"op": "add", "path": path, "value": value}),
        1 => json!({"op": "remove", "path": path}),
        2 => json!({"op": "replace", "path": path, "value": value}),
        // A move of a value onto itself changes nothing (RFC 6902); the other implementation refuses it for the root.
        3 if place(2) == path => json!({"op": "test", "path": path, "value": value}),
        3 => json!({"op": "move", "from": place(2), "path": path}),
        4 => json!({"op": "copy", "from": place(2), "path": path}),
        5 => json!({"op": "copy", "from": "", "path": path}),
        _ => json!({"op": "test", "path": path, "value": value}),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fuzz_target!(|input: &[u8]| {
    let mut document = json!({"a": {}, "b": {"l": [0]}, "l": [{"a": 1}, 2]});
    let mut allowance = PatchBudget::default();
    for patch in input.chunks(40) {
        let patch = Value::Array(patch.chunks(5).map(operation).collect());
        let before = document.clone();
        let applied = apply_patch(&mut document, &patch, &mut allowance);
        assert!(depth(&document) <= 61, "{patch}");
        match applied {
            Err(_) => assert_eq!(document, before, "{patch}"),
            Ok(()) => {
                let mut other = before;
                let read: json_patch::Patch = serde_json::from_value(patch.clone()).expect("a patch is one");
                json_patch::patch(&mut other, &read).expect("it applies");
                assert_eq!(document, other, "{patch}");
            }
        }
    }
});
