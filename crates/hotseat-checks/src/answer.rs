//! The answer of an agent as text; [`json_answer`](super::json_answer) reads JSON from it.
//!
//! The answer is the last message of the last turn in the scope of a check. The text of a turn is all of its
//! messages.

use hotseat_document::quote;
use hotseat_trace::TurnScope;
use serde_json::Value;

use super::call_text::truncate;

/// Returns the answer, or an empty text if the agent said nothing.
pub fn answer(scope: TurnScope<'_>) -> &str {
    scope.turns().last().and_then(|turn| turn.answer()).unwrap_or_default()
}

/// Formats a text for the result of a failed check.
pub fn format_text(text: &str) -> String {
    match text {
        "" => "no text".to_string(),
        text => quote(&truncate(text)),
    }
}

/// Formats a JSON value on one line, cut to a readable length.
pub fn format_json(value: &Value) -> String {
    truncate(&value.to_string())
}
