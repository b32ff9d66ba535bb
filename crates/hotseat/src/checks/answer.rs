//! What an agent answered, as text; [`json_answer`](super::json_answer) reads JSON out of it.
//!
//! Its answer is the last message of the last turn that a check looks at. What it said is everything it said in
//! that turn.

use hotseat_trace::Scope;
use serde_json::Value;

use super::calls::cut;

/// The answer; empty where the agent said nothing.
pub fn answer(scope: Scope<'_>) -> &str {
    scope.turns().last().and_then(|turn| turn.answer()).unwrap_or_default()
}

/// A text as it is shown to whoever looks at a failed check.
pub fn shown(text: &str) -> String {
    match text {
        "" => "it says nothing".to_string(),
        text => format!("{:?}", cut(text)),
    }
}

/// A value on one line, short enough to be shown.
pub fn shown_json(value: &Value) -> String {
    cut(&value.to_string())
}
