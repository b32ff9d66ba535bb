//! The output lines of a program.

use std::borrow::Cow;

use hotseat_document::excerpt;
use hotseat_model::MisplacedCalls;
use hotseat_trace::{AttemptFailure, ErrorInfo, FailureKind};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::connection::lines::check_value_count;
use crate::message::ToolReply;
use crate::message::json_text::{read_json, read_piece};
use crate::target::{CallArguments, parse_error};

/// A parsed line.
pub(super) enum OutputLine {
    /// A whole message.
    Text(String),
    /// A piece of a message; consecutive pieces form one message.
    Delta(String),
    Reasoning(String),
    ToolCall {
        id: Option<String>,
        name: String,
        arguments: CallArguments,
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

/// A line in its serialised form.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireLine {
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
        #[serde(default, deserialize_with = "present")]
        arguments: Option<Value>,
        #[serde(default, deserialize_with = "present")]
        result: Option<Value>,
        error: Option<String>,
        #[serde(flatten)]
        others: Box<Map<String, Value>>,
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
        #[serde(default)]
        error: Value,
    },
}

/// Distinguishes a member that is `null` from a missing one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A line of which only the type is read.
#[derive(Deserialize)]
struct LineType<'a> {
    r#type: Cow<'a, str>,
}

/// Returns true if a line ends a turn.
pub(super) fn is_done(line: &str) -> bool {
    serde_json::from_str::<LineType<'_>>(line).is_ok_and(|line| line.r#type == "done")
}

/// Returns true if a call and the end of its turn are in a piece of output.
pub(super) fn has_call_and_end(output: &[u8]) -> bool {
    if memchr::memmem::find(output, b"\"done\"").is_none() {
        return false;
    }
    let lines = output.split(|byte| *byte == b'\n');
    let types = lines.filter_map(|line| Some(serde_json::from_slice::<LineType<'_>>(line).ok()?.r#type));
    let (mut has_call, mut has_end) = (false, false);
    for name in types {
        has_call |= name == "tool_call";
        has_end |= name == "done";
    }
    has_call && has_end
}

/// Parses a line; `number` is its number in the turn.
pub(super) fn parse_line(line: &str, number: u64, turn: usize) -> Result<OutputLine, AttemptFailure> {
    let wrong = |words: String| {
        let message = format!("line {number} of the program's output {words}: {}", excerpt(line, 200));
        AttemptFailure::new(FailureKind::ProtocolError, message)
    };
    check_value_count(line).map_err(|error| wrong(error.to_string()))?;
    let mut value = read_json(line).map_err(|error| wrong(error.to_string()))?;
    if !value.is_object() {
        return Err(wrong("is not a JSON object".to_string()));
    }
    if MisplacedCalls::are_members_of(&value) {
        return Err(wrong("has tool calls, which need lines of their own (`type: tool_call`)".to_string()));
    }
    // The next piece may continue half of a surrogate pair.
    if let Some(delta) = value.get_mut("delta")
        && line.contains(r"\u")
    {
        *delta = read_piece(line).map_err(|error| wrong(error.to_string()))?["delta"].take();
    }
    // A `turn` member must be the current turn.
    if let Some(said) = value.get("turn").filter(|said| said.as_u64() != Some(turn as u64)) {
        return Err(wrong(format!("has turn {said}, expected {turn}")));
    }
    let written: WireLine =
        serde_json::from_value(value).map_err(|error| wrong(format!("is not a known event ({error})")))?;
    Ok(match written {
        WireLine::Text { text: Some(text), delta: None } => OutputLine::Text(text),
        WireLine::Text { text: None, delta: Some(piece) } => OutputLine::Delta(piece),
        WireLine::Text { .. } => return Err(wrong("needs either `text` or `delta`".to_string())),
        WireLine::Reasoning { text } => OutputLine::Reasoning(text),
        WireLine::ToolCall { name, .. } if name.trim().is_empty() => {
            return Err(wrong("calls a tool without a name".to_string()));
        }
        WireLine::ToolCall { id, name, arguments, result, error, others } => {
            let reply = match (result, error) {
                (None, None) => None,
                (Some(result), None) => Some(ToolReply::Content(result)),
                (None, Some(error)) => Some(ToolReply::Error(error)),
                (Some(_), Some(_)) => {
                    return Err(wrong("has both `result` and `error`".to_string()));
                }
            };
            let others: Vec<&str> =
                others.keys().map(String::as_str).filter(|name| *name != "turn").collect();
            let arguments = match arguments {
                Some(arguments) => CallArguments::from_json(arguments),
                None => CallArguments::missing("`arguments`", &others),
            };
            OutputLine::ToolCall { id, name, arguments, reply }
        }
        WireLine::ToolResult { id, result, error } => {
            let reply = match (result, error) {
                (Some(result), None) => ToolReply::Content(result),
                (None, Some(error)) => ToolReply::Error(error),
                (None, None) | (Some(_), Some(_)) => {
                    return Err(wrong("needs either `result` or `error`".to_string()));
                }
            };
            OutputLine::ToolResult { id, reply }
        }
        WireLine::AwaitingInput { awaiting, hint } => {
            OutputLine::AwaitingInput { awaiting: awaiting.unwrap_or(true), hint }
        }
        WireLine::State { state } => OutputLine::State(state),
        WireLine::Usage { usage } => OutputLine::Usage(usage),
        WireLine::Error { message, code } => OutputLine::Error { message, code },
        WireLine::Done { awaiting_input, input_hint, finish_reason, error } => match error {
            Value::Null | Value::Bool(false) => {
                OutputLine::Done { awaiting: awaiting_input, hint: input_hint, finish_reason }
            }
            // Many exceptions have no text.
            error => match parse_error(&error) {
                Some(ErrorInfo { message, code, .. }) => OutputLine::Error { message, code },
                None => OutputLine::Error { message: format!("`done` has the error {error}"), code: None },
            },
        },
    })
}
