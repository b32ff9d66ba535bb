//! Converts a conversation to a case with its user messages and assertions.

use serde_json::{Map, Value, json};

use super::transcript::{ConversationTranscript, TranscriptCall};
use super::{ExpectedCallsMode, ImportOptions};
use crate::cases::escape_variables;

pub(super) fn build_case(transcript: &ConversationTranscript, options: &ImportOptions) -> Value {
    let mut case = Map::new();
    case.insert("id".to_string(), json!(transcript.id));
    if !transcript.metadata.is_empty() {
        case.insert("metadata".to_string(), Value::Object(transcript.metadata.clone()));
    }
    if !transcript.before.is_empty() {
        case.insert("messages".to_string(), json!(transcript.before));
    }
    let turns = transcript.turns.iter().map(|turn| json!({"user": turn.user}));
    case.insert("turns".to_string(), turns.collect());
    if let Some(expected) = &transcript.expected {
        let assertions = assertions(expected, options);
        if !assertions.is_empty() {
            case.insert("assert".to_string(), Value::Array(assertions));
        }
    }
    escape_variables(Value::Object(case))
}

fn assertions(expected: &[TranscriptCall], options: &ImportOptions) -> Vec<Value> {
    let calls = |of: &dyn Fn(&TranscriptCall) -> bool| -> Value {
        let calls = expected.iter().filter(|call| of(call));
        calls
            .map(|call| match &call.arguments {
                Some(arguments) => json!({"name": call.name, "arguments": arguments}),
                None => json!(call.name),
            })
            .collect()
    };
    let order = match options.expect {
        ExpectedCallsMode::Calls => "superset",
        ExpectedCallsMode::Order => "in_order",
        ExpectedCallsMode::Nothing => return Vec::new(),
    };
    let mut assertions = Vec::new();
    // An assertion about no calls would always pass.
    if !expected.is_empty() {
        assertions.push(json!({"type": "tool_sequence", "order": order, "calls": calls(&|_| true)}));
    }
    if !options.writes.is_empty() {
        let writes = |call: &TranscriptCall| options.writes.contains(&call.name);
        let calls = calls(&writes);
        assertions.push(
            json!({"type": "tool_sequence", "only": options.writes, "order": "unordered", "calls": calls}),
        );
    }
    assertions
}
