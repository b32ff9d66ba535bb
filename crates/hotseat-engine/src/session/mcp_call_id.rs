//! The id that an MCP client passes with a call, under which the agent reports the same call.

use std::sync::Arc;

use serde_json::{Map, Value};

/// Maximum number of bytes of an id.
const MAX_ID_BYTES: usize = 256;
/// Ends of the keys in `_meta` that contain the id, without case and punctuation: `toolCallId`, `tool_call_id`,
/// `function_call_id`, `claudecode/toolUseId`.
const KEY_ENDS: [&str; 2] = ["callid", "tooluseid"];

/// Returns the id of a call in the agent, from `_meta` of the request.
pub(super) fn agent_call_id(meta: &Map<String, Value>) -> Option<Arc<str>> {
    let named = |key: &str| {
        let letters = key.chars().filter(char::is_ascii_alphanumeric);
        let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        KEY_ENDS.iter().any(|end| letters.ends_with(end))
    };
    let ids = meta.iter().filter_map(|(key, value)| Some((key, value.as_str()?)));
    let mut ids = ids.filter(|(key, id)| !id.is_empty() && id.len() <= MAX_ID_BYTES && named(key));
    ids.next().map(|(_, id)| id.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::agent_call_id;

    #[test]
    fn keys_of_clients_are_known() {
        let id = |meta: serde_json::Value| agent_call_id(meta.as_object().expect("an object"));
        for key in ["toolCallId", "tool_call_id", "function_call_id", "call-id", "claudecode/toolUseId"] {
            let meta = json!({"progressToken": "p", "traceparent": "t", key: "c1"});
            assert_eq!(id(meta).as_deref(), Some("c1"), "{key}");
        }
        for meta in [json!({}), json!({"progressToken": "c1"}), json!({"callId": 1}), json!({"callId": ""})] {
            assert_eq!(id(meta), None);
        }
        assert_eq!(id(json!({"callId": "c".repeat(257)})), None);
    }
}
