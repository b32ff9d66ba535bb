//! Texts of calls and excerpts of other texts, for messages.

use hotseat_document::excerpt;
use hotseat_trace::AgentToolCall;

/// Maximum number of characters of arguments or a result in a check result. Reports contain the full values.
const MAX_EXCERPT_CHARS: usize = 160;

/// Formats a call on one line: turn, tool, server, arguments, faults, result.
pub fn format_call(turn: usize, call: &AgentToolCall) -> String {
    let result = match &call.result {
        Some(result) if result.failed => format!("failed: {}", truncate(&result.text())),
        Some(result) => truncate(&result.text()),
        None => "no result".to_string(),
    };
    let arguments = truncate(&call.arguments.to_string());
    format!("turn {turn}: {}({arguments}){} → {result}", call.name, call.server_label())
}

/// Formats calls with their turns, each on one line.
pub fn format_calls<'a>(calls: impl IntoIterator<Item = (usize, &'a AgentToolCall)>) -> Vec<String> {
    calls.into_iter().map(|(turn, call)| format_call(turn, call)).collect()
}

/// Cuts a text to a readable length, between characters.
pub fn truncate(text: &str) -> String {
    excerpt(text, MAX_EXCERPT_CHARS).into_owned()
}
