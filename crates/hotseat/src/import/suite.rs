//! From a conversation to a case: what the user said, and what is asserted of the agent.

use serde_json::{Map, Value, json};

use super::transcript::{ExpectedCall, Transcript};
use super::{Expect, Options};
use crate::cases::literal;

/// The case of a conversation, on one line.
pub(super) fn case(transcript: &Transcript, options: &Options) -> Value {
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
    as_written(Value::Object(case))
}

/// What is asserted where these calls are expected.
fn assertions(expected: &[ExpectedCall], options: &Options) -> Vec<Value> {
    let calls = |of: &dyn Fn(&ExpectedCall) -> bool| -> Value {
        let calls = expected.iter().filter(|call| of(call));
        calls
            .map(|call| match &call.arguments {
                Some(arguments) => json!({"name": call.name, "arguments": arguments}),
                None => json!(call.name),
            })
            .collect()
    };
    let order = match options.expect {
        Expect::Calls => "superset",
        Expect::Order => "in_order",
        Expect::Nothing => return Vec::new(),
    };
    let mut assertions = Vec::new();
    // That none of no calls is missing would hold of everybody.
    if !expected.is_empty() {
        assertions.push(json!({"type": "tool_sequence", "order": order, "calls": calls(&|_| true)}));
    }
    if !options.writes.is_empty() {
        let writes = |call: &ExpectedCall| options.writes.contains(&call.name);
        let calls = calls(&writes);
        assertions.push(
            json!({"type": "tool_sequence", "only": options.writes, "order": "unordered", "calls": calls}),
        );
    }
    assertions
}

/// What looks like a variable in what people and agents said is none.
fn as_written(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(literal(&text)),
        Value::Array(values) => values.into_iter().map(as_written).collect(),
        Value::Object(members) => members.into_iter().map(|(key, value)| (key, as_written(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}
