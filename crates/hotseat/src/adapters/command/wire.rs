//! The lines that a program may print.

use hotseat_trace::{Failure, FailureKind};
use serde::Deserialize;
use serde_json::Value;

use crate::adapters::excerpt;
use crate::adapters::json_text::{has_twice, joined_but, readable};
use crate::adapters::lines::check_values;
use crate::session::ToolReply;

/// What a line says.
pub(super) enum Line {
    /// A whole message.
    Text(String),
    /// A piece of a message; pieces in a row make one.
    Delta(String),
    Reasoning(String),
    ToolCall {
        id: Option<String>,
        name: String,
        arguments: Value,
        reply: Option<ToolReply>,
    },
    ToolResult {
        id: String,
        reply: ToolReply,
    },
    AwaitingInput {
        awaiting: bool,
        hint: Option<String>,
    },
    State(Value),
    Usage(Value),
    Error {
        message: String,
        code: Option<String>,
    },
    Done {
        awaiting: Option<bool>,
        hint: Option<String>,
        finish_reason: Option<String>,
    },
}

/// A line as it is written.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Written {
    Text {
        text: Option<String>,
        delta: Option<String>,
    },
    Reasoning {
        text: String,
    },
    ToolCall {
        id: Option<String>,
        name: String,
        #[serde(default)]
        arguments: Value,
        #[serde(default, deserialize_with = "present")]
        result: Option<Value>,
        error: Option<String>,
    },
    ToolResult {
        id: String,
        #[serde(default, deserialize_with = "present")]
        result: Option<Value>,
        error: Option<String>,
    },
    AwaitingInput {
        awaiting: Option<bool>,
        hint: Option<String>,
    },
    State {
        state: Value,
    },
    Usage {
        usage: Value,
    },
    Error {
        message: String,
        code: Option<String>,
    },
    Done {
        awaiting_input: Option<bool>,
        input_hint: Option<String>,
        finish_reason: Option<String>,
    },
}

/// A member that is written as `null` is there; one that is not written is not.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a line, the `number`th of its turn.
pub(super) fn read(line: &str, number: u64, turn: usize) -> Result<Line, Failure> {
    let wrong = |words: String| {
        let message = format!("line {number} of the program's output {words}: {}", excerpt(line, 200));
        Failure::new(FailureKind::ProtocolError, message)
    };
    check_values(line).map_err(&wrong)?;
    let text = readable(line);
    let mut value: Value =
        serde_json::from_str(&text).map_err(|error| wrong(format!("is not JSON ({error})")))?;
    if !value.is_object() {
        return Err(wrong("is not a JSON object".to_string()));
    }
    if has_twice(&text, "type") {
        return Err(wrong("has `type` twice".to_string()));
    }
    joined_but(&mut value, "delta");
    // A program that says which turn it speaks of cannot be misunderstood.
    if let Some(said) = value.get("turn").filter(|said| said.as_u64() != Some(turn as u64)) {
        return Err(wrong(format!("speaks of turn {said}; this is turn {turn}")));
    }
    let written: Written =
        serde_json::from_value(value).map_err(|error| wrong(format!("says nothing known ({error})")))?;
    Ok(match written {
        Written::Text { text: Some(text), delta: None } => Line::Text(text),
        Written::Text { text: None, delta: Some(piece) } => Line::Delta(piece),
        Written::Text { .. } => return Err(wrong("needs either `text` or `delta`".to_string())),
        Written::Reasoning { text } => Line::Reasoning(text),
        Written::ToolCall { name, .. } if name.is_empty() => {
            return Err(wrong("calls a tool without a name".to_string()));
        }
        Written::ToolCall { id, name, arguments, result, error } => {
            let reply = match (result, error) {
                (None, None) => None,
                (Some(result), None) => Some(ToolReply::Content(result)),
                (None, Some(error)) => Some(ToolReply::Error(error)),
                (Some(_), Some(_)) => {
                    return Err(wrong("has both `result` and `error`".to_string()));
                }
            };
            Line::ToolCall { id, name, arguments, reply }
        }
        Written::ToolResult { id, result, error } => {
            let reply = match (result, error) {
                (Some(result), None) => ToolReply::Content(result),
                (None, Some(error)) => ToolReply::Error(error),
                (None, None) | (Some(_), Some(_)) => {
                    return Err(wrong("needs either `result` or `error`".to_string()));
                }
            };
            Line::ToolResult { id, reply }
        }
        Written::AwaitingInput { awaiting, hint } => {
            Line::AwaitingInput { awaiting: awaiting.unwrap_or(true), hint }
        }
        Written::State { state } => Line::State(state),
        Written::Usage { usage } => Line::Usage(usage),
        Written::Error { message, code } => Line::Error { message, code },
        Written::Done { awaiting_input, input_hint, finish_reason } => {
            Line::Done { awaiting: awaiting_input, hint: input_hint, finish_reason }
        }
    })
}
