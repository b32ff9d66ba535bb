//! Members of a reply that the protocol does not define.
//!
//! Some providers reject the results of tools unless the reply comes back with them: Gemini's signatures in
//! `extra_content` of a call, `reasoning_content` or `reasoning_details` of a message.

use serde_json::{Map, Value};

/// Adds members of the next piece of a message or call. Lists are concatenated and the texts of `reasoning_content`
/// joined; of other members the last value counts. Empty values are left out.
pub fn merge_extra_members(known: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match (known.get_mut(&key), value) {
            (_, Value::Null) => {}
            (_, Value::String(text)) if text.is_empty() => {}
            (_, Value::Array(items)) if items.is_empty() => {}
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(Value::String(text)), Value::String(more)) if key == "reasoning_content" => {
                text.push_str(&more);
            }
            (_, value) => drop(known.insert(key, value)),
        }
    }
}
